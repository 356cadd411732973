"""The tests of the command line see no GitHub but the one that they set up."""

import pytest

from kvstage_proofs import github


@pytest.fixture(autouse=True)
def outside_github(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (github.ACTIONS, github.SUMMARY, github.WORKSPACE):
        monkeypatch.delenv(name, raising=False)
