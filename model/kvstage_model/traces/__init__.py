"""Traces as files: what was issued and what happened, as JSON, SVG, text and for Perfetto; and checked against a scheme.

Read `json_fields` first for the format, `check` for what is looked at. To add a format, write its file here and enter it in
`FORMATS` of `kvstage_proofs.commands.trace_files`.
"""

from .call_arguments import arguments_as_json
from .check import check
from .json_reader import read_file
from .json_writer import as_json
from .perfetto import as_chrome
from .svg import as_svg
from .text import timeline

__all__ = [
    "arguments_as_json",
    "as_chrome",
    "as_json",
    "as_svg",
    "check",
    "read_file",
    "timeline",
]
