"""The solver's budget for each obligation: what it needed when it was last measured, in z3's own count of steps.

Unlike time, the count hardly varies from run to run or between machines, for one version of z3. An obligation that
suddenly needs more than twice its budget still gets its verdict, but it is on its way to UNKNOWN: the tests are red
before it arrives there.

    python -m kvstage_proofs.maintenance.budgets --write     measures all obligations, and writes the file
    python -m kvstage_proofs.maintenance.budgets             measures them, and compares
    ... --report FILE                            takes what `kvstage prove --json FILE` measured
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..commands.parallel import judge_all
from ..reports.json_report import as_json
from ..targets.names import obligations

FILE = Path(__file__).with_name("budgets.json")
FACTOR = 2
"""How many times its budget an obligation may need."""
FREE = 100_000
"""Steps that any obligation may need, some hundredths of a second: the nonlinear lemmas alone were seen to need 8,000 to
76,000, with what else their process proved before."""
HOW = "if that is meant to be: python -m kvstage_proofs.maintenance.budgets --write, and commit budgets.json"


@dataclass(frozen=True)
class Budgets:
    """The steps that each obligation needed under one version of z3, by the obligation's name."""

    z3: str
    steps: Mapping[str, int]

    def __str__(self) -> str:
        """The text of the file."""
        return json.dumps({"z3": self.z3, "steps": dict(sorted(self.steps.items()))}, indent=1) + "\n"


def stored() -> Budgets:
    """The budgets that are checked in."""
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    return Budgets(kept["z3"], kept["steps"])


def measured(report: Mapping[str, Any]) -> Budgets:
    """What the obligations of a report needed. Those that ask the solver nothing, since an instance refutes them, need none."""
    asked = {each["name"]: each["solvers"]["z3"] for each in report["obligations"] if "z3" in each["solvers"]}
    versions = {each["version"] for each in asked.values()}
    if len(versions) != 1:
        raise ValueError(f"the report is of {sorted(versions) or 'no'} versions of z3, not of one")
    return Budgets(versions.pop(), {name: each["rlimit"] for name, each in asked.items()})


def faults(needed: Budgets, budgets: Budgets) -> Iterator[str]:
    """Each obligation that needs more than it may, or that has no budget. Of another version of z3 nothing is said."""
    if needed.z3 != budgets.z3:
        return
    for name, steps in needed.steps.items():
        if name not in budgets.steps:
            yield f"{name} has no budget; it needs {steps} steps; {HOW}"
        elif steps > max(FACTOR * budgets.steps[name], FREE):
            yield f"{name} needs {steps} steps, more than {FACTOR} times its budget of {budgets.steps[name]}; {HOW}"


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the budgets, or compares: 0 if all keep within them."""
    parser = argparse.ArgumentParser(prog="python -m kvstage_proofs.maintenance.budgets", description="The solver's budgets.")
    parser.add_argument("--write", action="store_true", help="write what is needed now in place of what is stored")
    parser.add_argument(
        "--report", metavar="FILE", type=Path, help="a report of `kvstage prove --json FILE`; default: prove all now"
    )
    arguments = parser.parse_args(argv)
    needed = measured(_report(arguments.report))
    if arguments.write:
        FILE.write_text(str(needed), encoding="utf-8")
        print(f"wrote {len(needed.steps)} budgets for z3 {needed.z3}")
        return 0
    budgets = stored()
    if needed.z3 != budgets.z3:
        print(f"the budgets are for z3 {budgets.z3}, and this is {needed.z3}: nothing is compared")
    found = list(faults(needed, budgets))
    for fault in found:
        print(fault)
    print(f"{len(needed.steps)} obligations, {len(found)} beyond their budgets")
    return 1 if found else 0


def _report(file: Path | None) -> Any:
    if file is not None:
        return json.loads(file.read_text(encoding="utf-8"))
    return json.loads(as_json(list(judge_all((), obligations(()), lambda _: None))))


if __name__ == "__main__":
    sys.exit(main())
