"""What an idiom is: one body of torch.cuda code, and a flag that says whether it keeps the one order that it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Body = Callable[[bool], list[float]]


@dataclass(frozen=True, slots=True)
class Idiom:
    """Code that is right with `right()`, and lacks one order with `wrong()`; nothing else differs between the two.

    Each call runs on the device "cuda", and returns numbers that the host holds: `gives`, if every access is in its order.
    `source` says in words where code like it is found.
    """

    name: str
    topic: str
    source: str
    gives: list[float]
    body: Body

    def right(self) -> list[float]:
        """As it should be written."""
        return self.body(True)

    def wrong(self) -> list[float]:
        """The twin that lacks an order."""
        return self.body(False)


def idiom(source: str, *, gives: Sequence[float]) -> Callable[[Body], Idiom]:
    """Makes an idiom of a body; its topic is the file that it stands in. Raises ValueError if it gives no number to compare."""
    if not gives:
        raise ValueError("an idiom gives at least one number: else nothing is compared")

    def made(body: Body) -> Idiom:
        return Idiom(body.__name__, body.__module__.rpartition(".")[2], source, list(gives), body)

    return made
