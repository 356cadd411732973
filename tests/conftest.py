"""What all tests share: the caches of a forward pass, a cache for the OpenCL driver, and which `extended` tests run."""

import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bench.glm import Cache
    from kvstage import ThreadDevice
    from tests.support.drift import Watch

SHARES = 8
COUNTS = pytest.StashKey[tuple[int, int]]()
"""How many extended tests this process runs, of how many it collected."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--extended",
        choices=("all", "share", "none"),
        default="none",
        help=f"tests marked extended: all of them, the share of 1 in {SHARES} that the commit picks, or none (default)",
    )


def pytest_report_header(config: pytest.Config) -> str:
    return f"extended: {_chosen(config)}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the extended tests of other shares: across eight commits of different shares, each runs once.

    What is left of them comes first: behind the short tests a long one would leave all processes but its own without work.
    """
    option, (share, _) = config.getoption("extended"), _share(config.rootpath)
    extended = [item for item in items if item.get_closest_marker("extended")]
    left_out = {item for item in extended if option == "none" or (option == "share" and _share_of(item) != share)}
    config.stash[COUNTS] = (len(extended) - len(left_out), len(extended))
    if left_out:
        config.hook.pytest_deselected(items=[item for item in extended if item in left_out])
    first = [item for item in extended if item not in left_out]
    items[:] = first + [item for item in items if not item.get_closest_marker("extended")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    run, collected = config.stash.get(COUNTS, (0, 0))
    if collected:
        terminalreporter.write_line(f"extended: {_chosen(config)}, {run} of {collected} run")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under pytest-xdist the workers alone collect: they hand their counts to the process that writes the summary."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["extended"] = session.config.stash.get(COUNTS, (0, 0))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects the same tests, so any worker's counts are the run's."""
    if "extended" in getattr(node, "workeroutput", {}):
        run, collected = node.workeroutput["extended"]
        node.config.stash[COUNTS] = (run, collected)


def _chosen(config: pytest.Config) -> str:
    option, (share, commit) = config.getoption("extended"), _share(config.rootpath)
    return f"share {share} of {SHARES} by {commit}" if option == "share" else str(option)


def _share_of(item: pytest.Item) -> int:
    """A sum over the name, not `hash`, which differs between processes."""
    return zlib.crc32(item.nodeid.encode()) % SHARES


def _share(root: Path) -> tuple[int, str]:
    """The share that the checked out commit picks, and its name for people. Without a commit it is share 0."""
    try:
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return 0, "default: git is not installed"
    if asked.returncode:
        return 0, "default: no commit is checked out"
    commit = asked.stdout.strip()
    return int(commit, 16) % SHARES, f"commit {commit[:8]}"


@pytest.fixture(scope="session", autouse=True)
def opencl_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of its own for the OpenCL driver: a program that crashed once must not spoil later runs through it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POCL_CACHE_DIR", str(tmp_path_factory.mktemp("pocl")))
        patch.setenv("PYOPENCL_NO_CACHE", "1")
        yield


@pytest.fixture(autouse=True)
def watch() -> "Iterator[Watch | None]":
    """Every call of the library in this process is recorded, and compared with the scheme that it was to run.

    None where the library is not loaded: tests of the model and of the proofs need no torch.
    """
    if "kvstage" not in sys.modules:
        yield None
        return
    from tests.support.drift import watching

    with watching() as watch:
        yield watch
    assert not watch.drifts, "\n".join(watch.drifts)


@pytest.fixture(scope="session")
def device() -> "Iterator[ThreadDevice]":
    """One device for the tests that don't close, hold or break it."""
    from kvstage import ThreadDevice

    with ThreadDevice() as device:
        yield device


@pytest.fixture(scope="session")
def glm_caches(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> "tuple[Cache, ...]":
    """The 22 caches of a GLM-5.3-Flash prefill of 8192 tokens: never write to them.

    The forward pass takes some 15 s: under pytest-xdist the first worker that needs it makes it for all.
    """
    import torch
    from filelock import FileLock  # torch depends on it

    from bench.glm import Cache, forward_caches

    if not hasattr(request.config, "workerinput"):
        return forward_caches()
    file = tmp_path_factory.getbasetemp().parent / "glm_caches.pt"
    with FileLock(file.with_suffix(".lock")):
        if not file.exists():
            torch.save([(cache.layer, cache.kind, cache.rows) for cache in forward_caches()], file)
    return tuple(Cache(*parts) for parts in torch.load(file))
