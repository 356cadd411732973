"""Random staging loops over numbers: a few operations on one or two streams, guards, shifted steps, an epilogue."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import (
    Copy,
    Event,
    HostCopy,
    HostWrite,
    Operation,
    RecordEvent,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.language.parameters import Declared, Parameter
from kvstage_model.language.scheme import Direction, Result, Scheme

Number = Callable[[Any, Any], Any]
"""A number or a truth from the step and the number of steps; written once for ints and for symbols."""

GUARDS: dict[str, Number] = {
    "": lambda i, n: True,
    "i >= 1": lambda i, n: i >= 1,
    "i >= 2": lambda i, n: i >= 2,
    "i < n - 1": lambda i, n: i < n - 1,
    "i % 2 == 0": lambda i, n: i % 2 == 0,
    "i == 0 or i == n - 1": lambda i, n: i == 0 or i == n - 1,
}
SLOTS: dict[str, Number] = {
    "i % 3": lambda i, n: i % 3,
    "i + 4": lambda i, n: i % 2 + 4,
    "0": lambda i, n: 0,
    "i % 2": lambda i, n: i % 2,
    "(i + 1) % 2": lambda i, n: (i + 1) % 2,
    "min(i, 1)": lambda i, n: min(i, 1),
}
ROWS: dict[str, Number] = {"i": lambda i, n: i, "n - 1 - i": lambda i, n: n - 1 - i, "i // 2": lambda i, n: i // 2}


@dataclass(frozen=True)
class Line:
    """One line of a body: what, under which guard, on which stream, slot and row of the transfer."""

    kind: str
    guard: str
    stream: str
    slot: str
    row: str
    aim: int | None = None
    """How many steps ago the record lies that a wait is meant for."""

    def __str__(self) -> str:
        guard = f"if {self.guard}: " if self.guard else ""
        aim = "" if self.aim is None else f" aim i - {self.aim}"
        return f"{guard}{self.kind} {self.stream} stage[{self.slot}] row {self.row}{aim}"


@dataclass(frozen=True)
class Body:
    """A loop of `lines`, and the streams that the epilogue waits for."""

    lines: tuple[Line, ...]
    epilogue: tuple[str, ...]
    caller: bool

    def __str__(self) -> str:
        waits = f"; then wait {' '.join(self.epilogue)}" if self.epilogue else ""
        return f"{'; '.join(map(str, self.lines))}{waits}{'; with a caller' if self.caller else ''}"


def body(random: Random) -> Body:
    """A random body. Waits come often, so that many are free of races."""
    streams = ("a",) if random.random() < 0.6 else ("a", "b")
    slots = random.sample(sorted(SLOTS), 1 + (random.random() < 0.4))
    lines = []
    for _ in range(random.randint(2, 5)):
        kind = random.choice(("fetch", "fetch", "take", "take", "scribble", "store", "wait", "wait", "wait"))
        guard = random.choice(sorted(GUARDS)) if random.random() < 0.35 else ""
        lines.append(Line(kind, guard, random.choice(streams), random.choice(slots), random.choice(("i", "i", *ROWS))))
    return Body(tuple(lines), streams if random.random() < 0.5 else (), random.random() < 0.5)


def ring(random: Random) -> Body:
    """A loop of two slots or three with events, and up to two changes to it; the host's part lies a step back, or none."""
    slot, back = random.choice((("i % 2", 2), ("i % 2", 2), ("0", 1), ("i % 3", 3)))
    streams = random.choice((("a", "a"), ("a", "b")))
    wait = random.choice(("wait for event", "wait for event", "hold"))
    lines = [
        Line(wait, "", streams[0], slot, "i", aim=random.choice((back, back, None))),
        Line("scribble" if wait != "hold" else "fetch", "", streams[0], slot, "i"),
        Line("store", "", streams[1] if wait == "hold" else streams[0], slot, "i"),
        Line("record", "", streams[1] if wait == "hold" else streams[0], slot, "i"),
    ]
    if wait == "hold":
        lines.insert(2, Line("record", "", streams[0], "i + 4", "i"))
        lines.insert(3, Line("hold", "", streams[1], "i + 4", "i", aim=0))
    for _ in range(random.choice((0, 1, 1, 2))):
        at = random.randrange(len(lines))
        match random.choice(("slot", "stream", "guard", "insert", "delete", "swap", "aim")):
            case "slot":
                lines[at] = replace(lines[at], slot=random.choice(sorted(SLOTS)))
            case "stream":
                lines[at] = replace(lines[at], stream=random.choice("ab"))
            case "guard":
                lines[at] = replace(lines[at], guard=random.choice(sorted(GUARDS)))
            case "insert":
                kind = random.choice(("record", "wait for event", "hold", "wait", "scribble", "take"))
                aim = random.choice((None, 0, 1, 2)) if kind in ("wait for event", "hold") else None
                lines.insert(at, Line(kind, random.choice(("", *GUARDS)), random.choice("ab"), slot, "i", aim))
            case "delete":
                del lines[at]
            case "swap":
                lines[at], lines[at - 1] = lines[at - 1], lines[at]
            case "aim" if lines[at].aim is not None:
                lines[at] = replace(lines[at], aim=random.choice((None, 0, 1, 3)))
    return Body(tuple(lines), ("a", "b") if random.random() < 0.7 else (), random.random() < 0.2)


