"""All idioms on the simulated device: `python -m tests.support.cuda_idioms.table [--json] [--delayed] [NAME ...]`.

A process that has run this keeps the device: start another one for anything else.

Each twin is run in issue order, late, and under the witness of each finding of those two.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product

import kvstage
from kvstage_model.schedules.drivers import delays
from kvstage_model.schedules.replay_strings import from_string, to_string
from kvstage_model.schedules.schedule import IssueOrder, Late, Schedule
from tests.support.cuda_idioms.hazards import HAZARDS
from tests.support.cuda_idioms.idiom import Idiom
from tests.support.cuda_idioms.registry import IDIOMS

ALL = (*IDIOMS, *HAZARDS)
TWINS = ("right", "wrong")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a twin: what was found, and what it gave, or the exception that ended it. `replays`: the findings' witnesses."""

    schedule: str
    findings: list[str]
    replays: list[str]
    gave: list[float] | None
    error: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the runs of one twin said. `gives` is what they should give."""

    topic: str
    name: str
    twin: str
    gives: list[float]
    runs: list[Run]

    @property
    def found(self) -> bool:
        """Whether anything was found in any run."""
        return any(run.findings for run in self.runs)

    @property
    def wrong_under(self) -> list[str]:
        """The schedules under which the bytes were wrong, or the code ended early."""
        return [run.schedule for run in self.runs if run.gave != self.gives]

    @property
    def as_it_should_be(self) -> bool:
        """Silent and with the right bytes in all runs, or found and with wrong bytes in some."""
        return not (self.found or self.wrong_under) if self.twin == "right" else self.found and bool(self.wrong_under)

    def __str__(self) -> str:
        found = sum(len(run.findings) for run in self.runs[:1])
        cells = f"{self.topic:22} {self.name:62} {self.twin:5}  {found:8}  {len(self.runs):4}  {len(self.wrong_under):5}"
        return cells if self.as_it_should_be else f"{cells}  <- {'; '.join(map(_in_short, self.runs))}"


HEAD = f"{'about':22} {'idiom':62} {'twin':5}  findings  runs  wrong"


def _in_short(run: Run) -> str:
    return f"{run.schedule}: {(run.error or ' '.join(run.findings) or f'gave {run.gave}').splitlines()[0]}"


def outcome(idiom: Idiom, twin: str, *, delayed: bool) -> Outcome:
    """Runs a twin under its schedules; with `delayed`, then with each half of each operation held back."""
    body: Callable[[], list[float]] = getattr(idiom, twin)
    runs = [_run(body, IssueOrder()), _run(body, Late())]
    witnesses = dict.fromkeys(replay for run in runs for replay in run.replays)
    runs += [_run(body, from_string(replay)) for replay in witnesses]
    if delayed:
        runs += [run for _, run in delays(lambda schedule: _run(body, schedule))]
    return Outcome(idiom.topic, idiom.name, twin, idiom.gives, runs)


def _run(body: Callable[[], list[float]], schedule: Schedule) -> Run:
    gave, error = None, ""
    with kvstage.simulated_cuda(schedule, raises=False) as simulation:
        try:
            gave = body()
        except Exception as raised:  # noqa: BLE001 - it is shown in the table
            error = f"{type(raised).__name__}: {raised}"
    findings = simulation.findings
    return Run(to_string(schedule), [str(each) for each in findings], [each.schedule for each in findings], gave, error)


def from_json(text: str) -> list[Outcome]:
    """What `--json` has printed."""
    return [Outcome(**{**each, "runs": [Run(**run) for run in each["runs"]]}) for each in map(json.loads, text.splitlines())]


def main() -> int:
    """Prints one line for each twin; ends with 1 if one is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object for each twin")
    parser.add_argument(
        "--delayed", action="store_true", help="the right twins alone, also with each half of each operation held back"
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    chosen = [idiom for idiom in ALL if not arguments.names or idiom.name in arguments.names]
    right = True
    if not arguments.json:
        print(HEAD)
    for idiom, twin in product(chosen, TWINS[:1] if arguments.delayed else TWINS):
        each = outcome(idiom, twin, delayed=arguments.delayed)
        print(json.dumps(asdict(each)) if arguments.json else each, flush=True)
        right = right and each.as_it_should_be
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
