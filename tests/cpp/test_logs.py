"""Which schedules a program runs under, and what is read of its logs: reports of sanitizers, and a log that ends in its middle."""

import pytest

from kvstage_cpp.run_log import Counts, read
from kvstage_cpp.sanitizer_logs import reports
from kvstage_cpp.schedules import DEFAULT, MOST_DELAYED, delayed, schedules
from kvstage_cpp.symbols import Line, Symbols, stack_in

RACE = """\
==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 8 at 0x7b4000000000 by thread T3:
    #0 (/work/test+0x30)
    #1 (/work/test+0x40)

  Previous atomic read of size 4 at 0x7b4000000000 by main thread:
    #0 (/lib/libtsan.so.2+0x5) (BuildId: 00)
    #1 (/work/test+0x10)

  Location is heap block of size 64 at 0x7b4000000000 allocated by main thread:
    #0 (/work/test+0x50)

  Thread T3 'stream 1' (tid=0, running) created by main thread at:
    #0 (/work/test+0x60)

SUMMARY: ThreadSanitizer: data race (/work/test+0x30)
==================
"""
FREED = """\
==9==ERROR: AddressSanitizer: heap-use-after-free on address 0x61 at pc 0x55 bp 0x7f sp 0x7f
READ of size 512 at 0x61 thread T0
    #0 0x7f5d  (/lib/libasan.so.8+0x1)
    #1 0x560b  (/work/test+0x2)

0x61 is located 0 bytes inside of 512-byte region [0x61,0x62)
freed by thread T0 here:
    #0 0x560b  (/work/test+0x3)

previously allocated by thread T0 here:
    #0 0x560b  (/work/test+0x4)
"""


def test_each_operation_is_held_in_two_places() -> None:
    found = list(schedules(DEFAULT, 3))
    assert found[:4] == ["issue-order", "late", "hold:0:begin", "hold:0:end"]
    assert len(found) == len(set(found)) == 2 + 2 * 3 + 8


def test_of_many_operations_some_are_held_from_the_first_to_the_last() -> None:
    chosen = delayed(180_224)
    assert len(set(chosen)) == MOST_DELAYED
    assert chosen[0] == 0
    assert 180_224 - 180_224 // MOST_DELAYED <= chosen[-1] + 1 <= 180_224


def test_no_schedule_comes_twice() -> None:
    assert list(schedules(["late", "hold:0:begin", "delays", "late"], 1)) == ["late", "hold:0:begin", "hold:0:end"]


def test_a_race_is_read_with_the_earlier_access_first() -> None:
    (race,) = reports(RACE)
    assert race.kind == "data race"
    assert [(access.who, access.writes) for access in race.accesses] == [("the host", False), ("stream 1", True)]
    assert race.accesses[0].stack == (("/lib/libtsan.so.2", 5), ("/work/test", 0x10))
    assert (race.memory, race.allocated) == ("64 bytes", (("/work/test", 0x50),))


def test_two_reports_are_two() -> None:
    assert len(list(reports(RACE + "noise\n" + RACE))) == 2
    assert list(reports("nothing of the kind")) == []


def test_memory_that_was_freed_is_read() -> None:
    (found,) = reports(FREED)
    assert (found.kind, found.memory) == ("heap-use-after-free", "512 bytes")
    assert (found.freed, found.allocated) == ((("/work/test", 3),), (("/work/test", 4),))


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_a_log_may_end_anywhere(cut: int) -> None:
    whole = "start\t1\tThreadSanitizer\nfinding\thang\twords\t(a+0x1)\t(b+0x2)\nend\t1\t2\t3\t4\t5\n"
    log = read(whole)
    assert (log.linked, log.sanitizer, log.counts) == (True, "ThreadSanitizer", Counts(1, 2, 3, 4, 5))
    assert [(each.kind, each.first, each.second) for each in log.noticed] == [("hang", (("a", 1),), (("b", 2),))]
    assert read(whole[:cut]).counts == Counts()


def test_an_address_without_a_line_is_told_by_its_module() -> None:
    line = Symbols().line(stack_in("(/bin/true+0x10)"))
    assert line == Line("true+0x10 (build with -g to see the line)", 0)
