"""The tour of the library is run: its blocks, in their order, as one program; and it names every error there is."""

from typing import Any

import pytest

import kvstage
from kvstage import errors
from kvstage_model.schemes.registry import LIBRARY
from tests.support.drift import Watch
from tests.support.pages import Page
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
BLOCKS = Page.at(ROOT / "docs" / "library.md").blocks


def test_all_blocks_run_in_order(capsys: pytest.CaptureFixture[str], watch: Watch) -> None:
    assert {language for language, _ in BLOCKS} == {"python"}
    assert len(BLOCKS) >= 12
    names: dict[str, Any] = {}
    for number, (_, text) in enumerate(BLOCKS):
        exec(compile(text, f"<block {number} of docs/library.md>", "exec"), names)
    assert "call wait() first" in capsys.readouterr().out
    assert watch.compared >= 2 * len(BLOCKS), "its calls are compared with their schemes"


def test_the_page_names_every_error_and_every_scheme() -> None:
    written = {name for name, value in vars(errors).items() if name.endswith("Error") and value.__module__ == errors.__name__}
    missing = {name for name in written if name not in PAGE}
    assert missing <= {"OpenCLMissingError"}, "which a page of its device explains"
    assert {name for name in LIBRARY if f"`{name}`" not in PAGE} == set()


def test_the_page_shows_the_whole_interface() -> None:
    for shown in (kvstage.Stager, kvstage.Transfer, kvstage.Batch):
        public = {name for kind in shown.__mro__ for name in vars(kind) if not name.startswith("_")}
        ours = {"give_back", "when_done", "once_free", "check_stream", "stream", "cancelled"}
        assert {name for name in public if name not in PAGE} <= ours, shown


def test_the_front_page_links_it() -> None:
    assert "(docs/library.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
