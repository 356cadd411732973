"""The commands of the project, each a session in the environment that README sets up: `nox -s test`."""

import nox

nox.options.sessions = ["prove", "lint", "types", "test"]

COMMANDS = {
    "prove": ["kvstage prove"],
    "test": ["pytest -q -n 2"],
    "extended": ["pytest -q -n 2 --extended all"],
    "lint": ["ruff check .", "ruff format --check ."],
    "types": ["mypy"],
    "versions": ["pytest -q --extended all tests/proofs/maintenance/test_versions.py"],
    "bench": ["python -m bench prefill --tokens 512", "python -m bench step --quick"],
}
"""What each session runs. README and `.ci/run` use the same."""


def add(name: str, commands: list[str]) -> None:
    """Declares a session that runs some commands with the arguments after `--` at the end of the last."""

    @nox.session(name=name, venv_backend="none")
    def session(session: nox.Session) -> None:
        for command in commands:
            session.run(*command.split(), *(session.posargs if command is commands[-1] else ()))


for name, commands in COMMANDS.items():
    add(name, commands)
