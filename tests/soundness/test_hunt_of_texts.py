"""The hunt for a PROVED loop that moves wrong bytes: random texts, run by the library itself, eagerly and lazily.

Each text is run in small instances, two calls of one stager; one that leaves a wrong byte must not be PROVED, in T1 and T3.
Of the others some are judged too, so that the hunt is seen to be about loops that are proved.
"""

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from types import ModuleType

import pytest
import torch

from kvstage import KVStageError, PagedPool, Pair, SimDevice, Stager
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.partitions import Runs, by_block, by_row
from kvstage_model.language.scheme import Scheme
from kvstage_model.schedules.schedule import IssueOrder, Late
from kvstage_model.symbolic import scheme_model
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems.t1_no_hazard import T1
from kvstage_proofs.theorems.t3_result import T3
from tests.support.hunt_text import HEAD, Loop, function, loop

EVERY = 8
"""Of so many loops that leave right bytes one is judged; each of them until one is PROVED."""
SHARES, A_SHARE = 40, 500


@pytest.fixture(autouse=True)
def watch() -> None:
    """Nobody else reads these schemes: what asks a loop that counts changes it."""


REFUSED = "refused"


def wrong_byte(tried: Loop, name: str) -> str | None:
    """A schedule and instance in which a loop leaves a wrong byte; `REFUSED` if the library runs none of them to its end."""
    ran = 0
    for schedule in (IssueOrder, Late):
        for cut in (by_row, by_block):
            scheme = function(tried.text, name)  # a new module: its state begins anew
            call = partial(_of_rows, scheme, cut)
            pair = Pair(call, call)
            pool = PagedPool(torch.arange(24.0).view(4, 2, 3).clone())
            try:
                wrong = _reads(pool, pair, schedule()) if tried.reads else _writes(pool, pair, schedule())
            except (KVStageError, StopIteration, RuntimeError):
                continue
            ran += 1
            if wrong:
                return f"{schedule.__name__}, {cut.__name__}"
    return None if ran else REFUSED


def _of_rows(scheme: Callable[[Runs], Scheme], cut: Callable[[PagedRows], Runs], rows: PagedRows) -> Scheme:
    return scheme(cut(rows))


def _reads(pool: PagedPool, pair: Pair, schedule: IssueOrder | Late) -> bool:
    with SimDevice(schedule) as device, Stager(device, scheme=pair) as stager:
        for table, start, stop in (([2, 0, 3], 1, 6), ([1, 3], 0, 4)):
            read = stager.read(pool, table, start, stop)
            read.wait()
            expected = torch.cat([pool.tensor[block] for block in table])[start:stop]
            if not torch.equal(read.result(), expected):
                return True
    return False


def _writes(pool: PagedPool, pair: Pair, schedule: IssueOrder | Late) -> bool:
    expected = pool.tensor.clone()
    with SimDevice(schedule) as device, Stager(device, scheme=pair) as stager:
        for table, start, count in (([2, 0, 3], 1, 5), ([1, 3], 0, 4)):
            rows = torch.full((count, 3), 100.0 + start) + torch.arange(count).view(-1, 1)
            stager.write(pool, table, start, rows).wait()
            for number in range(count):
                block, row = divmod(start + number, 2)
                expected[table[block], row] = rows[number]
            if not torch.equal(pool.tensor, expected):
                return True
    return not torch.equal(pool.tensor, expected)


def proved(tried: Loop, name: str) -> tuple[Verdict, Verdict]:
    """The verdicts of T1 and T3."""
    module = sys.modules.setdefault(name, ModuleType(name))
    scheme = function(tried.text, name)
    vars(module).update(scheme.__globals__)
    first = judge(T1.of(scheme, "hunted")).verdict
    return first, judge(T3.of(scheme, "hunted")).verdict if first is Verdict.PROVED else first


def hunt(seeds: range) -> Counter[str]:
    """How many loops came to what. Fails where one that is PROVED leaves a wrong byte."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        tried, name = loop(seed), f"hunted_{seed}"
        wrong = wrong_byte(tried, name)
        if wrong == REFUSED:
            seen[REFUSED] += 1
            continue
        if wrong is None and seed % EVERY and seen["right, PROVED"]:
            seen["right"] += 1
            continue
        verdicts = proved(tried, name)
        if wrong is not None and set(verdicts) == {Verdict.PROVED}:
            pytest.fail(f"seed {seed}, {wrong}: PROVED, and a byte is wrong:\n{tried.text.removeprefix(HEAD)}")
        seen[f"{'right' if wrong is None else 'wrong'}, {verdicts[1].value}"] += 1
    return seen


def test_no_text_that_is_proved_moves_a_wrong_byte() -> None:
    seen = hunt(range(40))
    print(seen)
    assert seen["right, PROVED"] >= 1
    assert seen["wrong, UNSUPPORTED"] >= 5


@pytest.mark.extended
@pytest.mark.parametrize("share", range(SHARES))
def test_no_text_of_many_that_is_proved_moves_a_wrong_byte(share: int) -> None:
    seen = hunt(range(1000 + share * A_SHARE, 1000 + (share + 1) * A_SHARE))
    print(seen)
    assert sum(seen.values()) == A_SHARE
    assert seen["right, PROVED"] >= 1
    assert seen["wrong, UNSUPPORTED"] + seen["wrong, REFUTED"] >= 10


def test_without_the_reading_the_hunt_catches_a_false_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheme_model, "demand_pure", lambda value: None)
    with pytest.raises(pytest.fail.Exception, match="PROVED, and a byte is wrong"):
        hunt(range(60))
