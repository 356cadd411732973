"""Forward passes in steps: what they are compared by, and that one bit is seen."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.forward import DifferentError, Pass, compare, forward
from bench.pools import raw
from kvstage import ThreadDevice
from tests.support.tiers import often

CHUNK, DECODES = 32, 2
WIDTHS = [512, 257] * 2


def one_pass(scheme: str, model: Any, ids: torch.Tensor, device: Any) -> Pass:
    return forward(model, ids, CHUNK, DECODES, device, scheme)


@pytest.fixture(scope="module")
def plain(tiny_model: Any, ids: torch.Tensor) -> Pass:
    with ThreadDevice() as device:
        found = one_pass("none", tiny_model, ids, device)
        assert (device.copies, device.launches, device.waits) == (0, 0, 0)
    return found


def test_no_staging_makes_no_calls_and_caches_every_row(plain: Pass) -> None:
    assert [(step.history, step.tokens) for step in plain.steps] == [(0, 32), (32, 32), (64, 16), (80, 1), (81, 1)]
    assert all(step.calls == () and step.staging == 0 and step.rest == step.seconds > 0 for step in plain.steps)
    assert [tuple(rows.shape) for rows in plain.rows] == [(82, width) for width in WIDTHS]
    assert {step.logits.shape for step in plain.steps} == {(300,)}


@pytest.mark.parametrize("scheme", often(["per_row", "per_block", "direct", "gather_pinned"], 2))
def test_a_staged_pass_computes_and_caches_the_same_bytes(scheme: str, plain: Pass, tiny_model: Any, ids: torch.Tensor) -> None:
    with ThreadDevice() as device:
        found = one_pass(scheme, tiny_model, ids, device)
    assert compare(found, plain) == 5 * 300 * 2 + 82 * sum(WIDTHS) * 2
    assert [len(step.calls) for step in found.steps] == [4, 8, 8, 8, 8]
    assert all(0 < step.staging < step.seconds for step in found.steps)


def test_without_the_wait_the_pass_is_another_one(plain: Pass, tiny_model: Any, ids: torch.Tensor, forgetful: Any) -> None:
    found = one_pass("per_block", tiny_model, ids, forgetful)
    with pytest.raises(DifferentError, match=r"per_block, logits behind 32 \+ 32 tokens: .* of 600 bytes differ"):
        compare(found, plain)


def flipped(tensor: torch.Tensor) -> torch.Tensor:
    changed = tensor.clone()
    raw(changed)[-1] ^= 1
    return changed


def test_one_bit_of_a_row_or_of_the_logits_is_seen(plain: Pass) -> None:
    assert compare(plain, plain) > 0
    row = replace(plain, rows=(*plain.rows[:3], flipped(plain.rows[3])))
    with pytest.raises(DifferentError, match="cache 3: 1 of 42148 bytes differ"):
        compare(row, plain)
    last = replace(plain.steps[-1], logits=flipped(plain.steps[-1].logits))
    with pytest.raises(DifferentError, match=r"logits behind 81 \+ 1 tokens: 1 of 600 bytes differ"):
        compare(replace(plain, steps=(*plain.steps[:-1], last)), plain)


def test_rows_of_another_number_are_no_match(plain: Pass) -> None:
    for rows in (plain.rows[0][:80], plain.rows[0][:0]):
        with pytest.raises(DifferentError, match=r"cache 0: shape"):
            compare(replace(plain, rows=(rows, *plain.rows[1:])), plain)
    with pytest.raises(ValueError, match="zip"):
        compare(replace(plain, rows=plain.rows[:3]), plain)
