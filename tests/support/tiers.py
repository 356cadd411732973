"""Which cases of a long test run each time, and which are left to the extended tier."""

from collections.abc import Iterable
from typing import Any

import pytest


def often(cases: Iterable[Any], number: int) -> list[Any]:
    """The cases of a parametrized test: `number` of them, evenly picked, run each time; the others are marked extended."""
    listed = list(cases)
    kept = {round(k * (len(listed) - 1) / max(1, number - 1)) for k in range(number)}
    return [case if at in kept else _extended(case) for at, case in enumerate(listed)]


def _extended(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.extended)
