"""Where hunted bodies come from: right loops, a few changes to them, or chance alone; all of it from one seed."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from kvstage_model.language.scheme import Direction
from tests.support.hunt import AIMS, GUARDS, INDICES, ITEMS, MOVES, ORDERS, Body, Line

READ, WRITE = Direction
LATE = "i - R + 1"
STREAMS, EVENTS = ("a", "b"), ("x", "y")

STAGED = Body((Line("fetch"), Line("sync"), Line("take")))
RING = Body(
    (
        Line("fetch"),
        Line("record"),
        Line("hwait", LATE, aim="k"),
        Line("take", LATE),
    ),
    longer=True,
)
STORED = Body((Line("fill"), Line("store"), Line("sync")))
SENT = Body((Line("hwait", aim="i - R"), Line("fill"), Line("store"), Line("record")), after=(("sync", "a"),))
DIRECT = Body((Line("direct"),), after=(("sync", "a"),))
PACKED = Body(
    (
        Line("swait", event="y", index="k % D", aim="i - D"),
        Line("pack"),
        Line("record", index="k % D"),
        Line("swait", stream="b", index="k % D", aim="k"),
        Line("down", stream="b"),
        Line("record", stream="b", event="y", index="k % D"),
        Line("sync", stream="b"),
        Line("take"),
    )
)
UNPACKED = Body(
    (
        Line("hwait", aim="i - R"),
        Line("fill"),
        Line("swait", event="y", index="k % D", aim="i - D"),
        Line("up"),
        Line("record"),
        Line("swait", stream="b", aim="k"),
        Line("unpack", stream="b"),
        Line("record", stream="b", event="y", index="k % D"),
    ),
    after=(("sync", "b"),),
)
PASSED = Body((Line("fetch"), Line("record"), Line("swait", stream="b", aim="k"), Line("up", stream="b"), Line("sync", stream="b")))
POLLED = Body(
    (
        Line("query"),
        Line("sync", guard="not free(i)"),
        Line("fill"),
        Line("store"),
        Line("record"),
    ),
    after=(("sync", "a"),),
)
TWICE = Body(
    (
        Line("fetch"),
        Line("record"),
        Line("hwait", aim="k"),
        Line("take"),
        Line("down", stream="b"),
        Line("record", stream="b"),
        Line("hwait", aim="k"),
        Line("look"),
    )
)
LENT = Body((Line("regain"), Line("fill"), Line("store"), Line("sync"), Line("lend")))
BATCHED = Body((Line("batch"), Line("sync"), Line("take"), Line("look")))
RIGHT: tuple[tuple[Body, Direction | None], ...] = (
    (STAGED, READ),
    (RING, READ),
    (DIRECT, READ),
    (PACKED, READ),
    (STORED, WRITE),
    (SENT, WRITE),
    (UNPACKED, WRITE),
    (POLLED, WRITE),
    (BATCHED, READ),
    (PASSED, None),
    (LENT, None),
    (TWICE, None),
)
"""Loops that are right, with the direction in which they deliver a result."""

EDGES = (("record", "c"), ("wait", "a")), (("record", "a"), ("wait", "c"))
"""What orders a call of stream a between what its caller does on stream c before and after."""


def body(seed: int) -> Body:
    """The body of a seed: a right one with up to three changes, or one of chance."""
    random = Random(seed)
    found = _chance(random) if random.random() < 0.15 else _changed(random, random.choice((0, 1, 1, 1, 2, 2, 3)))
    return replace(_asking_once(found), fresh=random.random() < 0.25)


def delivering(seed: int) -> Body:
    """The body of a seed that promises a result."""
    random = Random(seed)
    start, direction = random.choice([right for right in RIGHT if right[1] is not None])
    found = _mutated(random, replace(start, direction=direction, distinct=direction is WRITE), random.choice((0, 1, 1, 2)))
    return replace(_asking_once(_with_edges(random, found)), fresh=random.random() < 0.25)


def _asking_once(found: Body) -> Body:
    """The body with one query at most: it has flags for one."""
    queries = [line for line in found.lines if line.kind == "query"]
    return replace(found, lines=tuple(line for line in found.lines if line.kind != "query" or line is queries[0]))


def _changed(random: Random, changes: int) -> Body:
    start, direction = random.choice(RIGHT)
    promised = direction if random.random() < 0.6 else None
    distinct = random.random() < (0.8 if direction is WRITE else 0.2)
    return _mutated(random, _with_edges(random, replace(start, direction=promised, distinct=distinct)), changes)


def _with_edges(random: Random, found: Body) -> Body:
    """The body, sometimes with a caller on a stream, of its own or of the loop's, and with edges to it or without."""
    caller = random.choice(("c", "a")) if random.random() < 0.25 else None
    edges = EDGES if caller == "c" and random.random() < 0.8 else ((), ())
    return replace(found, caller=caller, before=found.before + edges[0], after=found.after + edges[1])


