"""The plot: lines where the shares are, and names that can be read."""

import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

import pytest

from bench.plot import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, share_over_history
from bench.replay import FLAT

SVG = "{http://www.w3.org/2000/svg}"


def leg(step: str, scheme: str, *shares: float) -> dict[str, Any]:
    points = [{"history": 10 * k, "tokens": 10, "share": share} for k, share in enumerate(shares)]
    return {"step": step, "scheme": scheme, "points": points}


def drawn(*legs: dict[str, Any]) -> ET.Element:
    return ET.fromstring(share_over_history({"device": "A <device>", "legs": list(legs)}))


def test_one_line_a_scheme_of_the_smallest_chunks() -> None:
    root = drawn(
        leg("coarse", "per_row", 0.9),
        leg("fine", FLAT, 0.9, 0.9, 0.9),
        leg("fine", "per_row", 0.0, 0.4, 0.8),
        leg("fine", "direct", 0.0, 0.0, 0.2),
    )
    lines = [
        [tuple(map(float, point.split(","))) for point in line.get("points", "").split()] for line in root.iter(f"{SVG}polyline")
    ]
    left, middle, right = LEFT, (LEFT + WIDTH - RIGHT) / 2, WIDTH - RIGHT
    bottom, top = HEIGHT - BOTTOM, TOP  # 0 %, and 80 %, where the axis ends
    assert lines == [
        [(left, bottom), (middle, (bottom + top) / 2), (right, top)],
        [(left, bottom), (middle, bottom), (right, pytest.approx(bottom - (bottom - top) / 4, abs=0.1))],
    ]
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[0] == "Staging's share of a step of 10 tokens, A <device>"
    assert {"0 %", "20 %", "80 %", "per_row", "direct", "0", "10", "20"} <= set(texts)
    assert "100 %" not in texts


def test_names_of_lines_that_end_together_are_moved_apart() -> None:
    root = drawn(*(leg("fine", name, 0.1, share) for name, share in (("a", 0.31), ("b", 0.30), ("c", 0.305), ("d", 0.9))))
    heights = {text.text: float(text.get("y", 0)) for text in root.iter(f"{SVG}text") if text.text in ("a", "b", "c", "d")}
    assert sorted(heights, key=heights.__getitem__) == ["d", "a", "c", "b"]
    assert all(second - first >= 14.9 for first, second in pairwise(sorted(heights.values())))
