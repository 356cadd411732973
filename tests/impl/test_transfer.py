"""The handle on rows that are on their way."""

import pytest
import torch

from kvstage import NotFinishedError, PagedPool, Stager, Stats


@pytest.fixture
def transfer(device):
    return Stager(device, scheme="per_block").read(PagedPool(torch.ones(2, 4, 3)), [1], 0, 4)


def test_no_result_before_somebody_asked(transfer):
    with pytest.raises(NotFinishedError, match=r"wait\(\)"):
        transfer.result()
    transfer.wait()
    assert transfer.result().tolist() == [[1.0] * 3] * 4


def test_a_query_will_do(transfer):
    assert transfer.query()
    assert transfer.result().shape == (4, 3)


def test_stats(transfer):
    assert transfer.stats == Stats(copies=1, waits=1, bytes=48)
