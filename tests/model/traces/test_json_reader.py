"""Traces from strangers: whatever is wrong is a named error, in time and in bounded memory."""

import json
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kvstage_model.ordering.trace import Trace
from kvstage_model.traces.errors import (
    EmptyTraceError,
    TraceError,
    TraceFormatError,
    TraceNotAFileError,
    TraceTooLargeError,
    TraceVersionError,
)
from kvstage_model.traces.json_reader import Document, read, read_file
from kvstage_model.traces.json_values import LARGEST, MOST_BYTES
from kvstage_model.traces.json_writer import as_json
from tests.support.traces import document, good

SECONDS, MEBIBYTES = 2, 256
"""What a reader may take, its interpreter included."""


def spoiled(change: Callable[[Any], Any]) -> bytes:
    value = document()
    change(value)
    return json.dumps(value).encode()


def put(*path: Any) -> Callable[[Any], None]:
    """Puts the last of these at the place that the others name."""

    def change(value: Any) -> None:
        for key in path[:-2]:
            value = value[key]
        value[path[-2]] = path[-1]

    return change


GOOD = as_json(good())

REFUSED: list[tuple[bytes, type[TraceError], str]] = [
    (b"", TraceFormatError, "no JSON: line 1"),
    (GOOD.encode()[:400], TraceFormatError, "no JSON"),
    (GOOD.encode("utf-16"), TraceFormatError, "not UTF-8: byte 0 is 0xff"),
    (b"null", TraceFormatError, "no trace"),
    (b"[]", TraceFormatError, "no trace"),
    (b'{"format": "kvstage trace"}', TraceFormatError, "version is null: it must be an integer"),
    (spoiled(put("version", 2)), TraceVersionError, "version 2, and this kvstage reads version 1"),
    (spoiled(put("version", True)), TraceFormatError, "version is true"),
    (b'{"format": "kvstage trace", "format": "kvstage trace"}', TraceFormatError, "has 'format' twice"),
    (spoiled(put("extra", 1)), TraceFormatError, "has 'extra', which is unknown"),
    (spoiled(lambda value: value.pop("events")), TraceFormatError, "lacks 'events'"),
    (spoiled(put("program", [])), EmptyTraceError, "no operation"),
    (spoiled(put("events", [])), EmptyTraceError, "nothing begins or ends"),
    (spoiled(put("events", {})), TraceFormatError, "events is an object: it must be a list"),
    (spoiled(put("program", 0, "kind", "Move")), TraceFormatError, r"program\[0\].kind must be one of Copy"),
    (spoiled(put("program", 0, "kind", [])), TraceFormatError, r"program\[0\].kind"),
    (spoiled(put("program", 0, "stream", "elsewhere")), TraceFormatError, "no name for a stream"),
    (spoiled(put("program", 0, "stream", "\x1b[2J")), TraceFormatError, "printable"),
    (spoiled(put("program", 0, "source", "buffer", "nowhere")), TraceFormatError, "none of the trace's buffers"),
    (spoiled(put("program", 0, "source", "slot", 4)), TraceFormatError, r"rows \[1, 2\) of slot 4, and 'pool' has 4 slots of 2"),
    (spoiled(put("program", 0, "source", "start", 2)), TraceFormatError, r"rows \[2, 3\)"),
    (spoiled(put("program", 0, "source", "slot", -1)), TraceFormatError, r"source.slot is -1"),
    (spoiled(put("program", 0, "source", "count", True)), TraceFormatError, "count is true"),
    (spoiled(put("program", 0, "source", "count", 1.0)), TraceFormatError, "1.0 is no integer"),
    (spoiled(put("program", 0, "call", 9**20)), TraceFormatError, f"out of range: numbers are at most {LARGEST}"),
    (spoiled(put("program", 0, "call", 2**62)), TraceFormatError, r"program\[0\].call is 4611686018427387904"),
    (spoiled(put("program", 0, "call", 1)), TraceFormatError, "call 0 comes behind one of call 1"),
    (spoiled(put("program", 0, "step", float("nan"))), TraceFormatError, "NaN is no integer"),
    (spoiled(put("buffers", 1, "name", "pool")), TraceFormatError, "'pool', as that of a buffer before"),
    (spoiled(put("events", 0, "operation", 10**6)), TraceFormatError, r"events\[0\].operation is 1000000"),
    (spoiled(put("events", 0, "moment", "end")), TraceFormatError, "can't end here"),
    (spoiled(lambda value: value["events"].append(value["events"][0])), TraceFormatError, "can't begin here"),
    (spoiled(put("events", 1, "at", 5)), TraceFormatError, "either all events have their time"),
    (spoiled(put("events", 0, "at", 5)), TraceFormatError, "either all events have their time"),
    (spoiled(put("calls", [3])), TraceFormatError, r"calls\[0\] is 3"),
    (b'{"format": ' + b"9" * 5000 + b"}", TraceFormatError, "out of range"),
]


@pytest.mark.parametrize(("text", "error", "says"), REFUSED, ids=[says for _, _, says in REFUSED])
def test_what_is_wrong_is_told_with_its_place(text: bytes, error: type[TraceError], says: str) -> None:
    with pytest.raises(error, match=says) as told:
        read(text)
    assert len(str(told.value)) < 400


def test_twin_the_trace_that_was_spoiled_is_good() -> None:
    assert isinstance(read(GOOD.encode()).trace, Trace)


def test_times_never_go_back() -> None:
    value = document()
    for number, event in enumerate(value["events"]):
        event["at"] = number
    assert read(json.dumps(value).encode()).trace.events[3].at == 3
    value["events"][3]["at"] = 1
    with pytest.raises(TraceFormatError, match=r"events\[3\].at is 1: it must be an integer from 2"):
        read(json.dumps(value).encode())


