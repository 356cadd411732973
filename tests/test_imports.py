"""Imports run downwards only: one table says which sub-package may import which, and what a program must not load is not loaded."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.paths import ROOT

ROOTS = {
    "kvstage_model": "model",
    "kvstage": "impl",
    "pytest_kvstage": "impl",
    "kvstage_cpp": "cpp",
    "kvstage_proofs": "proofs",
    "kvstage_emit": "proofs",
}

ALLOWED = {
    # kvstage_model: the ground
    "kvstage_model": "language",
    "kvstage_model.language": "",
    "kvstage_model.ordering": "language",
    "kvstage_model.schemes": "language",
    "kvstage_model.schedules": "language ordering",
    "kvstage_model.traces": "language ordering",
    "kvstage_model.tier": "",
    "kvstage_model.cases": "language",
    "kvstage_model.symbolic": "language ordering z3",
    "kvstage_model.simulation": "language ordering schedules",
    "kvstage_model.search": "language ordering schedules simulation",
    # kvstage: the library, never z3
    "kvstage.errors": "",
    "kvstage.pool": "errors torch",
    "kvstage.costs": "kvstage_model.language kvstage_model.schemes",
    "kvstage.devices": "costs errors kvstage_model.language kvstage_model.schedules kvstage_model.simulation numpy torch",
    "kvstage.arguments": "errors pool kvstage_model.language kvstage_model.schemes numpy torch",
    "kvstage.runtime": "devices errors kvstage_model.language numpy torch",
    "kvstage.selection": "costs devices errors pool kvstage_model.language kvstage_model.schemes torch numpy",
    "kvstage.checked": (
        "devices errors kvstage_model.language kvstage_model.ordering kvstage_model.schedules kvstage_model.simulation numpy torch"
    ),
    "kvstage.cuda": (
        "checked errors kvstage_model.language kvstage_model.ordering kvstage_model.schedules kvstage_model.simulation numpy torch"
    ),
    "kvstage.recorder": (
        "checked devices errors kvstage_model.language kvstage_model.ordering kvstage_model.schedules kvstage_model.simulation "
        "numpy torch"
    ),
    "kvstage.transfer": "arguments errors runtime selection",
    "kvstage.calls": "arguments devices errors pool runtime selection transfer kvstage_model.language kvstage_model.schemes torch",
    "kvstage.submitter": "arguments calls pool transfer torch",
    "kvstage.batch": "arguments calls errors runtime submitter transfer",
    "kvstage.stager": (
        "arguments batch calls costs devices errors pool selection submitter transfer kvstage_model.language kvstage_model.schemes"
    ),
    "kvstage.ops": "errors pool stager torch",
    "kvstage.tier": "arguments batch errors pool stager kvstage_model.language kvstage_model.tier numpy torch",
    "kvstage": (
        "batch checked costs cuda devices errors ops pool runtime selection stager transfer kvstage_model.language "
        "kvstage_model.schemes"
    ),
    # pytest_kvstage: the plugin
    "pytest_kvstage": "",
    "pytest_kvstage.plan": "kvstage_model.schedules",
    "pytest_kvstage.staging_schedule": "kvstage kvstage_model.schedules",
    "pytest_kvstage.cuda_schedule": "kvstage.cuda staging_schedule kvstage_model.schedules pytest",
    "pytest_kvstage.runs": "cuda_schedule plan staging_schedule kvstage_model.schedules pytest _pytest",
    "pytest_kvstage.plugin": "cuda_schedule plan runs kvstage.cuda kvstage_model.schedules pytest",
    # kvstage_cpp: tests of C++ engines, Python alone
    "kvstage_cpp": "",
    "kvstage_cpp.errors": "",
    "kvstage_cpp.symbols": "kvstage_cpp errors",
    "kvstage_cpp.run_log": "symbols",
    "kvstage_cpp.sanitizer_logs": "symbols",
    "kvstage_cpp.program": "errors run_log sanitizer_logs",
    "kvstage_cpp.findings": "program sanitizer_logs symbols",
    "kvstage_cpp.schedules": "errors kvstage_model.schedules",
    "kvstage_cpp.judge": "errors findings program schedules",
    "kvstage_cpp.report": "judge",
    "kvstage_cpp.trace_memory": "errors kvstage_model",
    "kvstage_cpp.trace": ("errors program trace_memory kvstage_model kvstage_model.ordering kvstage_model.traces"),
    "kvstage_cpp.convert": "errors",
    "kvstage_cpp.command": "kvstage_cpp convert errors judge program report schedules trace",
    "kvstage_cpp.build": "kvstage_cpp errors",
    "kvstage_cpp.pytest_plugin": "build pytest",
    # kvstage_proofs: theorems and the command line, never torch
    "kvstage_proofs": "",
    "kvstage_proofs.solvers": "kvstage_model.symbolic z3 cvc5",
    "kvstage_proofs.obligation": "solvers kvstage_model.search",
    "kvstage_proofs.theorems": (
        "obligation solvers kvstage_model.language kvstage_model.ordering kvstage_model.schedules kvstage_model.schemes "
        "kvstage_model.search kvstage_model.simulation kvstage_model.symbolic kvstage_model.tier z3"
    ),
    "kvstage_proofs.judging": (
        "obligation solvers theorems kvstage_model.language kvstage_model.ordering kvstage_model.search kvstage_model.symbolic z3"
    ),
    "kvstage_proofs.catalogue": (
        "judging obligation theorems kvstage_model.cases kvstage_model.language kvstage_model.schemes "
        "kvstage_model.symbolic kvstage_model.tier"
    ),
    "kvstage_proofs.targets": "catalogue obligation theorems kvstage_model.language kvstage_model.symbolic",
    "kvstage_proofs.reports": (
        "catalogue judging obligation solvers targets theorems kvstage_model.cases kvstage_model.language kvstage_model.ordering "
        "kvstage_model.schemes "
        "kvstage_model.search kvstage_model.symbolic kvstage_model.traces z3"
    ),
    "kvstage_proofs.commands": (
        "catalogue judging obligation reports solvers targets theorems kvstage_model.cases kvstage_model.language "
        "kvstage_model.ordering "
        "kvstage_model.schedules kvstage_model.schemes kvstage_model.search kvstage_model.simulation kvstage_model.traces "
        "kvstage_emit.reading kvstage_emit.writing kvstage_cpp.command kvstage_cpp.errors"
    ),
    "kvstage_proofs.maintenance": "kvstage_model kvstage_proofs commands reports solvers targets kvstage_model.symbolic z3",
    "kvstage_proofs.__main__": "commands",
    # kvstage_emit: schemes as C++, loaded when they are asked for
    "kvstage_emit": "",
    "kvstage_emit.reading": "kvstage_model.language kvstage_model.symbolic",
    "kvstage_emit.writing": "reading kvstage_model.language kvstage_model.schemes kvstage_model.symbolic",
}
"""Each sub-package, or file beside them, and what it may import beside Python's own: of its own package by the last name alone.

