"""Runs a body under issue order, late, and the witness of each finding; prints what came of it, for `test_packages.py`."""

import json
from collections.abc import Callable

import torch

import kvstage


def tell(body: Callable[[], torch.Tensor], wanted: torch.Tensor) -> None:
    """One line of JSON: which schedules gave wrong results, and the findings' first lines."""

    def right(schedule: str) -> tuple[bool, tuple[kvstage.StagingError, ...]]:
        with kvstage.simulated_cuda(schedule, raises=False) as run:
            result = body()
        return torch.allclose(result.cpu(), wanted, atol=1e-4), run.findings

    first, found = right("issue-order")
    told = {"issue order": first, "late": right("late")[0], "found": [str(each).splitlines()[:3] for each in found]}
    told["witnesses"] = [right(each.schedule)[0] for each in found[:3]]
    print(json.dumps(told))
