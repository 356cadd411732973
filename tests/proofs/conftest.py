"""What the tests of the command line share: a catalogue of their own, and no GitHub but the one that they set up."""

from collections.abc import Callable

import pytest

from kvstage_proofs.obligation import Obligation
from kvstage_proofs.reports import github
from kvstage_proofs.targets import names

SetCatalogue = Callable[..., None]


@pytest.fixture
def catalogue_of(monkeypatch: pytest.MonkeyPatch) -> SetCatalogue:
    """Sets the catalogue, and judges in this process: a worker would state the real one."""

    def replace(*stated: Obligation) -> None:
        monkeypatch.setattr(names, "catalogue", lambda: iter(stated))
        monkeypatch.setattr("kvstage_proofs.commands.parallel.processes", lambda _: 1)

    return replace


@pytest.fixture(autouse=True)
def outside_github(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (github.ACTIONS, github.SUMMARY, github.WORKSPACE):
        monkeypatch.delenv(name, raising=False)