`kvstage_model` stands on Python alone, but for z3 in `symbolic`; `kvstage` never loads z3, `kvstage_proofs` never torch.
"""


def files() -> dict[str, Path]:
    """Every module's file, by its dotted name."""
    found = {}
    for package, root in ROOTS.items():
        for file in (ROOT / root / package).rglob("*.py"):
            found[".".join(file.relative_to(ROOT / root).with_suffix("").parts).removesuffix(".__init__")] = file
    return found


FILES = files()


def group(module: str) -> str:
    """The sub-package of a module, or the module itself if it lies beside them."""
    return ".".join(module.split(".")[:2])


def imported(module: str) -> Iterator[str]:
    """What a module's file names in its imports: modules of ours as they are, top-level packages otherwise."""
    file = FILES[module]
    here = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name if name.name in FILES else name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for name in node.names:
                inner = f"{base}.{name.name}"
                yield inner if inner in FILES else base if base in FILES else base.partition(".")[0]


def allowed(name: str) -> set[str]:
    """What the table lets a sub-package import."""
    package = name.partition(".")[0]
    words = ALLOWED[name].split()
    return {each for word in words for each in (word, f"{package}.{word}")} | {name} | set(sys.stdlib_module_names)


def test_the_table_names_every_sub_package_and_no_other() -> None:
    assert {group(module) for module in FILES} == ALLOWED.keys()
    assert len(FILES) > 150


