"""Builds test programs with the runtime, once for each toolchain, however many processes of a test run ask for them."""

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import INCLUDE, ROOT, SOURCE
from .errors import CppError

CALLED = ("-fno-builtin-memcpy", "-fno-builtin-memset", "-fno-builtin-memmove")
"""Without these g++ copies a few bytes in place, where ThreadSanitizer doesn't see it."""
WARNINGS = ("-Wall", "-Wextra", "-Werror")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """How a program is built: `sanitizer` is thread, address or nothing."""

    compiler: str = "g++"
    standard: str = "c++17"
    sanitizer: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """Those of the program's own files."""
        instrumented = (f"-fsanitize={self.sanitizer}",) if self.sanitizer else ()
        return (f"-std={self.standard}", "-g", "-O1", "-fno-omit-frame-pointer", "-pthread", *CALLED, *instrumented)


def build(sources: Sequence[Path], toolchain: Toolchain, folder: Path, *flags: str) -> Path:
    """The program of these files and the runtime, in a folder that builds may share. Raises CppError with what compilers say."""
    key = _digest(toolchain, flags, [*sources, *_beside(sources), *_runtime_files()])
    program = folder / f"{Path(sources[0]).stem}-{key}"
    with _locked(program.with_suffix(".lock")):
        if not program.exists():
            _built(sources, toolchain, program, flags, _runtime(toolchain, folder))
    return program


def _beside(sources: Sequence[Path]) -> list[Path]:
    """The headers in the folders of some files."""
    return sorted({header for source in sources for header in Path(source).parent.glob("*.h*")})


def _runtime_files() -> list[Path]:
    return [*sorted(ROOT.rglob("*.hpp")), *sorted(ROOT.rglob("*.h")), SOURCE]


def _runtime(toolchain: Toolchain, folder: Path) -> Path:
    """The runtime's object file: one for a compiler, as it is never instrumented."""
    plain = Toolchain(toolchain.compiler, toolchain.standard)
    found = folder / f"runtime-{_digest(plain, (), _runtime_files())}.o"
    with _locked(found.with_suffix(".lock")):
        if not found.exists():
            beside = found.with_suffix(".part")
            _done([plain.compiler, f"-std={plain.standard}", "-O2", "-g", *WARNINGS, "-c", str(SOURCE), "-o", str(beside)])
            beside.replace(found)
    return found


def _built(sources: Sequence[Path], toolchain: Toolchain, program: Path, flags: Sequence[str], runtime: Path) -> None:
    commands = [
        [toolchain.compiler, *toolchain.flags, "-I", str(INCLUDE), *flags, "-c", str(source), "-o", f"{program}.{number}.o"]
        for number, source in enumerate(sources)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_done, commands))
    beside = Path(f"{program}.part")
    _done([toolchain.compiler, *toolchain.flags, *(command[-1] for command in commands), str(runtime), "-o", str(beside)])
    beside.replace(program)


def _done(command: Sequence[str]) -> None:
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CppError(f"{command[0]} is missing: install it") from None
    if run.returncode:
        raise CppError(f"{' '.join(command)}\n{run.stderr}")


def _digest(toolchain: Toolchain, flags: Sequence[str], files: Sequence[Path]) -> str:
    found = hashlib.sha256(repr((toolchain, flags)).encode())
    for file in files:
        found.update(Path(file).read_bytes())
    return found.hexdigest()[:16]


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
