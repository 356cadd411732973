"""The headers of the library: they are what is emitted today, and do in C++ what the schemes do in Python, byte by byte."""

import random
from pathlib import Path

import pytest

from kvstage_emit.writing.header import SHARED, Draft, drafts, support
from kvstage_model.language.edits import Named, orderings
from kvstage_model.schemes.registry import ENTRIES
from kvstage_proofs.commands.main import main
from tests.support.emitted import HEADERS, ORDERS, answers, case, cases, compiled, ignored

SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
ALL = 11


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All schemes in one program."""
    return compiled(tmp_path_factory.mktemp("emitted"))


def shown(draft: Draft) -> list[str]:
    """The verdicts on top of a header of the library."""
    lines = (HEADERS / f"{draft.name}.hpp").read_text(encoding="utf-8").split("#pragma once")[0].splitlines()
    return [line.removeprefix("//   ") for line in lines if line.startswith("//   ")]


def test_the_headers_are_what_is_emitted_today() -> None:
    found = drafts()
    for draft in found:
        assert (HEADERS / f"{draft.name}.hpp").read_text(encoding="utf-8") == draft.header(shown(draft)), draft.name
    for name, text in support().items():
        assert (HEADERS / name).read_text(encoding="utf-8") == text, name
    files = {f"{draft.name}.hpp" for draft in found} | {"staging.hpp", *SHARED}
    assert {file.name for file in HEADERS.iterdir()} == files
    assert len(found) == len(ENTRIES) == ALL


def test_the_verdicts_on_top_are_those_of_today(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emit", "per_row", "--lang", "cpp", "-o", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"per_row: {tmp_path / 'per_row.hpp'}\n"
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (HEADERS / file.name).read_bytes()
    assert sum(line.startswith("PROVED") for line in shown(drafts()[1])) == 11


@pytest.mark.extended
def test_all_verdicts_on_top_are_those_of_today(tmp_path: Path) -> None:
    assert main(["emit", "-o", str(tmp_path)]) == 0
    made, kept = ({file.name: file.read_bytes() for file in folder.iterdir()} for folder in (tmp_path, HEADERS))
    assert made == kept


def agree(program: Path, number: int, seed: int) -> None:
    """That C++ issues what Python does, to the same rows in the same order, and that its bytes are those of a naive copy."""
    chosen = cases(number, seed)
    found = answers(program, [each.line(k // (2 * ALL) % ORDERS, k) for k, each in enumerate(chosen)])
    for each, (right, tape) in zip(chosen, found, strict=True):
        assert right, each
        assert tape == each.tape(), each
    assert sum(len(tape) > 0 for _, tape in found) > number * 0.7


def test_cpp_does_what_python_does(program: Path) -> None:
    agree(program, 20 * 2 * ALL, 1)


@pytest.mark.extended
@pytest.mark.parametrize("compiler", ["g++", "clang++-16"])
@pytest.mark.parametrize("standard", ["-std=c++17", "-std=c++20"])
def test_many_times_under_sanitizers(compiler: str, standard: str, tmp_path: Path) -> None:
    agree(compiled(tmp_path, standard, *SANITIZED, compiler=compiler), 10_000 * ALL, 2)


NEEDLESS = {("gather", "read", "RecordEvent:free:copy"), ("gather", "read", "WaitEvent:free:compute")}
"""What the removal table calls needless, since the library packs as many device slots as pinned ones."""


def test_each_wait_and_record_left_out_gives_wrong_bytes(program: Path) -> None:
    """With what is ignored named as in the removal table. Where nothing is ignored, all bytes are right."""
    random_, harmless, tried = random.Random(3), set(), 0
    for entry in ENTRIES:
        for direction in ("read", "write"):
            chosen = [case(random_, entry.name, direction) for _ in range(40)]
            names: dict[Named, None] = {}
            for each in chosen:
                names |= dict.fromkeys(orderings(each.concrete()))
            for named in names:
                deaf, tried = ignored(named), tried + 1
                lines = [each.line(order, k, deaf) for k, each in enumerate(chosen) for order in range(ORDERS)]
                if all(right for right, _ in answers(program, lines)):
                    harmless.add((entry.name, direction, deaf))
    assert harmless == NEEDLESS
    assert tried == 35
