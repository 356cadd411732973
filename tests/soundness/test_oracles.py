"""The table of the oracles: what it says is what they say, and where they differ there is a reason."""

import pytest

from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import OnStream, SyncEvent
from kvstage_model.ordering.program import unroll
from kvstage_model.schemes.ring import ring_read
from kvstage_model.search.instances import instances
from tests.support.oracles import FAULT, NONE, ORACLES, WHY, body, columns, table
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "oracles.md"
MADE = "make it anew with `python -m tests.support.oracles > docs/oracles.md`"


def page() -> list[str]:
    return PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.extended
def test_all_but_the_sanitizer_say_what_the_page_says() -> None:
    names = ["race finder", "recorded run", "simulator"]
    said = columns(page(), ["prover", *names])
    found = columns(body(names), ["prover", *names])
    assert len(found) > 100
    assert said == found, MADE


@pytest.mark.extended
def test_torchs_sanitizer_and_all_else_say_what_the_page_says() -> None:
    assert list(table(list(ORACLES))) == page(), MADE


def test_no_oracle_calls_a_proved_scheme_faulty_and_some_oracle_sees_every_fault() -> None:
    for subject, (prover, why, *cells) in columns(page(), ["prover", WHY, *ORACLES]).items():
        assert set(cells) <= {FAULT, NONE}
        if prover.startswith("PROVED"):
            assert (set(cells), why) == ({NONE}, ""), subject
        else:
            assert FAULT in cells, subject
            assert bool(why) == (NONE in cells), subject


def test_a_cell_that_is_changed_is_seen() -> None:
    lines = page()
    names = ["prover", *ORACLES]
    at = next(k for k, text in enumerate(lines) if FAULT in text and text.startswith("| ring"))
    changed = [*lines[:at], lines[at].replace(FAULT, NONE, 1), *lines[at + 1 :]]
    assert columns(changed, names) != columns(lines, names)


@pytest.mark.extended
def test_without_the_host_the_sanitizer_sees_no_wait_that_the_host_lacks() -> None:
    """As it is shipped: it hears of what is put on streams, and of nothing that the host does."""
    from tests.support.sanitizer import finds_a_race

    function = edited(ring_read, without(Named(SyncEvent)))
    programs = [unroll(calls) for calls, _ in list(instances(function))[:40]]
    assert any(finds_a_race(program) for program in programs)
    assert not any(finds_a_race([issued for issued in program if isinstance(issued.operation, OnStream)]) for program in programs)
