"""The cases of the C++ runtime's tests: their files and their names."""

import re
from collections.abc import Callable

from kvstage_cpp.build import Toolchain
from tests.support.paths import ROOT

Cases = Callable[[Toolchain], str]

CASES = sorted((ROOT / "tests" / "cpp" / "cases").glob("*.cpp"), key=lambda file: file.name != "main.cpp")
NAMES = re.findall(r"^CASE\((\w+)\)", "".join(file.read_text(encoding="utf-8") for file in CASES), re.MULTILINE)
STANDARD = Toolchain()
OTHERS = [Toolchain("g++", "c++20"), Toolchain("clang++-16"), Toolchain("clang++-16", "c++20")]


def sanitized(toolchain: Toolchain, sanitizer: str) -> Toolchain:
    """The same toolchain with another sanitizer."""
    return Toolchain(toolchain.compiler, toolchain.standard, sanitizer)
