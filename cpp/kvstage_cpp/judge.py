"""Runs a program under its schedules: the first run says how many operations there are to hold back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .errors import CppError
from .findings import Finding, findings
from .program import Run, Settings, run
from .schedules import DEFAULT, checked, schedules


@dataclass(frozen=True)
class Verdict:
    """All runs, and what was found in them: nothing, if the program is right under each of the schedules."""

    runs: tuple[Run, ...]
    findings: tuple[Finding, ...]


def judge(test: Sequence[str], asked: Sequence[str] = DEFAULT, settings: Settings | None = None) -> Verdict:
    """Judges a test, which is a program and its arguments. Raises CppError if its runs would prove nothing."""
    runs = tuple(_runs(list(test), checked(asked), settings or Settings()))
    return Verdict(runs, tuple(findings(runs)))


def _runs(test: list[str], asked: Sequence[str], settings: Settings) -> Iterator[Run]:
    first = next(iter(schedules(asked, 1)))
    known = usable(run(test, first, settings))
    yield known
    for schedule in schedules(asked, known.log.counts.operations):
        if schedule != first:
            yield run(test, schedule, settings)


def usable(known: Run) -> Run:
    """A run, if it shows anything. Raises CppError otherwise."""
    if not known.log.linked:
        raise CppError(
            f"the program does not use kvstage's CUDA runtime (exit code {known.exit_code}): link it with kvstage::cuda, or with "
            "what `kvstage cpp --source` names" + "".join(f"\n| {line}" for line in known.output.splitlines()[-5:])
        )
    stopped = known.reports or known.log.noticed  # before it could count, maybe
    if known.exit_code == 0 and not known.log.ended and not stopped:
        raise CppError("the program ended by _exit or the like: the runtime could not count its operations; return from main")
    if known.exit_code == 0 and not known.log.counts.operations and not stopped:
        raise CppError("the program issued no operation on a stream: there is nothing to hold back, and its runs prove nothing")
    return known
