"""ARCHITECTURE.md is true: the files that it names are there, and its recipes work by touching the files that they name alone."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROOTS = ("model", "impl", "cpp", "proofs")

SCHEME = '''"""Every row by itself, straight into its place, and a wait for each: nobody needs it, and it is right."""

from collections.abc import Iterator

from ..language.buffers import Buffer, Memory
from ..language.edits import Named
from ..language.operations import Copy, Operation, SyncStream
from ..language.parameters import Distinct
from ..language.partitions import Runs
from ..language.scheme import Direction, Result, Scheme
from .base import STREAM, pool_of
from .loop import Loop, Loops, each_run


def tiny_read(runs: Runs) -> Scheme:
    pool, out = pool_of(runs), Buffer("out", Memory.PINNED, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        yield Copy(STREAM, pool.at(run.slot, run.start, run.count), out.at(0, run.position, run.count))
        yield SyncStream(STREAM)

    result = Result(Direction.READ, pool, out, runs.length, runs.address, runs.holder)
    return Scheme("tiny read", (pool, out), runs.number, step, result=result)


def tiny_write(runs: Distinct[Runs]) -> Scheme:
    pool, rows = pool_of(runs), Buffer("rows", Memory.PINNED, 1, runs.length)

    def step(i: int) -> Iterator[Operation]:
        run = runs.part(i)
        yield Copy(STREAM, rows.at(0, run.position, run.count), pool.at(run.slot, run.start, run.count))
        yield SyncStream(STREAM)

    result = Result(Direction.WRITE, pool, rows, runs.length, runs.address, runs.holder)
    return Scheme("tiny write", (pool, rows), runs.number, step, result=result)


_EACH = {Named(Copy): each_run, Named(SyncStream): each_run}
TINY = Loops(Loop(tiny_read, _EACH), Loop(tiny_write, _EACH))
'''
ENTRY = '    SchemeEntry("tiny", TINY, block_by_block, Needs(pinned=True), stages=False),\n'
USED = """
import torch
from kvstage import HostDevice, PagedPool, Stager
pool, rows = PagedPool(torch.zeros(4, 2, 3)), torch.arange(15.0).view(5, 3)
with HostDevice() as device:
    stager = Stager(device, scheme="tiny")
    stager.write(pool, [3, 0, 1], 0, rows).wait()
    read = stager.read(pool, [3, 0, 1], 0, 5)
    read.wait()
    assert torch.equal(read.result(), rows) and read.stats.copies == read.stats.waits == 3
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The packages, to be changed."""
    for root in ROOTS:
        shutil.copytree(ROOT / root, tmp_path / root, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(tree: Path, *arguments: str) -> str:
    """What a Python program prints with the packages of a tree."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(tree / root) for root in ROOTS), "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def named(heading: str) -> list[str]:
    """The files and folders that a recipe names."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return re.findall(r"`([\w/]+/[\w.]*)`", section)


def test_what_the_page_names_is_there() -> None:
    paths = set(re.findall(r"`((?:kvstage|model|impl|proofs|tests)[\w]*/[\w/.]*)`", PAGE))
    assert len(paths) > 15
    for path in paths:
        assert any((base / path).exists() for base in (ROOT, *(ROOT / root for root in ROOTS))), path


def test_a_scheme_is_its_file_and_one_entry(tree: Path) -> None:
    folder, registry = named("Add a scheme")
    (tree / folder / "tiny.py").write_text(SCHEME, encoding="utf-8")
    changed(tree / registry, "from .staged import STAGED\n", "from .staged import STAGED\nfrom .tiny import TINY\n")
    changed(tree / registry, '    SchemeEntry("staged", STAGED),\n', f'    SchemeEntry("staged", STAGED),\n{ENTRY}')
    proved = run(tree, "-m", "kvstage_proofs", "prove", "tiny")
    assert {f"tiny.{way}:{theorem}" for way in ("read", "write") for theorem in ("T1", "T3", "T4", "T6", "T7")} <= set(
        proved.split()
    )
    assert "NOT as expected" not in proved
    assert run(tree, "-c", USED) == ""
    assert "tiny.read" in run(tree, "-m", "kvstage_proofs", "traces", "tiny.read", "-o", "out")


def test_a_trace_format_is_its_file_and_one_entry(tree: Path) -> None:
    folder, formats = named("Add a trace format")
    text = 'def as_count(trace: object) -> str:\n    return f"{len(trace.program)} operations\\n"\n'
    (tree / folder / "count.py").write_text(text, encoding="utf-8")
    file = tree / formats
    changed(
        file,
        "from kvstage_model.traces.svg import as_svg\n",
        "from kvstage_model.traces.count import as_count\nfrom kvstage_model.traces.svg import as_svg\n",
    )
    changed(
        file,
        "FORMATS: dict[str, Format] = {\n",
        'FORMATS: dict[str, Format] = {\n    "count": Format(".count", lambda written, shown: as_count(shown)),\n',
    )
    run(tree, "-m", "kvstage_proofs", "traces", "per_row.read", "-o", "out", "--format", "count")
    written = list((tree / "out").rglob("*.count"))
    assert written
    assert all(each.read_text(encoding="utf-8").endswith("operations\n") for each in written)