def reader(random: Random) -> Body:
    """A read that is right, and up to two changes to it, some of them harmless."""
    slot = random.choice(sorted(SLOTS))
    lines = [Line(kind, "", "a", slot, "i") for kind in ("fetch", "wait", "take")]
    for _ in range(random.choice((0, 1, 1, 2, 2))):
        at = random.randrange(len(lines))
        match random.choice(("slot", "row", "guard", "insert", "insert", "insert", "delete")):
            case "slot":
                lines[at] = replace(lines[at], slot=random.choice(sorted(SLOTS)))
            case "row":
                lines[at] = replace(lines[at], row=random.choice(sorted(ROWS)))
            case "guard":
                lines[at] = replace(lines[at], guard=random.choice(sorted(GUARDS)))
            case "insert":
                kind = random.choice(("fetch", "take", "scribble", "wait", "store"))
                other = Line(kind, random.choice(("", *GUARDS)), "a", random.choice(sorted(SLOTS)), random.choice(("i", *ROWS)))
                lines.insert(random.randint(0, len(lines)), other)
            case _ if len(lines) > 1:
                del lines[at]
    return Body(tuple(lines), ("a",) if random.random() < 0.5 else (), caller=True)


def function(body: Body) -> Declared:
    """The scheme function of a body, over every number of steps."""

    def scheme(n: int) -> Scheme:
        pool, out = Buffer("pool", Memory.DEVICE, 1, n), Buffer("out", Memory.PAGEABLE, 1, n)
        stage = Buffer("stage", Memory.PINNED, 6, 1)

        def step(i: int) -> Iterator[Operation]:
            for line in body.lines:
                if GUARDS[line.guard](i, n):
                    yield _operation(line, i, n, pool, stage, out)

        result = Result(Direction.READ, pool, out, n, lambda p: (0, p), lambda p: p) if body.caller else None
        return Scheme("random", (pool, stage, out), n, step, tuple(SyncStream(stream) for stream in body.epilogue), result)

    return Declared(scheme, (Parameter("n", int),))


def _operation(line: Line, i: int, n: int, pool: Buffer, stage: Buffer, out: Buffer) -> Operation:
    row = ROWS[line.row](i, n)
    aim = None if line.aim is None else i - line.aim
    staged = stage.at(SLOTS[line.slot](i, n), 0, 1)
    match line.kind:
        case "fetch":
            return Copy(line.stream, pool.at(0, row, 1), staged)
        case "store":
            return Copy(line.stream, staged, pool.at(0, row, 1))
        case "take":
            return HostCopy(staged, out.at(0, row, 1))
        case "scribble":
            return HostWrite(staged)
        case "record":
            return RecordEvent(Event("done", staged.slot), line.stream)
        case "wait for event":
            return SyncEvent(Event("done", staged.slot), aim)
        case "hold":
            return WaitEvent(line.stream, Event("done", staged.slot), aim)
        case _:
            return SyncStream(line.stream)
