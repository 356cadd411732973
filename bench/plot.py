"""The share of a step that is staging, over the history that the step stages: one line a scheme, as SVG."""

from html import escape
from math import ceil
from typing import Any

from .replay import FLAT

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 130, 56, 52
"""Margins around the axes, in pixels; the right one holds the names of the lines."""
DASHES = ("", "8 4", "2 3", "10 3 2 3")
"""Lines differ in their dashes too, for readers who don't see the colours."""
NOTE = "measured beside a small model: rows and their staging are real, the rest of the step is not"
STYLE = """\
text { font: 13px sans-serif; fill: #1f2328 } .small { font-size: 12px; fill: #59636e }
.back { fill: #ffffff } .grid { stroke: #d1d9e0 } .line { fill: none; stroke-width: 2 }
.c0 { stroke: #b35900 } .c1 { stroke: #0969da } .c2 { stroke: #8250df } .c3 { stroke: #1a7f37 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .small { fill: #9198a1 } .back { fill: #0d1117 } .grid { stroke: #3d444d }
  .c0 { stroke: #f0883e } .c1 { stroke: #4493f8 } .c2 { stroke: #ab7df8 } .c3 { stroke: #3fb950 }
}"""


def share_over_history(device: dict[str, Any]) -> str:
    """An SVG of the prefill in the smallest chunks of one device of a report. The axis of shares ends at a multiple of 20 %."""
    rows = [row for row in device["legs"] if row["scheme"] != FLAT]
    finest = max(rows, key=lambda row: len(row["points"]))
    drawn = [row for row in rows if row["step"] == finest["step"]]
    most = max(point["history"] for point in finest["points"])
    title = f"Staging's share of a step of {finest['points'][0]['tokens']} tokens, {device['device']}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text x="{LEFT}" y="24">{escape(title)}</text>',
        f'<text class="small" x="{LEFT}" y="42">{NOTE}</text>',
    ]
    top = ceil(5 * max(point["share"] for row in drawn for point in row["points"])) / 5
    for tick in range(0, round(100 * top) + 1, 20):
        y = _y(tick / 100, top)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="small" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick} %</text>')
    foot = 'class="small" text-anchor="middle"'
    for tick in range(5):
        history = most * tick / 4
        parts.append(f'<text {foot} x="{_x(history, most):.1f}" y="{HEIGHT - BOTTOM + 20}">{history:.0f}</text>')
    parts.append(f'<text {foot} x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}">rows of history in each cache</text>')
    names = _apart([_y(row["points"][-1]["share"], top) for row in drawn])
    for number, (row, label) in enumerate(zip(drawn, names, strict=True)):
        points = " ".join(f"{_x(point['history'], most):.1f},{_y(point['share'], top):.1f}" for point in row["points"])
        colour, dashes = f"c{number % 4}", DASHES[number % 4]
        parts.append(f'<polyline class="line {colour}" stroke-dasharray="{dashes}" points="{points}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{label + 4:.1f}">{escape(row["scheme"])}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _x(history: float, most: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * history / max(1, most)


def _y(share: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share / top)


def _apart(heights: list[float]) -> list[float]:
    """The same heights, those closer than a line of text moved apart, upwards from the lowest."""
    moved: dict[int, float] = {}
    lowest = float("inf")
    for k in sorted(range(len(heights)), key=lambda k: -heights[k]):
        lowest = moved[k] = min(heights[k], lowest - 15)
    return [moved[k] for k in range(len(heights))]
