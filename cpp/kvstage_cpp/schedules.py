"""Which schedules a program runs under: from what the command line says, and from how many operations it issues."""

from collections.abc import Iterator, Sequence

from kvstage_model.schedules.replay_strings import ISSUE_ORDER, ReplayStringError, from_string

from .errors import CppError

LATE = "late"
"""No operation happens before the host waits for it. The other schedules are the model's, by its replay strings."""
DELAYS, SEEDED = "delays", "seeded"
DEFAULT = (ISSUE_ORDER, LATE, DELAYS, f"{SEEDED}:8")
MOST_DELAYED = 100
"""Operations that `delays` holds back, of a program that issues more: evenly spread over all."""
SEED = 0


def checked(asked: Sequence[str]) -> tuple[str, ...]:
    """The parts of --schedules. Raises CppError for one that means nothing."""
    for part in asked:
        if part in (LATE, DELAYS) or _drawn(part):
            continue
        try:
            from_string(part)
        except ReplayStringError:
            forms = f"{ISSUE_ORDER}, {LATE}, {DELAYS}, {SEEDED}:COUNT, or a replay string such as hold:3:begin"
            raise CppError(f"--schedules has {part!r}: it must be one of {forms}") from None
        if part.startswith("choices"):
            raise CppError(f"--schedules has {part!r}: choices are for schedules in Python, a program in C++ has {SEEDED}:SEED:RUN")
    return tuple(asked)


def _drawn(part: str) -> int:
    """How many schedules seeded:COUNT draws; 0 for anything else."""
    name, _, count = part.partition(":")
    return int(count) if name == SEEDED and count.isdigit() and len(count) < 7 else 0


def schedules(asked: Sequence[str], operations: int) -> Iterator[str]:
    """The schedules by their replay strings, none twice."""
    seen: set[str] = set()
    for part in asked:
        for schedule in _of(part, operations):
            if schedule not in seen:
                seen.add(schedule)
                yield schedule


def _of(part: str, operations: int) -> Iterator[str]:
    if part == DELAYS:
        for index in delayed(operations):
            yield from (f"hold:{index}:begin", f"hold:{index}:end")
    elif drawn := _drawn(part):
        yield from (f"{SEEDED}:{SEED}:{run}" for run in range(drawn))
    else:
        yield part


def delayed(operations: int) -> Sequence[int]:
    """Which operations are held back, one at a time."""
    if operations <= MOST_DELAYED:
        return range(operations)
    return [index * operations // MOST_DELAYED for index in range(MOST_DELAYED)]
