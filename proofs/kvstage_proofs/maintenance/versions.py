"""The verdicts under other versions of z3, each in an environment of its own, without torch.

    python -m kvstage_proofs.maintenance.versions 4.13.4.0 4.16.0.0 [--target NAME]

Each version is installed with pip into a temporary environment. Exit code 0 if all versions give each obligation the
verdict that it must get, 1 if one does not, 2 if a version can't be run.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import kvstage_model
import kvstage_proofs

from ..commands.outcomes import AS_EXPECTED, UNUSABLE, WRONG

PACKAGES = (Path(kvstage_model.__file__).parent, Path(kvstage_proofs.__file__).parent)


class VersionError(Exception):
    """A version of z3 can't be installed, or the proofs don't run under it."""


@dataclass(frozen=True)
class VersionRun:
    """The verdicts under one version of z3, and those that are not the expected ones."""

    version: str
    verdicts: dict[str, str]
    wrong: tuple[str, ...]
    seconds: float


def run(version: str, targets: Sequence[str], folder: Path) -> VersionRun:
    """Proves the targets under one version, in `folder`. Raises VersionError if it can't."""
    python = _environment(version, folder / "environment")
    for package in PACKAGES:
        shutil.copytree(package, folder / "packages" / package.name)  # on the path they are alone: no other z3, no torch
    report = folder / "report.json"
    command = [python, "-m", "kvstage_proofs", "prove", "--json", report, *targets]
    ended = _call(command, {"PYTHONPATH": str(folder / "packages")}, folder)
    if not report.exists():
        raise VersionError(f"the proofs don't run under z3 {version}: {ended.stderr.strip()[-2000:]}")
    return _read(version, json.loads(report.read_text(encoding="utf-8")))


def _read(version: str, report: Any) -> VersionRun:
    used = {each["solvers"]["z3"]["version"] for each in report["obligations"] if "z3" in each["solvers"]}
    if used != {".".join(version.split(".")[:3])}:
        raise VersionError(f"asked for z3 {version}, and {sorted(used)} answered")
    verdicts = {each["name"]: each["verdict"] for each in report["obligations"]}
    wrong = tuple(each["name"] for each in report["obligations"] if not each["ok"])
    return VersionRun(version, verdicts, wrong, sum(each["seconds"] for each in report["obligations"]))


def _environment(version: str, folder: Path) -> Path:
    """The interpreter of a new environment that has this version of z3, and nothing else."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    ended = _call([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"z3-solver=={version}"], {}, folder)
    if ended.returncode:
        raise VersionError(f"z3-solver {version} can't be installed: {ended.stderr.strip()[-2000:]}")
    return python


def _call(command: Sequence[object], variables: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    return subprocess.run(words, env=kept | variables, cwd=folder, capture_output=True, text=True, check=False)


def differences(runs: Sequence[VersionRun]) -> list[str]:
    """Each obligation that gets different verdicts from different versions, or a wrong one from any."""
    found = []
    for name in dict.fromkeys(name for each in runs for name in each.verdicts):
        verdicts = {each.version: each.verdicts.get(name, "no verdict") for each in runs}
        if len(set(verdicts.values())) > 1 or any(name in each.wrong for each in runs):
            found.append(f"{name}: {', '.join(f'{verdict} with {version}' for version, verdict in verdicts.items())}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the proofs under each version, and compares."""
    parser = argparse.ArgumentParser(
        prog="python -m kvstage_proofs.maintenance.versions", description="The verdicts under versions of z3."
    )
    parser.add_argument("version", nargs="+", help="a version of z3-solver, such as 4.13.4.0")
    parser.add_argument("--target", action="append", default=[], help="as for `kvstage prove`; default: the whole catalogue")
    arguments = parser.parse_args(argv)
    runs = []
    try:
        for version in arguments.version:
            with TemporaryDirectory() as folder:
                runs.append(run(version, arguments.target, Path(folder)))
            made = runs[-1]
            print(f"z3 {version}: {len(made.verdicts)} verdicts, {len(made.wrong)} wrong, {made.seconds:.0f} s of work", flush=True)
    except VersionError as error:
        print(f"kvstage_proofs.maintenance.versions: {error}", file=sys.stderr)
        return UNUSABLE
    found = differences(runs)
    for line in found:
        print(line)
    return WRONG if found else AS_EXPECTED


if __name__ == "__main__":
    sys.exit(main())
