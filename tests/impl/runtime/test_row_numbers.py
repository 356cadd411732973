"""The row numbers of kernels: the scheme's own formula, asked once for each transfer."""

import numpy as np
import pytest

from kvstage import SchemeError
from kvstage.runtime.row_numbers import Addresses
from kvstage_model.language.buffers import Buffer, Memory, Paged

POOL = Buffer("pool", Memory.DEVICE, 4, 3)


class Places:
    """Row p of the transfer lies in row p % 3 of slot `table[p // 3]`."""

    def __init__(self, *table: int) -> None:
        self.asked = 0
        self._table = np.array(table)

    def address(self, position):
        self.asked += 1
        return self._table[position // 3], position % 3


def test_the_numbers_are_those_of_the_formula_and_asked_once():
    addresses, places = Addresses(), Places(3, 0, 2)
    for _ in range(2):
        assert addresses.of(Paged(POOL, places, 2, 5), 4, 3, "kernel").tolist() == [11, 0, 1, 2, 6]
    assert places.asked == 1
    assert addresses.of(Paged(POOL, places, 3, 5), 4, 3, "kernel").tolist() == [0, 1, 2, 6, 7]
    assert addresses.of(Paged(POOL, places, 2, 5), 4, 5, "kernel").tolist() == [17, 0, 1, 2, 10]
    assert places.asked == 3


def test_the_same_numbers_of_another_table_are_asked_again():
    """The twin: what is remembered belongs to one table."""
    addresses = Addresses()
    for table, numbers in [((3, 0), [9, 10, 11, 0]), ((0, 3), [0, 1, 2, 9]), ((1, 2), [3, 4, 5, 6])]:
        assert addresses.of(Paged(POOL, Places(*table), 0, 4), 4, 3, "kernel").tolist() == numbers


def test_nobody_can_write_to_an_index_that_is_kept():
    index = Addresses().of(Paged(POOL, Places(1), 0, 2), 4, 3, "kernel")
    with pytest.raises(ValueError, match="read-only"):
        index[0] = 5


@pytest.mark.parametrize("slot", [-1, 4])
def test_a_row_outside_the_pool_is_named_and_not_kept(slot):
    addresses, places = Addresses(), Places(slot)
    for _ in range(2):
        with pytest.raises(SchemeError, match="str reaches rows that 'pool' does not have"):
            addresses.of(Paged(POOL, places, 0, 2), 4, 3, "kernel")
