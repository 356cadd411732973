"""Texts that tests make and run: put where Python looks for sources, so that the prover can read what runs."""

import linecache
from typing import Any


def run_text(text: str, file: str, names: dict[str, Any]) -> None:
    """Runs a text under the name of a file, with these global names."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), names)
