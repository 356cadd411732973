"""A trace as a picture: a lane for each agent, side by side, and time downwards. Light and dark, as the reader's page is.

Of a race both accesses are framed, what each does with the common rows is written in it, and the time in which both are
under way is a band across the lanes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from ..ordering.axioms import Moment
from ..ordering.missing_waits import missing_edge
from ..ordering.program import HOST, describe, span
from ..ordering.races import Race, common
from ..ordering.trace import Trace

WIDTH, LEAST_LANE, MARGIN = 800, 190, 16
"""Pixels: of the picture, of a lane (more lanes make it wider), and around it."""
HEAD, LINE, PAD, STEP = 44, 15, 7, 12
"""Pixels: above the first event, of a line of text, above and below a text, and between two events."""
LETTER = 6.3
"""Pixels of a letter, at most on average, in any of the fonts."""

BAND = "the band: both accesses are under way, and touch a common row"

STYLE = """
text { font: 11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1c2733; }
.page { fill: #ffffff; } .lane { fill: #f3f5f8; } .head { font-weight: 600; font-size: 13px; }
.work { fill: #cfe3fb; stroke: #4a86c8; } .wait { fill: #e6e8ec; stroke: #8b95a3; } .take { fill: #d5efd9; stroke: #4d9a5c; }
.racing { fill: #fbd3cf; stroke: #c0352b; stroke-width: 2.5; }
.band { fill: #c0352b; fill-opacity: .18; stroke: #c0352b; stroke-dasharray: 5 3; }
.told { fill: #a3261d; font-weight: 600; }
@media (prefers-color-scheme: dark) {
text { fill: #e4e9f0; }
.page { fill: #12161c; } .lane { fill: #1b212a; }
.work { fill: #1f3d60; stroke: #6ea8e8; } .wait { fill: #333b46; stroke: #8b95a3; } .take { fill: #1f4a2b; stroke: #6cc07f; }
.racing { fill: #5c2020; stroke: #ff8178; }
.band { fill: #ff8178; fill-opacity: .2; stroke: #ff8178; }
.told { fill: #ff9d96; }
}
"""


@dataclass
class _Box:
    """An operation: its lane, its text, from where to where it reaches, and whether it moves rows, waits, or races."""

    index: int
    lane: int
    lines: list[str]
    kind: str
    top: float
    bottom: float = 0.0


def as_svg(trace: Trace, race: Race | None = None) -> str:
    """The picture as SVG, 800 pixels wide for up to four lanes. What has not ended reaches to the end of the picture."""
    lanes = list(trace.lanes())
    lane = max((WIDTH - 2 * MARGIN) / len(lanes), LEAST_LANE)
    boxes, bottom = _laid_out(trace, race, lanes, lane)
    width = 2 * MARGIN + lane * len(lanes)
    told = [BAND, *wrap(missing_edge(trace.program, race), int((width - 2 * MARGIN) / LETTER))] if race else []
    height = bottom + (len(told) + 1) * LINE + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">',
        f"<title>{escape('A race' if race else 'A trace')} of {len(trace.program)} operations</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width:g}" height="{height:g}"/>',
        *_columns(trace, lane, bottom),
        *(line for box in boxes for line in _drawn(box, lane)),
        *(_band(boxes, race, width) if race else ()),
        *(_text(MARGIN, bottom + (number + 1) * LINE, line, "told") for number, line in enumerate(told)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _laid_out(trace: Trace, race: Race | None, lanes: list[str], lane: float) -> tuple[list[_Box], float]:
    """Every operation with its place: each event is a step further down, and a begin as far as its text is high."""
    boxes: dict[int, _Box] = {}
    busy = [0.0] * len(lanes)
    racing = (race.first, race.second) if race else ()
    texts = float(HEAD)  # how far down the texts of the racing accesses reach: the band's edges must not cross them
    y = float(HEAD)
    for place, event in enumerate(trace.events):
        if event.moment is Moment.BEGIN:
            at = lanes.index(trace.lane(event.index))
            y = max(y, busy[at], texts if event.index in racing else 0)
            box = boxes[event.index] = _Box(
                event.index, at, _words(trace, event.index, race, lane), _kind(trace, event.index, race), y
            )
            busy[at] = y + len(box.lines) * LINE + PAD
            texts = busy[at] if event.index in racing else texts
            y = busy[at] if trace.at_once(place) else y + STEP
        elif event.index in boxes:
            box = boxes[event.index]
            y = box.bottom = max(y, busy[box.lane], texts if event.index in racing else 0)
            y += STEP / 2
            busy[box.lane] = y
    end = max(y, *busy) + STEP / 2
    for box in boxes.values():
        box.bottom = box.bottom or end
    return list(boxes.values()), end


def _words(trace: Trace, index: int, race: Race | None, lane: float) -> list[str]:
    """What an operation does, in lines that fit its lane; of a racing one also what it does with the common rows."""
    issued = trace.program[index]
    words = describe(issued)
    words = words if issued.agent == HOST else words.removesuffix(f" on stream {issued.agent}")
    letters = int((lane - 4 * PAD) / LETTER)
    lines = wrap(words, letters, break_on_hyphens=False)
    if race and index in (race.first, race.second):
        other = race.second if index == race.first else race.first
        verb, rows = common(issued.operation, trace.program[other].operation)
        lines += wrap(f"{verb} {span(rows)}", letters, break_on_hyphens=False)
    return lines


def _kind(trace: Trace, index: int, race: Race | None) -> str:
    if race and index in (race.first, race.second):
        return "racing"
    operation = trace.program[index].operation
    touches = any(hasattr(operation, name) for name in ("source", "target", "copies", "reads"))
    return "wait" if not touches else "take" if trace.program[index].agent == HOST else "work"


def _columns(trace: Trace, lane: float, bottom: float) -> Iterator[str]:
    for number, name in enumerate(trace.lanes().values()):
        left = MARGIN + number * lane
        yield f'<rect class="lane" x="{left + 3:g}" y="8" width="{lane - 6:g}" height="{bottom - 8:g}" rx="5"/>'
        yield _text(left + 2 * PAD, 28, name, "head")


def _drawn(box: _Box, lane: float) -> Iterator[str]:
    left, wide = MARGIN + box.lane * lane + PAD, lane - 2 * PAD
    high = max(box.bottom - box.top, 3.0)
    yield f'<rect class="{box.kind}" x="{left:g}" y="{box.top:g}" width="{wide:g}" height="{high:g}" rx="4"/>'
    for number, line in enumerate(box.lines):
        yield _text(left + PAD, box.top + (number + 1) * LINE - 1, line, "told" if box.kind == "racing" else "")


def _band(boxes: list[_Box], race: Race, width: float) -> Iterator[str]:
    """Where both accesses of a race are under way."""
    both = [box for box in boxes if box.index in (race.first, race.second)]
    top, bottom = max(box.top for box in both), min(box.bottom for box in both)
    if len(both) == 2 and top < bottom:
        yield f'<rect class="band" x="{MARGIN / 2:g}" y="{top:g}" width="{width - MARGIN:g}" height="{bottom - top:g}"/>'


def _text(x: float, y: float, words: str, kind: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{named}>{escape(words)}</text>'
