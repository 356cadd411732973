"""A comparison by `is` with True or False is found in the code, whatever stands on its other side."""

from collections.abc import Callable

import pytest

from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.purity import demand_no_truth_by_identity

# ruff: noqa: E712


def in_a_function_inside(i: int) -> bool:
    """The comparison is in a function of it."""

    def inner() -> bool:
        return (i == 3) is True

    return inner()


def in_a_pattern(i: int) -> bool:
    """A pattern that is True compares by identity."""
    match i == 3:
        case True:
            return True
    return False


COMPARED: dict[str, tuple[Callable[[int], object], bool]] = {
    "is True": (lambda i: (i == 3) is True, True),
    "is not False": (lambda i: (i == 3) is not False, False),
    "True is": (lambda i: True is (i + 1 == max(i, 3)), True),
    "in a condition": (lambda i: 1 if i > 2 and (i < 9) is True else 0, True),
    "inside": (in_a_function_inside, True),
    "pattern": (in_a_pattern, True),
}


@pytest.mark.parametrize(("function", "constant"), COMPARED.values(), ids=COMPARED)
def test_a_truth_by_identity_is_refused_with_its_line(function: Callable[[int], object], constant: bool) -> None:
    with pytest.raises(UnsupportedError, match=rf"line \d+ of .* asks whether something `is {constant}`"):
        demand_no_truth_by_identity(function.__code__)


@pytest.mark.parametrize(
    "function",
    [
        lambda i: i is None,
        lambda i: None is not i,
        lambda i: [True, i is i, False],
        lambda i: (i == 3) == True,
        lambda i: (True, i) if i is not None else False,
    ],
)
def test_other_comparisons_are_not(function: Callable[[int], object]) -> None:
    demand_no_truth_by_identity(function.__code__)