def tried(text: bytes) -> Document | TraceError:
    """What a reader makes of a text: nothing but a trace or a named error."""
    try:
        return read(text)
    except TraceError as error:
        return error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """A good trace with some values of it replaced, removed, or put there twice."""
    value = document()
    for _ in range(draw(st.integers(1, 3))):
        place: Any = value
        while isinstance(place, dict | list) and place:
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            key = draw(st.sampled_from(list(keys)))
            inner = place[key]
            if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 4)) == 0:
                match draw(st.integers(0, 2)):
                    case 0:
                        place[key] = draw(JSON | st.sampled_from([0, 1, 2, "pool", "Copy", "begin", "end", LARGEST]))
                    case 1:
                        del place[key]
                    case _ if isinstance(place, list):
                        place.insert(0, inner)
                    case _:
                        place[draw(st.text(max_size=5))] = inner
                break
            place = inner
    return json.dumps(value).encode()


def spoiled(texts: st.SearchStrategy[bytes], examples: int) -> Counter[type]:
    """What a reader makes of so many texts, by its type: any error that has no name is raised."""
    seen: Counter[type] = Counter()

    @settings(max_examples=examples, deadline=None)
    @given(texts)
    @example(GOOD.encode())
    @example(b"\xef\xbb\xbf{}")
    def spoil(text: bytes) -> None:
        seen[type(tried(text))] += 1

    spoil()
    return seen


def test_a_spoiled_trace_is_a_trace_or_a_named_error() -> None:
    seen = spoiled(mutations() | st.binary(max_size=60), 80)
    assert seen[Document] > 0
    assert seen[TraceFormatError] > 20


@pytest.mark.extended
def test_many_spoiled_traces() -> None:
    seen = spoiled(mutations() | st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()), 6000)
    assert seen[Document] > 20
    assert seen[TraceFormatError] > 2000


@settings(max_examples=30, deadline=None)
@given(st.integers(0, len(GOOD) - 3), st.binary(max_size=3))
def test_a_trace_that_is_cut_or_scratched(at: int, scratch: bytes) -> None:
    assert isinstance(tried(GOOD.encode()[:at]), TraceFormatError)
    tried(GOOD.encode()[:at] + scratch + GOOD.encode()[at + len(scratch) :])


LINE = b'{"call": 0, "phase": "loop", "step": 0, "kind": "SyncStream", "stream": "s"}'
HEAD = b'{"format": "kvstage trace", "version": 1, "buffers": [], "program": ['
HUGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "deep lists": (lambda: b"[" * MOST_BYTES, "TraceFormatError"),
    "deep objects": (lambda: b'{"a":' * (MOST_BYTES // 5), "TraceFormatError"),
    "empty objects": (lambda: b"[" + b"{}," * ((MOST_BYTES - 10) // 3) + b"{}]", "TraceFormatError"),
    "one object": (lambda: b"{" + b",".join(b'"%d":0' % k for k in range(300_000)) + b"}", "TraceFormatError"),
    "one key again and again": (lambda: b"{" + b'"k":0,' * (MOST_BYTES // 7) + b'"k":0}', "TraceFormatError"),
    "one number": (lambda: b"9" * MOST_BYTES, "TraceFormatError"),
    "one string": (lambda: b'"' + b"\\u0041" * (MOST_BYTES // 6 - 1) + b'"', "TraceFormatError"),
    "many operations": (lambda: HEAD + b",".join([LINE] * 50_000) + b'], "events": []}', "EmptyTraceError"),
    "a byte too many": (lambda: b" " * (MOST_BYTES + 1), "TraceTooLargeError"),
}

PROGRAM = """
import sys
from pathlib import Path
from kvstage_model.traces.errors import TraceError
from kvstage_model.traces.json_reader import read_file
try:
    read_file(Path(sys.argv[1]))
except TraceError as error:
    print(type(error).__name__)
"""


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEBIBYTES << 20, MEBIBYTES << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_trace_is_refused_in_little_time_and_memory(name: str, tmp_path: Path) -> None:
    text, error = HUGE[name]
    file = tmp_path / "huge.json"
    file.write_bytes(text())
    assert refused(file) == error


def test_a_file_far_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.truncate(1 << 34)  # no block of it is on the disk
    assert refused(file) == "TraceTooLargeError"


def refused(file: Path) -> str:
    """The error of a reader with little time and memory."""
    command = [sys.executable, "-c", PROGRAM, str(file)]
    run = subprocess.run(command, preexec_fn=limited, capture_output=True, text=True, check=False)
    assert (run.stderr, run.returncode) == ("", 0)
    return run.stdout.strip()


def test_twin_the_limits_hold() -> None:
    hungry = subprocess.run(
        [sys.executable, "-c", f"bytes({MEBIBYTES} << 20)"], preexec_fn=limited, capture_output=True, text=True, check=False
    )
    assert "MemoryError" in hungry.stderr
    busy = subprocess.run([sys.executable, "-c", "while True: pass"], preexec_fn=limited, capture_output=True, check=False)
    assert busy.returncode < 0


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none.json")
    (tmp_path / "one.json").write_text(GOOD, encoding="utf-8")
    assert read_file(tmp_path / "one.json").trace.program
    with pytest.raises(TraceTooLargeError):
        read(b" " * (MOST_BYTES + 1))


def test_a_pipe_is_refused_before_it_is_opened_for_nobody_may_ever_write_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(TraceNotAFileError, match=r"pipe.json is no regular file: write the trace to one"):
        read_file(pipe)
    monkeypatch.setattr(Path, "is_file", lambda path: True)
    writer = Thread(target=pipe.write_text, args=(GOOD,))
    writer.start()
    assert read_file(pipe).trace.program, "without the check it is read, once somebody writes"
    writer.join()
