"""A state that each call of a scheme makes anew, around its step."""

from .entered import LATE, SEEN, Late, maker


@maker
def list_around() -> Late:
    done: list[int] = []
    return lambda i: len(done) > LATE


@maker
def dict_around() -> Late:
    done = {"steps": 0}
    return lambda i: done["steps"] > LATE


@maker
def variable_around() -> Late:
    done = 0

    def late(i: int) -> object:
        nonlocal done
        done += 1
        return done > LATE

    return late


@maker
def iterator_around() -> Late:
    turns = iter(range(LATE))
    return lambda i: i in turns


@maker
def enumeration_around() -> Late:
    turns = enumerate((1, 2, 3))
    return lambda i: (2, 3) in turns


@maker
def generator_around() -> Late:
    turns = (turn for turn in range(LATE))
    return lambda i: 5 in turns


@maker
def map_around() -> Late:
    turns = map(abs, range(LATE))
    return lambda i: 5 in turns


@maker
def list_in_a_tuple() -> Late:
    held = ([0],)
    return lambda i: len(held[0]) > LATE


@maker
def default_around() -> Late:
    def late(i: int, done: tuple[list[int], ...] = ([],)) -> object:
        return len(done[0]) > LATE

    return late


@maker
def annotation_that_counts() -> Late:
    def late(i: SEEN.append(1)) -> object:  # type: ignore[valid-type]
        return i > LATE

    return late
