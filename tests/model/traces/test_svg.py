"""Pictures of traces: every operation in its lane and time, a race framed, and where both accesses are under way."""

import itertools
import re
from collections.abc import Callable, Sequence
from xml.etree import ElementTree

import pytest

from kvstage_model import schemes
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.edits import Named, without
from kvstage_model.language.operations import Copy, HostRead, Operation, Release, SyncEvent, SyncStream, WaitEvent
from kvstage_model.language.partitions import by_block, by_chunk
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import HappensBefore, Race, races
from kvstage_model.ordering.trace import Trace, TraceEvent
from kvstage_model.schedules.schedule import Hold
from kvstage_model.simulation.simulator import simulate
from kvstage_model.traces.svg import LETTER, WIDTH, as_svg
from tests.support.programs import issued
from tests.support.traces import ROWS

SVG = "{http://www.w3.org/2000/svg}"
BROKEN: dict[str, Callable[[], Scheme]] = {
    "staged": lambda: without(Named(SyncStream))(schemes.staged_read(by_block(ROWS))),
    "ring": lambda: without(Named(SyncEvent))(schemes.ring_read(by_block(ROWS), 2)),
    "gather": lambda: without(Named(WaitEvent, schemes.STREAM))(schemes.gather_read(by_chunk(ROWS, 2), 1, 2)),
}


def racing(name: str) -> tuple[Trace, Race]:
    program = unroll([BROKEN[name]()])
    race = next(races(program))
    return HappensBefore(program).schedule(race).until(race.first, race.second), race


def rectangles(svg: str, *kinds: str) -> list[dict[str, str]]:
    return [dict(each.attrib) for each in ElementTree.fromstring(svg).iter(f"{SVG}rect") if each.get("class") in kinds]


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_every_operation_is_a_box_in_its_lane_and_boxes_of_a_lane_do_not_overlap() -> None:
    trace = simulate([schemes.gather_read(by_chunk(ROWS, 2), 1, 2)], Hold(1, 1)).trace
    svg = as_svg(trace)
    boxes = rectangles(svg, "work", "wait", "take")
    assert len(boxes) == len(trace.program)
    assert texts(svg)[:3] == ["host", "stream compute", "stream copy"]
    lanes: dict[str, list[tuple[float, float]]] = {}
    for box in boxes:
        lanes.setdefault(box["x"], []).append((float(box["y"]), float(box["y"]) + float(box["height"])))
    assert len(lanes) == 3
    for spans in lanes.values():
        spans.sort()
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def test_a_picture_has_what_began_first_further_up() -> None:
    trace = simulate([schemes.ring_read(by_block(ROWS), 2)], Hold(0, 1)).trace
    begun = [event.index for event in trace.events if event.moment is Moment.BEGIN]
    tops = [float(box["y"]) for box in rectangles(as_svg(trace), "work", "wait", "take")]
    assert len(begun) == len(tops)
    assert tops == sorted(tops)


@pytest.mark.parametrize("name", BROKEN)
def test_both_accesses_of_a_race_are_framed_and_told_and_the_band_is_where_both_run(name: str) -> None:
    trace, race = racing(name)
    svg = as_svg(trace, race)
    frames = rectangles(svg, "racing")
    (band,) = rectangles(svg, "band")
    assert len(frames) == 2
    top, bottom = float(band["y"]), float(band["y"]) + float(band["height"])
    assert top == max(float(frame["y"]) for frame in frames)
    assert bottom == min(float(frame["y"]) + float(frame["height"]) for frame in frames)
    shown = texts(svg)
    assert any(text.startswith("writes ") for text in shown)
    assert any(text.startswith("reads ") for text in shown)
    assert "nothing orders the end of" in " ".join(shown)


@pytest.mark.parametrize("name", BROKEN)
def test_the_edges_of_the_band_cross_no_text(name: str) -> None:
    svg = as_svg(*racing(name))
    (band,) = rectangles(svg, "band")
    for edge in (float(band["y"]), float(band["y"]) + float(band["height"])):
        for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
            baseline = float(text.get("y", "0"))
            assert not baseline - 8 < edge < baseline + 2, text.text


def test_without_a_race_nothing_is_red() -> None:
    trace, _ = racing("staged")
    assert rectangles(as_svg(trace), "racing", "band") == []


@pytest.mark.parametrize("name", BROKEN)
def test_it_is_800_pixels_wide_and_no_line_is_wider_than_its_lane(name: str) -> None:
    svg = as_svg(*racing(name))
    root = ElementTree.fromstring(svg)
    assert root.get("width") == str(WIDTH)
    lane = float(rectangles(svg, "lane")[0]["width"])
    for text in root.iter(f"{SVG}text"):
        room = WIDTH if "order" in (text.text or "") or float(text.get("x", "0")) == 16 else lane
        assert len(text.text or "") * LETTER <= room


def test_many_lanes_make_it_wider() -> None:
    buffer = Buffer("b", Memory.PINNED, 9, 1)
    operations: Sequence[Operation] = [Copy(f"s{k}", buffer.at(k, 0, 1), buffer.at(k, 0, 0)) for k in range(6)]
    events = tuple(TraceEvent(k, moment) for k in range(6) for moment in (Moment.BEGIN, Moment.END))
    svg = as_svg(Trace(issued(operations), events))
    assert float(ElementTree.fromstring(svg).get("width", "0")) > WIDTH
    assert len(rectangles(svg, "lane")) == 7


def test_it_is_light_and_dark_and_names_are_escaped() -> None:
    buffer = Buffer("a<b>&", Memory.PINNED, 1, 1)
    trace = Trace(issued([HostRead(buffer.at(0, 0, 1))]), (TraceEvent(0, Moment.BEGIN), TraceEvent(0, Moment.END)))
    svg = as_svg(trace)
    light, dark = svg.split("@media (prefers-color-scheme: dark) {")
    for kind in ("text", ".page", ".lane", ".work", ".wait", ".take", ".racing", ".band", ".told"):
        assert re.search(rf"^{re.escape(kind)} \{{|\}} {re.escape(kind)} \{{", light, re.MULTILINE), kind
        assert re.search(rf"^{re.escape(kind)} \{{|\}} {re.escape(kind)} \{{", dark, re.MULTILINE), kind
    assert "a<b>&[0]" in " ".join(texts(svg))


def test_what_has_not_ended_reaches_to_the_end() -> None:
    buffer = Buffer("b", Memory.PINNED, 1, 2)
    trace = Trace(issued([Release(buffer.at(0, 0, 1)), Copy("s", buffer.at(0, 0, 1), buffer.at(0, 1, 1))]), (
        TraceEvent(0, Moment.BEGIN), TraceEvent(1, Moment.BEGIN), TraceEvent(1, Moment.END),
    ))  # fmt: skip
    released, copied = rectangles(as_svg(trace), "work", "take", "wait")
    assert float(released["y"]) + float(released["height"]) > float(copied["y"]) + float(copied["height"])
