"""An obligation: one claim about one scheme, the verdict that it must get, and the one it got."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Generic, TypeVar

from kvstage_model.search.search import Counterexample

from .solvers.query import Asked, Query


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
    DISAGREE = "DISAGREE"
    """Two solvers answered one question differently, so one of them is wrong: nothing is known."""


Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Statement:
    """What is claimed of which scheme, and the verdict that it must get. `direction` is "read", "write" or "-"."""

    scheme: str
    direction: str
    theorem: str
    claim: str
    expected: Verdict = Verdict.PROVED
    title: str = ""

    @property
    def subject(self) -> str:
        """The scheme and its direction: `per_block.read`."""
        return self.scheme if self.direction == "-" else f"{self.scheme}.{self.direction}"

    @property
    def name(self) -> str:
        """The name to ask for it by: `per_block.read:T1`."""
        return f"{self.subject}:{self.theorem}"


@dataclass(frozen=True)
class Obligation:
    """A statement, the queries that prove it, and the search for an instance that breaks it, among so many or all small ones.

    `subject` is what it is about: a scheme function, a partition, or lemmas.
    """

    statement: Statement
    queries: Callable[[], Iterator[Query]]
    search: Callable[[int | None], Counterexample | None]
    subject: object = None


@dataclass(frozen=True)
class Theorem(Generic[Subject]):
    """A claim about any scheme or partition."""

    name: str
    title: str
    claim: str
    queries: Callable[[Subject], Iterator[Query]]
    search: Callable[[Subject, int | None], Counterexample | None]

    def of(self, subject: Subject, scheme: str, direction: str = "-", expected: Verdict = Verdict.PROVED) -> Obligation:
        """The obligation to show it of one subject."""
        statement = Statement(scheme, direction, self.name, self.claim, expected, self.title)
        return Obligation(statement, partial(self.queries, subject), partial(self.search, subject), subject)


@dataclass(frozen=True, eq=False)
class Judgement:
    """What came of an obligation. Plain data: it can cross from one process to another."""

    statement: Statement
    verdict: Verdict
    seconds: float
    asked: tuple[Asked, ...] = ()
    counterexample: Counterexample | None = None
    reason: str = ""
    """Why it is VACUOUS, UNKNOWN, UNSUPPORTED or DISAGREE, and what to do about it."""
    second: tuple[Asked, ...] = ()
    """What the second solver made of the same queries, if it was asked."""
    used: tuple[str, ...] = ()
    """The axioms that are enough for the proof, if that was asked for."""
    needed: tuple[str, ...] = ()
    """Those among them without which the proof is lost."""

    @property
    def ok(self) -> bool:
        """Whether the verdict is the one that it must get."""
        return self.verdict is self.statement.expected

    @property
    def rlimit(self) -> int:
        """The solver's steps over all queries."""
        return sum(asked.rlimit for asked in self.asked)
