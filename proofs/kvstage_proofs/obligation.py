"""An obligation: one claim about one scheme, the verdict that it must get, and the one it got."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from kvstage_model.parameters import SchemeFunction
from kvstage_model.search import Counterexample

from .query import Asked, Query


class Verdict(Enum):
    """What is known of a claim."""

    PROVED = "PROVED"
    """Every query was refuted, under assumptions that can hold: it is true for all sizes."""
    REFUTED = "REFUTED"
    """A concrete instance breaks it; the schedule is shown."""
    VACUOUS = "VACUOUS"
    """It speaks of nothing: an operation that can never exist, or no pair of operations that can meet."""
    UNKNOWN = "UNKNOWN"
    """Neither proved nor broken by any small instance."""
    UNSUPPORTED = "UNSUPPORTED"
    """The scheme does something that the model has no exact meaning for."""


@dataclass(frozen=True)
class Theorem:
    """A claim about any scheme: the queries that prove it, and the search for an instance that breaks it."""

    name: str
    title: str
    claim: str
    queries: Callable[[SchemeFunction], Iterator[Query]]
    search: Callable[[SchemeFunction], Counterexample | None]


@dataclass(frozen=True)
class Obligation:
    """One claim about one scheme. `direction` is "read", "write" or "-"."""

    scheme: str
    direction: str
    theorem: Theorem
    function: SchemeFunction
    expected: Verdict = Verdict.PROVED

    @property
    def name(self) -> str:
        """The name to ask for it by: `per_block.read:T1`."""
        return f"{self.subject}:{self.theorem.name}"

    @property
    def subject(self) -> str:
        """The scheme and its direction: `per_block.read`."""
        return self.scheme if self.direction == "-" else f"{self.scheme}.{self.direction}"


@dataclass(frozen=True)
class Judgement:
    """What came of an obligation."""

    obligation: Obligation
    verdict: Verdict
    seconds: float
    asked: tuple[Asked, ...] = ()
    counterexample: Counterexample | None = None
    reason: str = ""
    """Why it is VACUOUS, UNKNOWN or UNSUPPORTED, and what to do about it."""

    @property
    def ok(self) -> bool:
        """Whether the verdict is the one that it must get."""
        return self.verdict is self.obligation.expected

    rlimit: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rlimit", sum(asked.rlimit for asked in self.asked))
