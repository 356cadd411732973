"""The package: its example runs, and importing it loads no solver."""

import doctest
import importlib
import inspect
import subprocess
import sys

import pytest

import kvstage


def test_the_example_of_the_package_runs():
    result = doctest.testmod(kvstage)
    assert result.attempted >= 7
    assert result.failed == 0


@pytest.mark.parametrize("name", ["pool", "stager", "batch", "transfer"])
def test_the_examples_of_public_classes_run(name):
    result = doctest.testmod(importlib.import_module(f"kvstage.{name}"))
    assert result.attempted >= 2
    assert result.failed == 0


def test_every_public_name_says_what_it_is():
    for name in kvstage.__all__:
        shown = getattr(kvstage, name)
        assert inspect.getdoc(shown), name
        methods = [each for each, value in vars(shown).items() if not each.startswith("_") and callable(value)]
        assert all(inspect.getdoc(getattr(shown, each)) for each in methods), name


def loaded(statement: str) -> set[str]:
    """Which of torch and z3 a fresh interpreter has loaded after a statement."""
    code = f"import sys; sys.path[:0] = {sys.path!r}; {statement}; print(*sys.modules.keys() & {{'torch', 'z3'}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout.split())


def test_importing_the_library_loads_no_solver():
    assert loaded("import kvstage") == {"torch"}
    assert loaded("import kvstage, z3") == {"torch", "z3"}
