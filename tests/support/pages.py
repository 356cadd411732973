"""Pages with blocks that are run: the files that they show are written, and commands print what is shown below them."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FILE = "# file: "


@dataclass(frozen=True)
class Page:
    """A page in Markdown, and its fenced blocks: their language and text, in order."""

    blocks: tuple[tuple[str, str], ...]

    @classmethod
    def at(cls, path: Path) -> "Page":
        """The page in a file."""
        text = path.read_text(encoding="utf-8")
        return cls(tuple(re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)))

    def of(self, language: str) -> list[str]:
        """The blocks in one language."""
        return [text for name, text in self.blocks if name == language]

    def write_files(self, folder: Path) -> None:
        """Writes each Python block that begins with a file's name."""
        for text in self.of("python"):
            if text.startswith(FILE):
                name, _, content = text.removeprefix(FILE).partition("\n")
                (folder / name).write_text(content, encoding="utf-8")


def timeless(text: str) -> str:
    """Text without its durations, and without the padding in front of them."""
    return re.sub(r" +\d+(\.\d+)? s\b", " N s", text)


def prints(text: str, folder: Path) -> tuple[str, str]:
    """What a console block with one `kvstage` command prints in a folder, and what it shows, both timeless."""
    command, _, shown = text.removeprefix("$ ").partition("\n")
    program, *arguments = command.split()
    assert program == "kvstage"
    environment = {key: value for key, value in os.environ.items() if key != "GITHUB_ACTIONS"} | {"NO_COLOR": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "kvstage_proofs", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    return timeless(run.stdout), timeless(shown)
