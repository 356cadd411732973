"""From what the user names to obligations: names of the catalogue, and schemes in the user's own files.

The order is always the same, so the k-th obligation of the same targets is the same one in every process.
"""

from difflib import get_close_matches

from ..catalogue.cases import PREFIX
from ..catalogue.cases import obligations as of_cases
from ..catalogue.catalogue import catalogue
from ..obligation import Obligation, Statement
from .user_file import is_file, of_file

CASES = "cases"
"""What stands for all public bugs."""
MOST_NEAR = 5
"""Names that are offered in place of an unknown one."""


class TargetError(Exception):
    """A target names nothing."""


def obligations(targets: tuple[str, ...]) -> tuple[Obligation, ...]:
    """What the targets name, each obligation once: those of the catalogue in its order, then the cases', then the files'.

    No target stands for the whole catalogue, `cases` for all public bugs. Raises TargetError for an unknown name,
    SchemeFileError for a file's scheme that can't be judged.
    """
    files = tuple(dict.fromkeys(target for target in targets if is_file(target)))
    bugs = tuple(target for target in targets if not is_file(target) and _of_cases(target))
    names = tuple(target for target in targets if not is_file(target) and not _of_cases(target))
    stated = tuple(catalogue()) if names or not targets else ()
    chosen = _chosen(names, stated) if targets else stated
    cases = tuple(of_cases()) if bugs else ()
    known = cases if CASES in bugs else _chosen(bugs, cases)
    return (*chosen, *known, *(obligation for file in files for obligation in of_file(file)))


def _of_cases(target: str) -> bool:
    return target == CASES or target.startswith(PREFIX)


def _chosen(names: tuple[str, ...], stated: tuple[Obligation, ...]) -> tuple[Obligation, ...]:
    for name in names:
        if not any(names_it(name, obligation.statement) for obligation in stated):
            raise TargetError(_unknown(name, stated))
    return tuple(each for each in stated if any(names_it(name, each.statement) for name in names))


def names_it(name: str, statement: Statement) -> bool:
    """Whether a name stands for a statement.

    It may be a scheme with all its broken variants (`per_block`), one variant (`per_block without its wait`), either of
    them in one direction (`per_block.read`), or one obligation (`per_block.read:T1`).
    """
    exact = name in (statement.scheme, statement.subject, statement.name)
    return exact or statement.scheme.startswith(f"{name} ")


def _unknown(name: str, stated: tuple[Obligation, ...]) -> str:
    statements = [obligation.statement for obligation in stated]
    known = dict.fromkeys(word for each in statements for word in (each.scheme, each.subject, each.name))
    near = get_close_matches(name, known, MOST_NEAR)
    schemes = dict.fromkeys(each.scheme for each in statements if " " not in each.scheme)
    hint = f"near it are: {', '.join(near)}" if near else f"there are {', '.join(schemes)}, or file.py:scheme"
    return f"there is no scheme or obligation {name!r}; {hint}"
