"""`python -m bench step`: a forward pass whose caches are staged by the library, measured against the rest of the step."""

import argparse
import json
import os
import sys
from pathlib import Path

TOKENS, QUICK_TOKENS = 8192, 2048
VARIABLE = "OMP_WAIT_POLICY"


def main(argv: list[str]) -> int:
    """Print the tables. Exit 1 if a scheme changed a byte, 2 on a usage error or without transformers."""
    parser = argparse.ArgumentParser(prog="python -m bench step", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the same numbers there, as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the share of the step over history length there, as SVG")
    quick = f"{QUICK_TOKENS} tokens, not {TOKENS}: under 5 minutes on two idle cores, not under 20"
    parser.add_argument("--quick", action="store_true", help=quick)
    options = parser.parse_args(argv)
    for name, file in (("--json", options.json), ("--plot", options.plot)):
        if file and (file.is_dir() or not file.parent.is_dir()):
            parser.error(f"{name} {file}: no file can be written there; name one in a folder that exists")
    policy = wait_policy()  # before torch, and so the modules below, is loaded
    try:
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        parser.error(f"{error}: the model comes from transformers; pip install 'kvstage[transformers]'")
    from . import measure_step
    from .devices import available
    from .forward import DifferentError
    from .plot import share_over_history
    from .replay import WrongReplayError
    from .sizes import SMALL
    from .step_table import table

    try:
        report = measure_step.measure_step(SMALL, QUICK_TOKENS if options.quick else TOKENS, available(), policy)
    except (DifferentError, WrongReplayError) as error:
        print(f"python -m bench step: {error}", file=sys.stderr)
        return 1
    print(table(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if options.plot:
        options.plot.write_text(share_over_history(report["devices"][0]), encoding="utf-8")
    return 0


def wait_policy() -> str:
    """Keeps OpenMP's idle threads from spinning on the cores that the staging needs, and says how they wait.

    That is decided when torch is loaded: where it is loaded already, or the variable is set, all stays as it is.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault(VARIABLE, "passive")
    return f"{VARIABLE}={os.environ.get(VARIABLE, 'not set')}"
