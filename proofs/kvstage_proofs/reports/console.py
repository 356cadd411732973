"""Judgements as people read them: a line each, a short counterexample, and a summary."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..obligation import Judgement, Statement, Verdict
from ..targets.user_file import is_file

SHORT = 4
"""Events of a schedule that are shown when not all of it is."""
MARK = "<--"
"""What ends the lines of two accesses that overlap."""

GREEN, YELLOW, RED, PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[1;31m", "\x1b[0m"


@dataclass(frozen=True)
class Text:
    """The report as text: columns wide enough for all of `statements`, colours if `coloured`."""

    statements: Sequence[Statement]
    coloured: bool = False

    def line(self, judgement: Judgement) -> str:
        """One obligation: verdict, name, what it says, queries, seconds, and what was expected if that is something else."""
        statement, verdict = judgement.statement, judgement.verdict
        parts = [
            self._in_colour(judgement, f"{verdict.value:<{max(len(each.value) for each in Verdict)}}"),
            f"{statement.name:<{max(len(each.name) for each in self.statements)}}",
            f"{statement.title:<{max(len(each.title) for each in self.statements)}}",
            f"{counted(len(judgement.asked), 'query', 'queries'):>11}",
            f"{judgement.seconds:5.1f} s",
        ]
        if judgement.counterexample is not None:
            parts.append(f"in {counted(judgement.counterexample.steps, 'step', 'steps')}")
        if not judgement.ok:
            parts.append(self._in_colour(judgement, f"<- expected {statement.expected.value}"))
        return "  ".join(parts).rstrip()

    def details(self, judgement: Judgement, schedule: bool, whole: bool = False) -> Iterator[str]:
        """The lines below it: the reason if there is one, and if the `schedule` is wanted the counterexample, short or `whole`."""
        if judgement.reason:
            yield f"    {judgement.reason}"
        if schedule and judgement.counterexample is not None:
            lines = tuple(judgement.counterexample.lines())
            yield from (f"    {line}" for line in (lines if whole else shortened(lines, judgement.statement)))

    def _in_colour(self, judgement: Judgement, text: str) -> str:
        if not self.coloured:
            return text
        colour = GREEN if judgement.ok else YELLOW if judgement.verdict is Verdict.UNKNOWN else RED
        return f"{colour}{text}{PLAIN}"


def shortened(lines: Sequence[str], statement: Statement) -> Iterator[str]:
    """A counterexample in at most SHORT lines of its schedule: the two accesses that overlap, or the last events.

    `lines` are the instance, the schedule and what is wrong. What is left out is counted, with the command that tells all.
    """
    instance, *schedule, wrong = lines
    marked = [line for line in schedule if line.endswith(MARK)]
    shown = marked or schedule[-SHORT:]
    yield instance
    yield from shown if len(schedule) > SHORT else schedule
    if len(schedule) > max(SHORT, len(shown)):
        target = statement.scheme if is_file(statement.scheme) else statement.name
        left_out = counted(len(schedule) - len(shown), "event", "events")
        yield f"    ({left_out} more: kvstage explain {target})"
    yield wrong


def summary(judgements: Sequence[Judgement], seconds: float) -> str:
    """All in one line. `seconds` is the time that the run took."""
    right = Counter(judgement.verdict for judgement in judgements if judgement.ok)
    wrong = Counter(judgement.verdict for judgement in judgements if not judgement.ok)
    parts = [f"{_counts(right)} as expected"] if right else []
    parts += [f"NOT as expected: {_counts(wrong)}"] if wrong else []
    work = sum(judgement.seconds for judgement in judgements)
    number = counted(len(judgements), "obligation", "obligations")
    return f"{number}: {'; '.join(parts) or 'nothing was judged'}; {work:.0f} s of work in {seconds:.0f} s"


def _counts(verdicts: Counter[Verdict]) -> str:
    return ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdict in verdicts)


def counted(number: int, one: str, many: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} {one if number == 1 else many}"
