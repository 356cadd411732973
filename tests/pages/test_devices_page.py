"""The page of devices is run: its card moves the right bytes by every scheme of copies, and the wrong ones without a wait."""

import re
from typing import Any

import pytest
import torch

import kvstage
from kvstage import Device, DeviceError, PagedPool, Stager
from kvstage.devices.named_streams import OWN_STREAMS
from kvstage_model.language.edits import Named
from kvstage_model.language.operations import SyncEvent, SyncStream
from kvstage_model.schemes.registry import LIBRARY
from tests.support.broken import without
from tests.support.paths import ROOT
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

PAGE = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COPYING = ["per_row", "per_block", "per_run", "ring", "direct"]
TABLE = [4, 5, 0, 7]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the page's program defines."""
    found: dict[str, Any] = {}
    for number, text in enumerate(BLOCKS):
        exec(compile(text, f"<block {number} of docs/devices.md>", "exec"), found)
    return found


def test_the_page_runs_and_says_what_was_picked(names: dict[str, Any]) -> None:
    assert len(BLOCKS) == 3
    assert names["read"].choice.scheme in COPYING
    assert 40 < len(BLOCKS[0].splitlines()) < 90


def test_the_card_has_what_the_protocol_asks_for_and_the_page_names_every_device(names: dict[str, Any]) -> None:
    asked = {name for name in vars(Device) if not name.startswith("_")}
    assert len(asked) == 16
    card = names["LateCard"]()
    assert {name for name in asked if not hasattr(card, name)} == set()
    devices = {name for name in kvstage.__all__ if name.endswith("Device")} - {"Device", "CheckedDevice"}
    assert len(devices) >= 5
    assert {name for name in devices if f"`{name}`" not in PAGE} == set(), "CheckedDevice has a page of its own, schedules.md"


def right(card: Any, scheme: Any, direction: str) -> bool:
    """Whether a call that the caller waits for has moved the rows of the definition."""
    blocks = random_blocks(1, 9, 4, (3,), torch.bfloat16)
    pool, stager = PagedPool(blocks.tensor), Stager(card, scheme=scheme)
    if direction == "read":
        out = random_rows(2, 13, (3,), torch.bfloat16)
        stager.read(pool, TABLE, 2, 15, out=out).wait()
        return same(out, plain_read(blocks.tensor, TABLE, 2, 15))
    rows = random_rows(3, 13, (3,), torch.bfloat16)
    after = plain_write(blocks, TABLE, 2, rows)
    stager.write(pool, TABLE, 2, rows).wait()
    return torch.equal(blocks.base, after)


@pytest.mark.parametrize("scheme", COPYING)
@pytest.mark.parametrize("direction", ["read", "write"])
def test_every_scheme_of_copies_moves_the_right_bytes(names: dict[str, Any], scheme: str, direction: str) -> None:
    assert right(names["LateCard"](), scheme, direction)


@pytest.mark.parametrize("scheme", COPYING)
@pytest.mark.parametrize("direction", ["read", "write"])
def test_without_its_waits_it_moves_wrong_ones(names: dict[str, Any], scheme: str, direction: str) -> None:
    """The twin: the card would not hide a wait that is missing."""
    broken = LIBRARY[scheme]
    for kind in (SyncStream, SyncEvent):
        broken = without(broken, Named(kind))
    assert not right(names["LateCard"](), broken, direction)


@pytest.mark.parametrize("scheme", sorted(LIBRARY.keys() - set(COPYING)))
def test_schemes_with_kernels_are_refused(names: dict[str, Any], scheme: str) -> None:
    with pytest.raises(DeviceError, match="no kernels"):
        right(names["LateCard"](), scheme, "read")


def test_polling_comes_to_an_end(names: dict[str, Any]) -> None:
    pool = PagedPool(torch.rand(9, 4, 3))
    read = Stager(names["LateCard"](), scheme="direct").read(pool, TABLE, 2, 15)
    refusals = 0
    while not read.query():
        refusals += 1
    assert refusals >= 2
    assert same(read.result(), plain_read(pool.tensor, TABLE, 2, 15))


def test_the_front_page_links_it() -> None:
    assert "(docs/devices.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_card_survives_a_piece_of_work_that_fails(names: dict[str, Any]) -> None:
    """The transfer whose work it was raises for ever; the next one is right."""
    card, pool = names["LateCard"](), PagedPool(torch.ones(4, 2, 3))
    stager = Stager(card, scheme="direct")
    failed = stager.read(pool, [2, 0], 0, 4)

    def fail() -> None:
        raise ZeroDivisionError

    card._queues[OWN_STREAMS["copy"]][0] = fail
    for ask in (failed.wait, failed.wait, failed.query, failed.result):
        with pytest.raises(ZeroDivisionError):
            ask()
    again = stager.read(pool, [2, 0], 0, 4)
    again.wait()
    assert again.result().eq(1).all()
    stager.close()
    card.close()
