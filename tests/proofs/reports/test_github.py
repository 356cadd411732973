"""Annotations and the summary on GitHub."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kvstage_proofs.commands.main import main
from kvstage_proofs.obligation import Judgement, Verdict
from kvstage_proofs.reports.github import annotations, as_markdown, error
from tests.support.claims import BROKEN, FIRST, HEAD, PROVED, REFUTED, UNSUPPORTED, WAIT, judgement, user_file, with_scheme

Captured = pytest.CaptureFixture[str]
ON = {"GITHUB_ACTIONS": "true"}
COMMAND = re.compile(r"::error (?P<properties>.*?)::(?P<message>.*)")


def read(line: str) -> dict[str, str]:
    """A command as GitHub's runner reads it: properties are split at commas, then everything is unescaped."""
    found = COMMAND.fullmatch(line)
    assert found is not None, line
    parts = dict(part.split("=", 1) for part in found["properties"].split(","))
    parts["message"] = found["message"]
    for name, text in parts.items():
        for code, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            text = text.replace(code, sign)
        parts[name] = text
    return parts


def of_file(verdict: Verdict, reason: str = "", scheme: str = "mine.py:read") -> Judgement:
    one = judgement(verdict)
    return replace(one, statement=replace(one.statement, scheme=scheme, direction="-"), reason=reason)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return user_file(tmp_path, HEAD.replace(WAIT, ""))


# -- annotations


def test_each_wrong_verdict_on_a_file_is_annotated_at_its_function(file: Path) -> None:
    found = replace(of_file(REFUTED), counterexample=BROKEN)
    (line,) = annotations([of_file(PROVED), found, judgement(REFUTED)], ON)
    assert read(line) == {
        "file": "mine.py",
        "line": str(HEAD.splitlines().index("def read(runs: Runs) -> Scheme:") + 1),
        "title": "mine.py:read:T0 REFUTED, expected PROVED",
        "message": "it is not so; n = 1, 1 call",
    }


def test_outside_github_there_are_none(file: Path) -> None:
    for environment in ({}, {"GITHUB_ACTIONS": "false"}):
        assert list(annotations([of_file(REFUTED)], environment)) == []


def test_a_reason_that_knows_its_line_is_annotated_there(file: Path) -> None:
    (line,) = annotations([of_file(UNSUPPORTED, "mine.py:4: a symbolic index\nis used: 100%, do this")], ON)
    assert "\n" not in line
    assert (read(line)["line"], read(line)["message"]) == ("4", "a symbolic index\nis used: 100%, do this")


@pytest.mark.parametrize("text", ["100%", "50%0A", "a\r\nb", "a,b:c", "::error::x"])
def test_nothing_in_a_text_breaks_out_of_its_command(file: Path, text: str) -> None:
    (line,) = annotations([of_file(UNSUPPORTED, text)], ON)
    assert read(line)["message"] == text
    assert len(line.splitlines()) == 1


def test_a_path_is_given_from_the_root_of_the_repository(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = annotations([of_file(REFUTED)], {**ON, "GITHUB_WORKSPACE": str(file.parent.parent)})
    assert read(line)["file"] == f"{file.parent.name}/mine.py"
    (line,) = annotations([of_file(REFUTED, scheme=f"{file}:read")], {**ON, "GITHUB_WORKSPACE": str(file.parent)})
    assert read(line)["file"] == "mine.py"
    (line,) = annotations([of_file(REFUTED)], {**ON, "GITHUB_WORKSPACE": "/elsewhere"})
    assert read(line)["file"] == "mine.py"


def test_a_scheme_that_an_edit_made_is_annotated_where_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = "from kvstage_model.language.edits import Named, edited, without\nbroken = edited(read, without(Named(SyncStream)))"
    user_file(tmp_path, with_scheme(made))
    monkeypatch.chdir(tmp_path)
    (line,) = annotations([of_file(REFUTED, scheme="mine.py:broken")], ON)
    assert read(line)["line"] == str(FIRST + 1)


def test_what_ends_a_run_is_annotated_where_it_knows_its_line() -> None:
    (line,) = error("mine.py:1: importing it raises OSError: no, 3%", ON)
    assert (read(line)["file"], read(line)["line"], read(line)["message"]) == (
        "mine.py",
        "1",
        "importing it raises OSError: no, 3%",
    )
    assert list(error("there is no file 'mine.py'", ON)) == []
    assert list(error("mine.py:1: importing it raises OSError", {})) == []


# -- the summary


class Tags(HTMLParser):
    """The tags of a text, and what stands in <pre>."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.pre = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "pre" in self.open:
            self.pre += data


def test_the_summary_has_a_row_for_each_obligation_and_the_wrong_ones_first() -> None:
    text = as_markdown([judgement(PROVED), judgement(REFUTED), judgement(REFUTED, REFUTED)], "3 obligations")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| :")]
    assert rows == [
        [":x:", "loop.read:T0", "a plain claim", "REFUTED, expected PROVED", "0.2"],
        [":white_check_mark:", "loop.read:T0", "a plain claim", "PROVED", "0.2"],
        [":white_check_mark:", "loop.read:T0", "a plain claim", "REFUTED", "0.2"],
    ]
    assert "3 obligations" in text.splitlines()
    assert "|---|---|---|---|---:|" in text.splitlines()


def test_only_wrong_ones_show_their_schedule_and_it_is_folded() -> None:
    shown = replace(judgement(REFUTED), counterexample=BROKEN)
    tags = Tags(as_markdown([shown, replace(judgement(REFUTED, REFUTED), counterexample=BROKEN)], ""))
    assert (tags.seen, tags.open) == (["details", "summary", "pre"], [])
    assert tags.pre == "instance: n = 1, 1 call\nwrong: it is not so"


def test_no_text_breaks_out_of_the_summary() -> None:
    nasty = "a\n\n</pre> | ```\n# b <b>"
    one = replace(judgement(REFUTED), reason=nasty)
    text = as_markdown([replace(one, statement=replace(one.statement, scheme="a|b_c_d"))], "")
    assert Tags(text).pre == nasty
    (row,) = [line for line in text.splitlines() if line.startswith("| :")]
    assert r"a\|b\_c\_d.read:T0" in row
    assert len(re.findall(r"(?<!\\)\|", row)) == 6
    assert "\n\n<pre>" in text, "a <pre> that follows another tag ends at the first empty line"


# -- from the command line


def test_the_command_annotates_and_appends_to_the_summary(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "summary.md").write_text("of another step\n", encoding="utf-8")
    monkeypatch.setattr("kvstage_proofs.commands.parallel.processes", lambda _: 1)
    assert main(["prove", "mine.py:read"]) == 1
    commands = [read(line) for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    assert [each["title"].split()[0] for each in commands] == ["mine.py:read:T1", "mine.py:read:T3"]
    assert all("the host waits for stream copy (SyncStream)" in each["message"] for each in commands)
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert text.startswith("of another step\n## kvstage prove\n")
    assert Tags(text).seen == ["details", "summary", "pre"] * 2


def test_without_github_the_command_writes_neither(file: Path, capsys: Captured) -> None:
    assert main(["prove", "mine.py:read"]) == 1
    assert "::error" not in capsys.readouterr().out


def test_a_summary_that_cant_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    assert main(["prove", "per_row.read:T7"]) == 2
    assert capsys.readouterr().err == f"kvstage: can't write {tmp_path}: Is a directory\n"