def _chance(random: Random) -> Body:
    lines = tuple(_line(random) for _ in range(random.randint(3, 7)))
    after = tuple(("sync", stream) for stream in STREAMS) if random.random() < 0.5 else ()
    return Body(lines, longer=random.random() < 0.4, after=after, distinct=random.random() < 0.5)


def _line(random: Random) -> Line:
    kind = random.choice(MOVES if random.random() < 0.45 else ORDERS)
    line = Line(kind)
    for field in ("item", "guard", "stream", "slot", "other", "event", "index", "aim"):
        if random.random() < 0.35:
            line = _with(random, line, field)
    return line


CHOICES: dict[str, tuple[str, ...]] = {
    "item": tuple(ITEMS),
    "guard": tuple(GUARDS),
    "stream": STREAMS,
    "slot": tuple(INDICES),
    "other": tuple(INDICES),
    "event": EVENTS,
    "index": tuple(INDICES),
    "aim": tuple(AIMS),
}


def _with(random: Random, line: Line, field: str) -> Line:
    return replace(line, **{field: random.choice(CHOICES[field])})


def _mutated(random: Random, found: Body, changes: int) -> Body:
    for _ in range(changes):
        found = random.choice(CHANGES)(random, found)
    return found


def _without(random: Random, found: Body) -> Body:
    at = random.randrange(len(found.lines))
    return replace(found, lines=found.lines[:at] + found.lines[at + 1 :]) if len(found.lines) > 1 else found


def _inserted(random: Random, found: Body) -> Body:
    at = random.randint(0, len(found.lines))
    return replace(found, lines=(*found.lines[:at], _line(random), *found.lines[at:]))


def _exchanged(random: Random, found: Body) -> Body:
    lines = list(found.lines)
    at = random.randrange(len(lines))
    lines.insert(random.randint(0, len(lines) - 1), lines.pop(at))
    return replace(found, lines=tuple(lines))


def _edited(random: Random, found: Body) -> Body:
    lines = list(found.lines)
    at = random.randrange(len(lines))
    lines[at] = _with(random, lines[at], random.choice(tuple(CHOICES)))
    return replace(found, lines=tuple(lines))


def _everywhere(random: Random, found: Body) -> Body:
    """One word for another in all lines: one event for two, one stream for two, another slot throughout."""
    field = random.choice(("stream", "slot", "other", "event", "index", "guard"))
    old, new = getattr(random.choice(found.lines), field), random.choice(CHOICES[field])
    lines = tuple(replace(line, **{field: new}) if getattr(line, field) == old else line for line in found.lines)
    return replace(found, lines=lines)


def _framed(random: Random, found: Body) -> Body:
    """Another prologue or epilogue, or other steps."""
    verbs = tuple(
        (random.choice(("sync", "record", "wait", "last", "record last")), random.choice(("a", "b", "c")))
        for _ in range(random.randint(0, 2))
    )
    match random.randrange(3):
        case 0:
            return replace(found, before=verbs)
        case 1:
            return replace(found, after=verbs)
        case _:
            return replace(found, longer=not found.longer)


CHANGES: tuple[Callable[[Random, Body], Body], ...] = (
    _without,
    _inserted,
    _inserted,
    _exchanged,
    _edited,
    _edited,
    _everywhere,
    _framed,
)
