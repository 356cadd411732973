"""One forward pass for each scheme, compared with the one that stages nothing; what they staged is kept for replays."""

from dataclasses import dataclass
from typing import Any

import torch

from kvstage import Device

from .forward import DifferentError, Pass, Step, compare, forward
from .replay import Recorded, Recording
from .rounds import SCHEMES


@dataclass(frozen=True, slots=True, eq=False)
class Verified:
    """The recordings of one chunking, and what they rest on: passes compared with the one without staging, and bytes."""

    recordings: tuple[Recording, ...]
    passes: int
    bytes: int


def record(model: Any, ids: torch.Tensor, chunk: int, decodes: int, device: Device[Any, Any]) -> Verified:
    """Prefills `ids` in chunks, then decodes so many tokens: by no staging first, then by every scheme.

    A recording of the prefill, and one of the first decode step where there is one. Every other decode step is one more
    sample of its rest. Raises DifferentError if a scheme changed one bit of the logits or of a cached row.
    """
    plain = forward(model, ids, chunk, decodes, device, "none")
    compared, staged = 0, []
    for scheme in SCHEMES:
        found = forward(model, ids, chunk, decodes, device, scheme)
        compared += compare(found, plain)
        staged.append(found.steps)
    if any([step.calls for step in steps] != [step.calls for step in staged[0]] for steps in staged):
        raise DifferentError(f"chunks of {chunk}: the schemes were asked for different rows")
    first = len(plain.steps) - decodes
    prefill = [_recorded(step, [other[k] for other in staged]) for k, step in enumerate(staged[0][:first])]
    each = "in one piece" if chunk >= len(ids) else f"in chunks of {chunk}"
    recordings = [_recording(f"prefill {each}", prefill, plain)]
    if decodes:
        decode = _recorded(staged[0][first], [step for other in staged for step in other[first:]])
        recordings.append(_recording(f"decode at {len(ids)}", [decode], plain))
    return Verified(tuple(recordings), len(SCHEMES), compared)


def _recorded(step: Step, samples: list[Step]) -> Recorded:
    return Recorded(step.history, step.tokens, step.calls, tuple(sample.rest for sample in samples))


def _recording(name: str, steps: list[Recorded], plain: Pass) -> Recording:
    histories = {step.history for step in steps}
    unstaged = sum(step.seconds for step in plain.steps if step.history in histories)
    return Recording(name, tuple(steps), steps[0].history, plain.rows, unstaged)
