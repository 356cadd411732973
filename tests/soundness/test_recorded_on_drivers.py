"""The library's own runs on worker threads and on PoCL, recorded with their times: no race, and every order of the axioms."""

import random
from collections.abc import Iterable

import pytest
import torch

from kvstage import PagedPool, Stager
from kvstage.recorder.device import RecordingDevice
from kvstage_model.language.operations import OnStream, RecordEvent, WaitEvent
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.races import races
from kvstage_model.schemes.registry import LIBRARY
from tests.support.devices import REAL
from tests.support.driven import Times, broken
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

START, STOP = 3, 21
TABLE = [3, 0, 4, 5, 1, 2]


def times(recorder: RecordingDevice) -> Times:
    """Of each operation: its issue, and the begin and end that its device measured."""
    at = {(number, Moment.ISSUE): noted.begin for number, noted in enumerate(recorder.noted)}
    return at | {(event.index, event.moment): event.at for event in recorder.trace().events}


def moves(program: Iterable[Issued]) -> int:
    """How many operations moved rows on a stream."""
    return sum(
        isinstance(issued.operation, OnStream) and not isinstance(issued.operation, RecordEvent | WaitEvent) for issued in program
    )


@pytest.mark.parametrize("kind", REAL.values())
@pytest.mark.parametrize("name", LIBRARY)
def test_a_write_and_a_read_keep_the_axioms_and_have_no_race(kind, name):
    """Some of the work is held back until somebody waits for it."""
    blocks, rows = random_blocks(1, 6, 4, (3,), torch.bfloat16), random_rows(2, STOP - START, (3,), torch.bfloat16)
    after = plain_write(blocks, TABLE, START, rows)
    rng = random.Random(3)
    with RecordingDevice(kind(), timed=True) as device:
        stager, pool = Stager(device, scheme=name), PagedPool(blocks.tensor)
        with device.hold(lambda _stream, _index: rng.random() < 0.5):
            stager.write(pool, TABLE, START, rows).wait()
            assert same(blocks.memory(), after)
            read = stager.read(pool, TABLE, START, STOP)
            read.wait()
            assert same(read.result(), plain_read(blocks.tensor, TABLE, START, STOP))
        program, at = device.program, times(device)
        assert moves(program) == device.copies + device.launches > 0
        assert len(at) == 3 * len(program), "everything has ended"
        assert broken(program, at) == []
        assert list(races(program)) == []
