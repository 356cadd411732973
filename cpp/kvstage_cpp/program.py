"""A program that is linked with the runtime, and what comes of a run under one schedule."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import run_log, sanitizer_logs
from .errors import CppError
from .run_log import RunLog
from .sanitizer_logs import Report

HANGS = 70
"""The exit code of a program that the runtime's watchdog has ended."""
ASAN_STOPPED = 99
"""The exit code of one that AddressSanitizer has ended."""
NO_MAPPING = "unexpected memory mapping"
"""What ThreadSanitizer says on kernels that spread addresses wider than it was built for."""
TSAN = "symbolize=0 exitcode=0 history_size=4 atexit_sleep_ms=0 stack_trace_format='    #%n (%m+%o)'"
ASAN = f"symbolize=0 exitcode={ASAN_STOPPED} fast_unwind_on_malloc=0"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the runtime is told beside the schedule: see docs/cpp.md."""

    pageable: str = "documented"
    implicit_sync: bool = False
    watchdog: float = 60.0

    def environment(self) -> dict[str, str]:
        """As environment variables."""
        return {
            "KVSTAGE_PAGEABLE": self.pageable,
            "KVSTAGE_IMPLICIT_SYNC": str(int(self.implicit_sync)),
            "KVSTAGE_WATCHDOG": str(self.watchdog),
        }


@dataclass(frozen=True)
class Run:
    """One run: how it ended, and what runtime and sanitizer have seen. `output` has what it printed, both streams in turn."""

    schedule: str
    exit_code: int
    output: str
    log: RunLog
    reports: tuple[Report, ...]

    @property
    def failed(self) -> bool:
        """Whether the program itself says that something is wrong."""
        return self.exit_code not in (0, HANGS) and not (self.exit_code == ASAN_STOPPED and self.reports)


def run(command: Sequence[str], schedule: str, settings: Settings, *, trace: bool = False) -> Run:
    """Runs a program to its end. Raises CppError if it can't be started."""
    with tempfile.TemporaryDirectory(prefix="kvstage-") as folder:
        done = _started(command, _environment(schedule, settings, Path(folder), trace))
        if NO_MAPPING in done.stdout and shutil.which("setarch"):
            command = ["setarch", "--addr-no-randomize", *command]
            done = _started(command, _environment(schedule, settings, Path(folder), trace))
        texts = {file.name: file.read_text(encoding="utf-8", errors="replace") for file in sorted(Path(folder).iterdir())}
    reports = [report for name, text in texts.items() if name.startswith("sanitizer.") for report in sanitizer_logs.reports(text)]
    return Run(schedule, done.returncode, done.stdout, run_log.read(texts.get("log", "")), tuple(reports))


def _environment(schedule: str, settings: Settings, folder: Path, trace: bool) -> Mapping[str, str]:
    kept = os.environ
    return {
        **kept,
        **settings.environment(),
        "KVSTAGE_SCHEDULE": schedule,
        "KVSTAGE_LOG": str(folder / "log"),
        "KVSTAGE_TRACE": str(int(trace)),
        "TSAN_OPTIONS": f"{kept.get('TSAN_OPTIONS', '')} {TSAN} log_path={folder}/sanitizer",
        "ASAN_OPTIONS": f"detect_leaks=0 {kept.get('ASAN_OPTIONS', '')} {ASAN} log_path={folder}/sanitizer",
    }


def _started(command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise CppError(
            f"can't run {command[0]}: {error.strerror}: give the path of a program that is built, such as ./test"
        ) from None
