"""Packages as they are, by version, each installed into a folder of its own: what docs/found.md tells."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

OLD_TRANSFORMERS = (
    "transformers==5.12.0",
    "tokenizers==0.22.2",
    "huggingface-hub==1.5.0",
    *("httpx", "httpcore", "h11", "certifi", "idna", "anyio"),
)
CASES = {
    "transformers 5.24.0": (("transformers==5.24.0",), "offloaded_cache.py", (), 0, True),
    "transformers 5.24.0 on a side stream": (("transformers==5.24.0",), "offloaded_cache.py", ("side",), 2, False),
    "transformers 5.12.0": (OLD_TRANSFORMERS, "offloaded_cache.py", (), 1, True),
    "torchao 0.18.0": (("torchao==0.18.0",), "offloaded_optimizer.py", (), 1, False),
    "block-streamer 0.2.0": (("block-streamer==0.2.0",), "streamed_blocks.py", (), 1, False),
}
"""What is installed, what is run, how many waits are missing, and whether the late schedule gives right results."""


@pytest.mark.extended
@pytest.mark.parametrize("name", CASES)
def test_a_package_as_it_is(name: str, tmp_path: Path) -> None:
    packages, script, arguments, missing, late = CASES[name]
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "-t", str(tmp_path), *packages]
    subprocess.run(install, check=True, capture_output=True)
    roots = [str(tmp_path), *(str(ROOT / each) for each in ("model", "impl", "proofs")), str(ROOT)]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(Path(__file__).parent / "packages" / script), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    told = json.loads(run.stdout.splitlines()[-1])
    assert told["issue order"], "in issue order it gives what the CPU gives"
    assert len(told["found"]) == missing, told["found"]
    assert told["late"] == late
    assert not any(told["witnesses"]), "each witness shows wrong results"
