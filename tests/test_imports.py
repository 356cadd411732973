"""Imports run downwards only: kvstage -> kvstage_model, kvstage_proofs -> kvstage_model, and nothing loads what it must not."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PACKAGES = {"kvstage_model": ROOT / "model", "kvstage": ROOT / "impl", "kvstage_proofs": ROOT / "proofs"}
ALLOWED = {
    "kvstage_model": {"kvstage_model"},
    "kvstage": {"kvstage", "kvstage_model"},
    "kvstage_proofs": {"kvstage_proofs", "kvstage_model"},
}
OUTSIDE = {
    "kvstage_model": {"z3"},
    "kvstage": {"torch", "numpy", "pyopencl"},
    "kvstage_proofs": {"z3", "cvc5"},
}

PLUGIN = {
    "pytest_plugin.py": {"pytest"},
    "staging_runs.py": {"pytest", "_pytest"},
    "staging.py": {"kvstage"},  # inside the function that makes a test's device
}
"""What the modules of the pytest plugin import beyond that. `import kvstage_model` loads none of them."""


def modules(package: str) -> list[Path]:
    return sorted((PACKAGES[package] / package).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """The top-level packages that a file names in its imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_what_lies_below_it(package: str) -> None:
    paths = modules(package)
    assert len(paths) > 5
    allowed = ALLOWED[package] | OUTSIDE[package] | sys.stdlib_module_names
    for path in paths:
        assert set(imported(path)) <= allowed | (PLUGIN.get(path.name, set()) if package == "kvstage_model" else set()), path


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import kvstage", {"z3", "kvstage_proofs", "pyopencl"}),
        ("import kvstage_model", {"z3", "torch", "numpy"}),
        ("import kvstage_model", {f"kvstage_model.{name.removesuffix('.py')}" for name in PLUGIN}),
        ("import kvstage_model.pytest_plugin", {"z3", "torch", "numpy", "kvstage", "kvstage_model.schedules"}),
        ("import kvstage_model.staging_runs, kvstage_model.staging", {"z3", "torch", "numpy", "kvstage"}),
        ("import kvstage_model.simulator, kvstage_model.races, kvstage_model.search", {"z3", "torch", "numpy"}),
        ("import kvstage_model.trace_check, kvstage_model.trace_reader", {"z3", "torch", "numpy", "jsonschema"}),
        ("import kvstage_proofs.cli; kvstage_proofs.cli.main(['prove', 'per_row.read:T7'])", {"torch", "numpy", "kvstage"}),
    ],
)
def test_what_a_program_loads(statement: str, absent: set[str]) -> None:
    program = f"{statement}\nimport sys\nloaded = set(sys.modules) & {absent!r}\nassert not loaded, loaded"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_module_that_loads_what_it_must_not_is_seen() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import kvstage_model.world, sys; assert 'z3' not in sys.modules"], capture_output=True, check=False
    )
    assert run.returncode != 0
