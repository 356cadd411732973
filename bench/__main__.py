"""`python -m bench NAME`: run one benchmark."""

import importlib
import sys

BENCHMARKS = {
    "prefill": "stage the caches of a GLM-5.3-Flash prefill, by row and by block",
    "device_check": "the tests that need an accelerator, and the caches of a prefill by every scheme on it",
    "schemes": "the caches of a prefill by the schemes that suit a device, beside flat copies",
    "step": "staging against the rest of a GLM-5.3-Flash forward pass, by every scheme",
}
"""The module of each benchmark, in this package, and what it does. Each has `main(argv) -> exit code`."""


def main(argv: list[str]) -> int:
    """Run the benchmark that argv[0] names with the rest of the arguments. Exit 2 on a usage error, before any work."""
    width = max(map(len, BENCHMARKS))
    names = "\n".join(f"  {name:{width}} {what}" for name, what in BENCHMARKS.items())
    usage = f"usage: python -m bench NAME [--help] [options of NAME]\n{names}"
    if argv[:1] in (["-h"], ["--help"]):
        print(usage)
        return 0
    if not argv or argv[0] not in BENCHMARKS:
        problem = f"no benchmark is called {argv[0]!r}" if argv else "name a benchmark"
        print(f"{problem}\n{usage}", file=sys.stderr)
        return 2
    code: int = importlib.import_module(f"bench.{argv[0]}").main(argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
