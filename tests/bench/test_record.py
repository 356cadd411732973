"""What is recorded of verified passes, and that nothing is where a scheme computes something else."""

from typing import Any

import pytest
import torch

from bench import record as module
from bench.forward import DifferentError
from bench.record import record
from kvstage import ThreadDevice

ROW_BYTES = 2 * 2 * (512 + 257)
"""Of one token in the four caches."""


@pytest.mark.extended
def test_a_prefill_and_its_first_decode_step_are_recorded(tiny_model: Any, ids: torch.Tensor) -> None:
    with ThreadDevice() as device:
        found = record(tiny_model, ids, 32, 2, device)
    prefill, decode = found.recordings
    assert (prefill.name, decode.name) == ("prefill in chunks of 32", "decode at 80")
    assert [(step.history, step.tokens, len(step.calls)) for step in prefill.steps] == [(0, 32, 4), (32, 32, 8), (64, 16, 8)]
    assert [(step.history, step.tokens, len(step.calls)) for step in decode.steps] == [(80, 1, 8)]
    assert (prefill.before, prefill.after, decode.before, decode.after) == (0, 80, 80, 81)
    assert [len(step.rest) for step in prefill.steps] == [4, 4, 4]
    assert len(decode.steps[0].rest) == 8  # four schemes, two tokens each
    assert all(rest > 0 for step in (*prefill.steps, *decode.steps) for rest in step.rest)
    assert prefill.unstaged > 0
    assert decode.unstaged > 0
    assert (found.passes, found.bytes) == (4, 4 * (5 * 300 * 2 + 82 * ROW_BYTES))


@pytest.mark.extended
def test_a_prefill_in_one_piece_has_a_name_of_its_own(tiny_model: Any, ids: torch.Tensor) -> None:
    with ThreadDevice() as device:
        (prefill,) = record(tiny_model, ids, 80, 0, device).recordings
    assert prefill.name == "prefill in one piece"
    assert {call.direction for call in prefill.steps[0].calls} == {"write"}


def test_nothing_is_recorded_of_a_scheme_that_changed_a_byte(tiny_model: Any, ids: torch.Tensor, forgetful: Any) -> None:
    with pytest.raises(DifferentError, match="differ from the pass without staging"):
        record(tiny_model, ids, 40, 0, forgetful)


def test_schemes_that_were_asked_for_other_rows_are_not_compared(
    tiny_model: Any, ids: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_call_less(*arguments: Any) -> Any:
        found = forward(*arguments)
        if found.scheme == "direct":
            object.__setattr__(found.steps[0], "calls", found.steps[0].calls[1:])
        return found

    forward = module.forward
    monkeypatch.setattr(module, "forward", one_call_less)
    with ThreadDevice() as device, pytest.raises(DifferentError, match="asked for different rows"):
        record(tiny_model, ids, 40, 0, device)
