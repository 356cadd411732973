"""What kernels' rows were worked out to: by the owner's identity, and bounded."""

import numpy as np
import pytest

from kvstage.devices import row_cache
from kvstage.devices.row_cache import MOST, Remembered, unchanging


def test_a_result_is_worked_out_once_for_an_owner_and_its_numbers():
    kept, owners, asked = Remembered(), ([], []), []

    def ask(owner, *numbers):
        return kept.of(owner, numbers, 1, lambda: asked.append((id(owner), *numbers)) or len(asked))

    for _ in range(2):
        assert [ask(owners[0], 1), ask(owners[0], 2), ask(owners[1], 1)] == [1, 2, 3], "equal owners are not the same"


def test_the_longest_unused_goes_first():
    kept, owner, asked = Remembered(), [], []
    half = MOST // 2
    for number in (1, 2, 1, 3, 1, 2):
        kept.of(owner, (number,), half, lambda number=number: asked.append(number))
    assert asked == [1, 2, 3, 2]


def test_one_that_is_larger_than_all_that_may_be_kept_is_kept_alone():
    kept, owner, asked = Remembered(), [], []
    for number in (1, 2, 2, 1):
        kept.of(owner, (number,), MOST + 1, lambda number=number: asked.append(number))
    assert asked == [1, 2, 1]


def test_an_owner_lives_as_long_as_its_result_so_that_none_takes_its_place():
    kept = Remembered()
    found = {kept.of([number], (), MOST // 100, lambda number=number: number) for number in range(50)}
    assert found == set(range(50))


@pytest.mark.parametrize("counted", [True, False])
def test_results_of_few_rows_are_few_too(monkeypatch, counted):
    """The owners of a loop that decodes, a row a step: each takes hundreds of bytes, so not one for each of MOST rows."""
    if not counted:
        monkeypatch.setattr(row_cache, "LEAST", 0)
    kept, made = Remembered(), 5000
    for number in range(made):
        kept.of([number], (), 1, lambda number=number: number)
    assert (len(kept._kept) <= 4096) == counted
    assert len(kept._kept) >= 1000, "all caches of some steps"


def test_a_view_that_others_can_write_to_is_not_unchanging():
    owned, base = np.arange(4), np.arange(4)
    assert not unchanging(owned)
    owned.flags.writeable = False
    view = base[1:]
    view.flags.writeable = False
    foreign = np.frombuffer(bytearray(32), np.int64)
    foreign.flags.writeable = False
    assert [unchanging(each) for each in (owned, owned[1:], view, foreign)] == [True, True, False, False]
