"""The modules, classes and functions that pages and docstrings name are there."""

import re
from importlib import import_module

import pytest

from tests.support.paths import ROOT

NAME = re.compile(r"(?<![\w.])(?:kvstage|kvstage_(?:model|proofs|emit|cpp)|pytest_kvstage)(?:\.[A-Za-z_]\w*)+")
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
FILES = [*PAGES, *(file for root in ("model", "impl", "proofs", "cpp") for file in (ROOT / root).rglob("*.py"))]


def there(name: str) -> bool:
    """Whether a dotted name is a module, or what lies in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_each_name_is_there() -> None:
    said = {(file.relative_to(ROOT), name) for file in FILES for name in NAME.findall(file.read_text(encoding="utf-8"))}
    assert len(said) > 100
    assert {(str(file), name) for file, name in said if not there(name)} == set()


@pytest.mark.parametrize("name", ["kvstage_model.trace.Trace", "kvstage_model.traces.as_jason", "kvstage.stagers"])
def test_a_name_of_yesterday_is_seen(name: str) -> None:
    assert not there(name)
    assert there("kvstage_model.traces.as_json")
