"""The page of the benchmarks shows what the command prints now: its formulas, its columns, and counts that follow from them."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import bench
from bench.extrapolate import FORMULAS

FOLDER = Path(bench.__file__).parent
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
SHOWN = PAGE.partition("<!-- step: what")[2].partition("<!-- step: end -->")[0]


def test_the_formulas_and_columns_are_those_of_today() -> None:
    assert FORMULAS in SHOWN
    assert "scheme          copies launches    waits      MB" in SHOWN
    for line in SHOWN.splitlines():
        assert len(line) <= 140


def test_the_decode_step_s_counts_follow_from_the_tokens() -> None:
    found = re.search(r"GLM-5.3-Flash step: (\d+) tokens, 22 caches in blocks of 32 rows, (\d+) bytes", SHOWN)
    assert found is not None
    tokens, size = map(int, found.groups())
    assert size == 11 * tokens * 1538
    part = SHOWN.partition(f"ThreadDevice, decode at {tokens}:")[2].partition("\n\n")[0]
    counts = {
        words[0]: tuple(map(int, words[1:4])) for words in (line.split() for line in part.splitlines()[3:]) if words[0] != "flat"
    }
    rows, blocks = 22 * tokens + 22, 22 * tokens // 32 + 22
    assert counts == {
        "per_row": (rows, 0, rows),
        "per_block": (blocks, 0, blocks),
        "direct": (blocks, 0, 44),
        "gather_pinned": (0, 44, 44),
    }


def test_the_plot_beside_it_has_a_line_for_each_scheme() -> None:
    assert "](step.svg)" in PAGE
    root = ET.fromstring((FOLDER / "step.svg").read_text(encoding="utf-8"))
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 4
