"""What the runs of a program come to: equal mistakes are one finding, with the schedules under which it shows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .program import HANGS, Run
from .sanitizer_logs import HOST, Access, Report
from .symbols import Stack, Symbols

ANY_ORDER = "a batch of source order Any"
"""What the runtime calls the agent that reads the sources of such batches, at whatever time."""
SHOWN_LINES = 12
"""Lines of a failed test's output that are shown, from its end."""
FIRST, SECOND, MEMORY = "first", "second", "memory"
RUNTIME_KINDS = {"freed": "FREED", "batch": "BATCH", "hang": "HANGS"}


@dataclass(frozen=True, slots=True)
class Place:
    """A labelled line of the program."""

    label: str
    line: str


@dataclass
class Finding:
    """A mistake: what it is, where in the program, and the schedules that show it, the first one to replay."""

    kind: str
    words: str
    places: tuple[Place, ...]
    more: tuple[str, ...] = ()
    schedules: list[str] = field(default_factory=list)

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two findings one: their two lines, in whatever order; without lines, what happened."""
        return tuple(sorted(place.line for place in self.places if place.label != MEMORY)) or (self.kind, self.words)

    def lines(self, command: Sequence[str], runs: int) -> Iterator[str]:
        """The finding in words; `command` is the program with its arguments."""
        yield f"{self.kind:<8} {self.words}"
        width = max((len(place.label) for place in self.places), default=0) + 1
        yield from (f"    {place.label + ':':<{width}} {place.line}" for place in self.places)
        yield from (f"    {line}" for line in self.more)
        yield f"    under {len(self.schedules)} of {runs} schedules; replay: {replay(command, self.schedules[0])}"


def replay(command: Sequence[str], schedule: str) -> str:
    """The command that runs the program under one schedule again."""
    return f"kvstage cpp run --schedules {schedule} -- {' '.join(command)}"


def findings(runs: Iterable[Run]) -> list[Finding]:
    """All mistakes of some runs, in the order in which they came up."""
    runs = list(runs)
    symbols = Symbols()
    symbols.load(stack for run in runs for stack in _stacks(run))
    merged: dict[object, Finding] = {}
    for run in runs:
        seen = set()
        for finding in _of(run, symbols):
            first = merged.setdefault(finding.key, finding)
            if finding.key not in seen:
                first.schedules.append(run.schedule)
            seen.add(finding.key)
    return list(merged.values())


def _stacks(run: Run) -> Iterator[Stack]:
    yield run.log.during
    for noticed in run.log.noticed:
        yield from (noticed.first, noticed.second)
    for report in run.reports:
        yield from (report.allocated, report.freed, *(access.stack for access in report.accesses))


def _of(run: Run, symbols: Symbols) -> Iterator[Finding]:
    for noticed in run.log.noticed:
        lines = [str(symbols.line(stack)) for stack in (noticed.first, noticed.second) if stack]
        places = tuple(Place(label, line) for label, line in zip((FIRST, SECOND), lines, strict=False))
        yield Finding(RUNTIME_KINDS.get(noticed.kind, noticed.kind), noticed.words, places)
    for report in run.reports:
        yield _told(report, run.log.during, symbols)
    if run.exit_code == HANGS and not run.log.noticed:
        yield Finding("HANGS", "the runtime has ended it", (), _tail(run.output))
    if run.failed:
        how = f"exit code {run.exit_code}" if run.exit_code >= 0 else f"signal {-run.exit_code}"
        yield Finding("FAILS", how, (), _tail(run.output))


def _tail(output: str) -> tuple[str, ...]:
    return tuple(f"| {line}" for line in output.rstrip().splitlines()[-SHOWN_LINES:])


def _told(report: Report, during: Stack, symbols: Symbols) -> Finding:
    # What the host did before it issued an operation is in order with that: without an order, the host comes second.
    accesses = sorted(report.accesses, key=lambda access: access.who.startswith(HOST))
    stacks = [access.stack for access in accesses]
    if during:
        stacks = [during, *([report.freed] if report.freed else [])]
    places = [Place(label, str(symbols.line(stack))) for label, stack in zip((FIRST, SECOND), stacks, strict=False)]
    if report.memory:
        origin = f", from {symbols.line(report.allocated)}" if report.allocated else ""
        places.append(Place(MEMORY, report.memory + origin))
    if len(accesses) == 2:
        first, second = accesses
        return Finding("RACE", _race(first, second), tuple(places), tuple(_repairs(first, second)))
    return Finding("MEMORY", report.kind, tuple(places))


def _race(first: Access, second: Access) -> str:
    if first.who.startswith(HOST):  # two threads of the program's
        return f"{second.who} {_does(second)} what {first.who} {_does(first)}, and nothing orders them"
    late = "may still write" if first.writes else "may still read"
    return f"{second.who} {_does(second)} what {first.who} {late}: a wait is missing"


def _does(access: Access) -> str:
    return "writes" if access.writes else "reads"


def _repairs(first: Access, second: Access) -> Iterator[str]:
    """The waits that would put a stream's access before the other one."""
    if first.who.startswith(HOST):
        return
    yield "any of these, right before the second, keeps them apart:"
    event = f"an event that is recorded on {first.who} right after the first, and"
    if second.who.startswith(HOST):
        yield f"  cudaStreamSynchronize of {first.who}"
        yield f"  {event} cudaEventSynchronize"
    elif second.who == ANY_ORDER:
        yield f"  cudaStreamSynchronize of {first.who} before it"
        yield f"  cudaMemcpySrcAccessOrderStream among its attributes, if it is put into {first.who}"
    else:
        yield f"  {event} cudaStreamWaitEvent of {second.who}"
        yield f"  cudaStreamSynchronize of {first.who} before the second is issued"