@pytest.mark.parametrize("name", ALLOWED)
def test_a_sub_package_imports_what_the_table_says(name: str) -> None:
    found = {group(each) for module in FILES if group(module) == name for each in imported(module)}
    assert found <= allowed(name), found - allowed(name)


@pytest.mark.parametrize("name", ALLOWED)
def test_the_table_allows_nothing_that_is_not_used(name: str) -> None:
    used = {group(each) for module in FILES if group(module) == name for each in imported(module)}
    package = name.partition(".")[0]
    unused = {word for word in ALLOWED[name].split() if word not in used and f"{package}.{word}" not in used}
    assert not unused


def test_an_import_that_the_table_does_not_allow_is_seen() -> None:
    assert "kvstage_model.search" not in allowed("kvstage_model.language")
    assert "z3" not in allowed("kvstage.stager")
    assert {"z3", "kvstage_model.symbolic.scheme_model"} <= set(imported("kvstage_model.symbolic.window"))


def test_sub_packages_and_files_are_in_no_circle() -> None:
    arrows = {module: set(imported(module)) & FILES.keys() for module in FILES}
    assert len(list(TopologicalSorter(arrows).static_order())) == len(FILES)
    between = {
        name: {group(each) for module in FILES if group(module) == name for each in arrows[module]} - {name} for name in ALLOWED
    }
    assert len(list(TopologicalSorter(between).static_order())) == len(ALLOWED)
    first, second = "kvstage_model.symbolic.index", "kvstage_model.symbolic.world"
    with pytest.raises(CycleError):
        list(TopologicalSorter(arrows | {first: {second}}).static_order())


@pytest.mark.parametrize("module", [name for name in FILES if FILES[name].name == "__init__.py"])
def test_each_folder_says_what_it_is_and_what_to_read_first(module: str) -> None:
    doc = ast.get_docstring(ast.parse(FILES[module].read_text(encoding="utf-8"))) or ""
    assert len(doc) > 40
    if "." in module and module != "kvstage_proofs.maintenance":
        assert "Read `" in doc


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import kvstage", {"z3", "kvstage_proofs", "pyopencl"}),
        ("import kvstage_model", {"z3", "torch", "numpy", "kvstage_model.schedules"}),
        ("import pytest_kvstage.plugin", {"z3", "torch", "numpy", "kvstage", "kvstage_model"}),
        ("import pytest_kvstage.runs", {"z3", "torch", "numpy", "kvstage"}),
        ("import kvstage_model.search.search, kvstage_model.symbolic.errors", {"z3", "torch", "numpy"}),
        ("import kvstage_model.traces", {"z3", "torch", "numpy", "jsonschema"}),
        (
            "import kvstage_proofs.commands.main; kvstage_proofs.commands.main.main(['prove', 'per_row.read:T7'])",
            {"torch", "numpy", "kvstage"},
        ),
    ],
)
def test_what_a_program_loads(statement: str, absent: set[str]) -> None:
    program = f"{statement}\nimport sys\nloaded = set(sys.modules) & {absent!r}\nassert not loaded, loaded"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_module_that_loads_what_it_must_not_is_seen() -> None:
    program = "import kvstage_model.symbolic.world, sys; assert 'z3' not in sys.modules"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert run.returncode != 0
