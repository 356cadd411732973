"""The oracles side by side, on every scheme of the catalogue, right or broken: `python -m tests.support.oracles > docs/oracles.md`.

The prover speaks of all sizes at once. The others are shown small instances, smallest first, until they see a fault.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import races
from kvstage_model.schedules.drivers import delays
from kvstage_model.search.instances import instances
from kvstage_model.simulation.cells import BoundsError
from kvstage_model.simulation.simulator import simulate
from kvstage_proofs.catalogue.catalogue import catalogue
from kvstage_proofs.obligation import Verdict
from tests.support.recorded_runs import recorded

MOST_BROKEN = 200
"""Instances of a broken scheme that an oracle is shown at most."""
MOST_RIGHT = 40
"""Instances of a right scheme: none may be called faulty."""

Calls = tuple[Scheme, ...]
Oracle = Callable[[Calls], bool]


def racing(calls: Calls) -> bool:
    """The race finder, on the program that was issued."""
    return next(races(unroll(calls)), None) is not None


def racing_when_run(calls: Calls) -> bool:
    """The race finder, on the program that the library issued when it ran the calls, where it can."""
    program = recorded(calls)
    return program is not None and next(races(program), None) is not None


def wrong(calls: Calls) -> bool:
    """The simulator: some row is wrong under some delay, or a kernel is refused because it writes a row twice.

    It judges what a call promises, so nothing where that is nothing.
    """
    promised = sum(scheme.result.length for scheme in calls if scheme.result is not None)
    try:
        return promised > 0 and any(simulation.wrong for _, simulation in delays(partial(simulate, calls)))
    except BoundsError:
        return True


def sanitized(calls: Calls) -> bool:
    """Torch's stream sanitizer, told of the host as of a stream."""
    from tests.support.sanitizer import finds_a_race

    return finds_a_race(unroll(calls))


ORACLES: dict[str, Oracle] = {
    "race finder": racing,
    "recorded run": racing_when_run,
    "simulator": wrong,
    "torch's sanitizer": sanitized,
}

FAULT, NONE = "fault", "-"
WHY = "why an oracle can't see it"


@dataclass(frozen=True)
class Row:
    """A scheme, the verdict that the prover must give, by which theorem, and its function."""

    subject: str
    verdict: Verdict
    theorems: str
    function: SchemeFunction


def rows() -> tuple[Row, ...]:
    """All schemes of the catalogue of which T1 or T3 is asked, in its order."""
    found: dict[str, Row] = {}
    for obligation in catalogue():
        stated = obligation.statement
        if stated.theorem not in ("T1", "T3"):
            continue
        subject = stated.scheme if stated.direction == "-" else f"{stated.scheme} ({stated.direction})"
        before = found.get(subject)
        theorems = f"{before.theorems}, {stated.theorem}" if before else stated.theorem
        verdict = Verdict.REFUTED if before and before.verdict is Verdict.REFUTED else stated.expected
        function: SchemeFunction = obligation.subject  # type: ignore[assignment]
        found[subject] = Row(subject, verdict, theorems, function)
    return tuple(found.values())


def sees(row: Row, oracle: Oracle) -> bool:
    """Whether an oracle finds a fault in one of the small instances."""
    most = MOST_RIGHT if row.verdict is Verdict.PROVED else MOST_BROKEN
    return any(oracle(calls) for calls in _some(row.function, most, oracle))


def _some(function: SchemeFunction, most: int, oracle: Oracle) -> Iterator[Calls]:
    """The first instances; none where the oracle has nothing to judge in any of them."""
    found = (calls for calls, _ in islice(instances(function), most))
    for number, calls in enumerate(found):
        if not number and oracle in (wrong, racing_when_run) and all(scheme.result is None for scheme in calls):
            return
        yield calls


def reason(row: Row, cells: dict[str, str]) -> str:
    """Why an oracle can't see a fault that the prover finds."""
    if row.verdict is Verdict.PROVED or NONE not in cells.values():
        return ""
    if "block twice" in row.subject:
        return "two rows go to one place, one behind the other or by one kernel: nothing races, only the rows tell"
    if cells["recorded run"] == cells["simulator"] == NONE:
        return "several loops, or a buffer that is lent: no one call that promises rows, so none to run and none to judge"
    if cells["recorded run"] == NONE:
        return "asks whether an event has ended, which the library's runtime refuses to perform"
    raise ValueError(f"{row.subject}: no reason is known for {cells}")


def line(row: Row, names: Sequence[str]) -> str:
    """A line of the table."""
    cells = {name: FAULT if sees(row, ORACLES[name]) else NONE for name in names}
    prover = f"{row.verdict.value} ({row.theorems})"
    return "| " + " | ".join([row.subject, prover, *(cells[name] for name in names), reason(row, cells)]) + " |"


def table(names: Sequence[str]) -> Iterator[str]:
    """The whole page."""
    yield from HEAD.format(right=MOST_RIGHT).splitlines()
    head, *lines = body(names)
    yield ""
    yield head
    yield "|" + "---|" * (len(names) + 3)
    yield from lines


def body(names: Sequence[str]) -> Iterator[str]:
    """The table of the page: its head, and a line for each scheme."""
    yield "| " + " | ".join(["scheme", "prover", *names, WHY]) + " |"
    for row in rows():
        yield line(row, names)


def columns(lines: Iterable[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Of a page: what each scheme's line says in the columns of these names, in their order."""
    cells = [[cell.strip() for cell in text.strip("|").split(" | ")] for text in lines if text.startswith("| ")]
    head, *body = cells
    return {line[0]: [line[head.index(name)] for name in names] for line in body}


HEAD = """\
# The oracles side by side

Every scheme of the catalogue, right or broken, as each of the oracles sees it. Made by `python -m tests.support.oracles`, and
compared with what they say in the tests.

- **prover**: the verdict that `kvstage prove` must give, for all sizes: T1, no two accesses to a common row overlap; T3,
  every row that arrives is the right one. The tests of the catalogue hold it to that.
- **race finder**: the axioms, read with ints, over the program that small instances issue.
- **recorded run**: the race finder, over what the library's runtime asked of a device that does everything at once, and what
  the caller then did: recorded as it ran, with every byte right. Of `kvstage check` that is the part that looks for races; whether
  a run is its scheme's, call by call, is asked of every run of the library in its own tests.
- **simulator**: rows of small instances that come out wrong when one half of one operation is held back.
- **torch's sanitizer**: `torch.cuda._sanitizer.EventHandler`, told of the host as of one more stream, and of each row as of a
  tensor. As shipped it hears of no host, and of no tensor in host memory.

**T5, the removal table:** each row "X without W" is the scheme X with one of its waits or records taken out, by its kind,
stream and event. Every wait and record of every scheme that is PROVED here has such a row, and T1 must fall in it: so each is
needed. One is needed in some depths only: the event `free` of a gather that reads has a row of its own for the others. The
schedule that breaks a row is printed by `kvstage explain`, as in `kvstage explain "ring without SyncEvent of 'filled'.read:T1"`.

`fault`: some small instance is called faulty. `-`: none is; of schemes that are right, the first {right} instances were asked.
"""


if __name__ == "__main__":
    print("\n".join(table(list(ORACLES))))
