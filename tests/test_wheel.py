"""The built wheel works away from the checkout, beside files of a user's own that are called model.py and impl.py."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.emitted import HEADERS
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)]
    run = subprocess.run(build, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    (found,) = folder.glob("kvstage-*.whl")
    return found


def test_it_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"kvstage", "kvstage_cpp", "kvstage_emit", "kvstage_model", "kvstage_proofs", "pytest_kvstage"}
    assert {f"{top}/py.typed" for top in tops} <= set(names)
    assert "kvstage_model/traces/trace.schema.json" in names
    assert {f"kvstage_emit/include/kvstage/staging/{file.name}" for file in HEADERS.iterdir()} <= set(names)
    assert "kvstage_emit/writing/staging.hpp.in" in names
    parts = ("kvstage_cuda.cpp", "runtime/device.hpp", "include/cuda_runtime.h", "include/cuda.h", "include/hip/hip_runtime.h")
    assert {f"kvstage_cpp/{part}" for part in (*parts, "cmake/kvstageConfig.cmake")} <= set(names)


def test_it_works_beside_a_users_own_modules(wheel: Path, tmp_path: Path) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    zipfile.ZipFile(wheel).extractall(site)
    work.mkdir()
    for name in ("model.py", "impl.py", "proofs.py", "tests.py", "bench.py"):
        (work / name).write_text("OWN = True\n", encoding="utf-8")
    program = (
        f"import sys; sys.path.insert(1, {str(site)!r})\n"
        "import impl, kvstage, kvstage_model, kvstage_proofs.commands.main, model\n"
        "assert model.OWN and impl.OWN\n"
        f"assert all(module.__file__.startswith({str(site)!r}) for module in (kvstage, kvstage_model, kvstage_proofs))\n"
        "raise SystemExit(kvstage_proofs.commands.main.main(['prove', 'per_row.read:T7']))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=work, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "PROVED" in run.stdout
