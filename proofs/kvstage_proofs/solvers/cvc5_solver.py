"""cvc5, asked in SMT-LIB text. It is imported when it is first asked: without `--crosscheck` nothing needs it."""

from importlib.util import find_spec

from .query import Answer

SOLVER = "cvc5"
RESOURCES = 10_000_000
"""Budget of one question in cvc5's own count, 10 times what the largest question of the catalogue needs: some minutes."""


class CrosscheckError(Exception):
    """cvc5 is not there, or does not understand a question."""


def require_cvc5() -> None:
    """Raises CrosscheckError if cvc5 is not installed."""
    if find_spec(SOLVER) is None:
        raise CrosscheckError("the second solver, cvc5, is not installed: pip install 'kvstage[crosscheck]'")


def version() -> str:
    """The version of cvc5."""
    import cvc5

    return str(cvc5.__version__)


def solve_smtlib(text: str) -> tuple[Answer, int]:
    """cvc5's answer to SMT-LIB text with one question, and the resources that it took. Anything but sat or unsat is UNKNOWN.

    Raises CrosscheckError if cvc5 can't read the text.
    """
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("rlimit-per", str(RESOURCES))
    solver.setOption("incremental", "false")  # one question each: the slowest take a quarter less
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    symbols = parser.getSymbolManager()
    said = ""
    try:
        while not (command := parser.nextCommand()).isNull():
            said += command.invoke(solver, symbols)
    except RuntimeError as error:
        raise CrosscheckError(f"cvc5 does not understand a query: {error}") from error
    said = said.strip()
    if said.startswith("(error"):
        raise CrosscheckError(f"cvc5 does not understand a query: {said}")
    answer = Answer(said) if said in (Answer.SAT.value, Answer.UNSAT.value) else Answer.UNKNOWN
    used = solver.getStatistics().get("resource::resourceUnitsUsed")
    return answer, int(used.get("value", 0))
