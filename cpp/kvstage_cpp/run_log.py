"""What the runtime writes into KVSTAGE_LOG: read strictly as far as it goes, since a program may end in the middle of a line."""

from dataclasses import dataclass, field

from .symbols import Stack, stack_in


@dataclass(frozen=True, slots=True)
class Counts:
    """What a program did: operations are all that was put into streams, waits are the host's."""

    operations: int = 0
    copies: int = 0
    bytes: int = 0
    launches: int = 0
    waits: int = 0


@dataclass(frozen=True, slots=True)
class Noticed:
    """A mistake that the runtime has seen: memory freed too early, a batch without an order, a wait that never ends."""

    kind: str
    words: str
    first: Stack
    second: Stack


@dataclass
class RunLog:
    """The log of a run. `linked` is False if no process has used the runtime, `ended` if none has come to its exit handlers."""

    linked: bool = False
    ended: bool = False
    sanitizer: str = ""
    counts: Counts = Counts()
    noticed: list[Noticed] = field(default_factory=list)
    during: Stack = ()
    """Where the operation was issued that AddressSanitizer has stopped."""
    trace: list[list[str]] = field(default_factory=list)


def read(text: str) -> RunLog:
    """The log in a text. Of several processes that one counts that issued the most."""
    log = RunLog()
    for line in text.splitlines():
        match line.split("\t"):
            case ["start", _, sanitizer]:
                log.linked, log.sanitizer = True, sanitizer
            case ["end", *numbers] if len(numbers) == 5:
                log.ended = True
                log.counts = max(log.counts, Counts(*map(int, numbers)), key=lambda counts: counts.operations)
            case ["finding", kind, words, first, second]:
                log.noticed.append(Noticed(kind, words, stack_in(first), stack_in(second)))
            case ["during", stack]:
                log.during = stack_in(stack)
            case fields:
                log.trace.append(fields)
    return log
