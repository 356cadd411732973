"""A model of the benchmark's kind that runs in milliseconds: two sparse attention layers, four caches of real rows."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.sizes import SMALL, Sizes, build_model
from kvstage import ThreadDevice

TINY = replace(
    SMALL, layers=8, hidden=32, index_topk=32, dense_width=48, experts=4, experts_per_token=2, expert_width=16, vocab=300
)
"""Attention selects 32 rows (and up to 3 of the last pool), fewer than the tests have."""


class Forgetful(ThreadDevice):
    """Does not wait when it is asked to: with its work held back, code on it reads what was there before."""

    def synchronize(self, stream: str) -> None:
        self.waits += 1

    def wait(self, event: Any) -> None:
        self.waits += 1


@pytest.fixture(scope="session")
def tiny() -> Sizes:
    return TINY


@pytest.fixture(scope="session")
def tiny_model() -> Any:
    return build_model(TINY)


@pytest.fixture(scope="session")
def ids() -> torch.Tensor:
    """The tokens of a prefill, all different."""
    return torch.randperm(TINY.vocab, generator=torch.Generator().manual_seed(1))[:80]


@pytest.fixture
def forgetful() -> Any:
    with Forgetful() as device, device.hold(lambda stream, index: True):
        yield device
