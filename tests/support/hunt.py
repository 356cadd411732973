"""Random staging loops of any runs and ring depths: right ones with a few changes, and others made of nothing but chance.

A body is data, told by a seed: `str(body(seed))` prints it as the loop that it is, `function` is its scheme function.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Any

from kvstage_model.language.buffers import Buffer, Memory, Paged, Rows
from kvstage_model.language.operations import (
    Acquire,
    Copy,
    CopyBatch,
    Event,
    Gather,
    HostCopy,
    HostRead,
    HostWrite,
    Launch,
    Operation,
    QueryEvent,
    RecordEvent,
    Release,
    Scatter,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from kvstage_model.language.parameters import Declared, Parameter
from kvstage_model.language.partitions import Runs
from kvstage_model.language.ranges import Flags
from kvstage_model.language.scheme import Direction, Result, Scheme


@dataclass(frozen=True, eq=False)
class Here:
    """Where a line stands: the step i, the item k, the number of items n, the depths R and D, and what queries answer."""

    i: int
    k: int
    n: int
    r: int
    d: int
    free: Flags


Number = Callable[[Here], Any]
"""A number or a truth; for ints and for symbols alike."""

ITEMS: Mapping[str, Number] = MappingProxyType(
    {
        "i": lambda at: at.i,
        "i - R + 1": lambda at: at.i - at.r + 1,
        "i - 1": lambda at: at.i - 1,
        "i + 1": lambda at: at.i + 1,
    }
)
INDICES: Mapping[str, Number] = MappingProxyType(
    {
        "k % R": lambda at: at.k % at.r,
        "k % D": lambda at: at.k % at.d,
        "i % R": lambda at: at.i % at.r,
        "(k + 1) % R": lambda at: (at.k + 1) % at.r,
        "k % 3": lambda at: at.k % 3,
        "k": lambda at: at.k,
        "min(k, 1)": lambda at: min(at.k, 1),
        "0": lambda at: 0,
    }
)
"""Slots of a buffer, and indices of an event."""
GUARDS: Mapping[str, Number] = MappingProxyType(
    {
        "": lambda at: True,
        "i >= R": lambda at: at.i >= at.r,
        "i >= D": lambda at: at.i >= at.d,
        "i >= 1": lambda at: at.i >= 1,
        "k >= 1": lambda at: at.k >= 1,
        "k < n - 1": lambda at: at.k < at.n - 1,
        "k % R == 0": lambda at: at.k % at.r == 0,
        "i % 2 == 0": lambda at: at.i % 2 == 0,
        "free(i)": lambda at: at.free(at.i) == 1,
        "not free(i)": lambda at: at.free(at.i) == 0,
        "i == 0 or k == n - 1": lambda at: at.i == 0 or at.k == at.n - 1,
    }
)
AIMS: Mapping[str, Number] = MappingProxyType(
    {
        "": lambda at: None,
        "k": lambda at: at.k,
        "i - R": lambda at: at.i - at.r,
        "i - D": lambda at: at.i - at.d,
        "i - 1": lambda at: at.i - 1,
        "k + R - 1": lambda at: at.k + at.r - 1,
    }
)
MOVES = ("fetch", "store", "take", "fill", "pack", "unpack", "down", "up", "direct", "batch", "look", "scribble", "kernel", "lend")
ORDERS = ("sync", "record", "hwait", "swait", "query", "regain")
OFF_STREAM = ("take", "fill", "look", "scribble", "hwait", "query", "lend", "regain")


@dataclass(frozen=True)
class Line:
    """One line of a body. Of `slot`, `other` and `index`, each kind uses those that it has."""

    kind: str
    item: str = "i"
    guard: str = ""
    stream: str = "a"
    slot: str = "k % R"
    other: str = "k % D"
    event: str = "x"
    index: str = "k % R"
    aim: str = ""

    def __str__(self) -> str:
        place = {"stage": f"stage[{self.slot}]", "packed": f"packed[{self.other}]", "event": f"{self.event}[{self.index}]"}
        where = f" on {self.stream}" if self.kind not in OFF_STREAM else ""
        aim = f" aim {self.aim}" if self.aim and self.kind in ("hwait", "swait") else ""
        guard = f" and ({self.guard})" if self.guard else ""
        return f"k = {self.item}; if 0 <= k < n{guard}: {WORDS[self.kind].format(**place)}{where}{aim}"


WORDS = {
    "fetch": "Copy pool(k) -> {stage}",
    "store": "Copy {stage} -> pool(k)",
    "take": "HostCopy {stage} -> out(k)",
    "fill": "HostCopy out(k) -> {stage}",
    "pack": "Gather pool(k) -> {packed}",
    "unpack": "Scatter {packed} -> pool(k)",
    "down": "Copy {packed} -> {stage}",
    "up": "Copy {stage} -> {packed}",
    "direct": "Copy pool(k) -> out(k)",
    "look": "HostRead {stage}",
    "scribble": "HostWrite {stage}",
    "batch": "CopyBatch pool(k) -> {stage}, pool(k) -> {packed}",
    "lend": "Release {stage}",
    "regain": "Acquire {stage}",
    "kernel": "Launch reads {stage}, pool(k), writes {packed}",
    "sync": "SyncStream",
    "record": "RecordEvent {event}",
    "hwait": "SyncEvent {event}",
    "swait": "WaitEvent {event}",
    "query": "QueryEvent {event}, which answers free(i)",
}


@dataclass(frozen=True)
class Body:
    """A loop of `lines`: what stands before and behind it, and what it promises to whom.

    `before` and `after` are pairs of a verb and a stream: "sync", "record" and "wait" of an event of that name, and
    "last" and "record last" of the event x of the last item.
    """

    lines: tuple[Line, ...]
    longer: bool = False
    before: tuple[tuple[str, str], ...] = ()
    after: tuple[tuple[str, str], ...] = ()
    direction: Direction | None = None
    caller: str | None = None
    fresh: bool = False
    distinct: bool = False

    def __str__(self) -> str:
        facts = ["events of its own in each call" if self.fresh else "", "no block twice" if self.distinct else ""]
        if self.direction:
            facts.append(f"{self.direction.value} for {f'a caller on {self.caller}' if self.caller else 'the host'}")
        loop = f"for i in range({'n + R - 1' if self.longer else 'n'}):"
        once = [" ".join(f"{verb} {stream};" for verb, stream in part) for part in (self.before, self.after)]
        lines = [f"    {line}" for line in self.lines]
        told = ", ".join(fact for fact in facts if fact)
        return "\n".join(["", told, f"before: {once[0]}", loop, *lines, f"after: {once[1]}"])

    def smaller(self) -> Iterator["Body"]:
        """The body with one thing less."""
        for at in range(len(self.lines)):
            yield replace(self, lines=self.lines[:at] + self.lines[at + 1 :])
        for at, line in enumerate(self.lines):
            if line.guard:
                yield replace(self, lines=(*self.lines[:at], replace(line, guard=""), *self.lines[at + 1 :]))
        least = (("before", ()), ("after", ()), ("fresh", False), ("longer", False), ("caller", None))
        fields: list[dict[str, Any]] = [{name: value} for name, value in least if getattr(self, name) != value]
        for field in fields:
            yield replace(self, **field)


def reduced(body: Body, still: Callable[[Body], bool], most: int = sys.maxsize) -> Body:
    """The body, smaller and smaller as long as it is `still` what it was. So many bodies are tried at most."""
    for tried, one in enumerate(islice((one for one in body.smaller() if one.lines), most), start=1):
        if still(one):
            return reduced(one, still, most - tried)
    return body


def function(body: Body) -> Declared:
    """The scheme function of a body, over any runs and any two depths: of each call, as no buffer is as large as they say."""

    def scheme(runs: Runs, slots: int, others: int, enough: int, free: Flags) -> Scheme:
        n = runs.number
        pool, out = Buffer("pool", Memory.DEVICE, runs.num_blocks, runs.block_size), Buffer("out", Memory.PINNED, 1, runs.length)
        stage = Buffer("stage", Memory.PINNED, enough, runs.longest)
        packed = Buffer("packed", Memory.DEVICE, enough, runs.longest)

        def step(i: int) -> Iterator[Operation]:
            for line in body.lines:
                k = ITEMS[line.item](Here(i, i, n, slots, others, free))
                at = Here(i, k, n, slots, others, free)
                if 0 <= k < n and GUARDS[line.guard](at):
                    run = runs.part(k)
                    yield _operation(
                        line,
                        at,
                        pool.at(run.slot, run.start, run.count),
                        Paged(pool, runs, run.position, run.count),
                        stage.at(INDICES[line.slot](at), 0, run.count),
                        packed.at(INDICES[line.other](at), 0, run.count),
                        out.at(0, run.position, run.count),
                    )

        def brought(position: int) -> int:
            late = any(line.kind in ("take", "direct") and line.item == "i - R + 1" for line in body.lines)
            return runs.holder(position) + slots - 1 if late else runs.holder(position)

        result = body.direction and Result(body.direction, pool, out, runs.length, runs.address, brought, body.caller)
        last = Event("x", (n - 1) % slots)
        before = tuple(_once(verb, stream, "before", last) for verb, stream in body.before)
        after = tuple(_once(verb, stream, "after", last) for verb, stream in body.after)
        steps = n + slots - 1 if body.longer else n
        return Scheme("hunted", (pool, stage, packed, out), steps, step, after, result, before, body.fresh)

    numbers = tuple(Parameter(name, int, least=1) for name in ("slots", "others", "enough"))
    return Declared(scheme, (Parameter("runs", Runs, distinct=body.distinct), *numbers, Parameter("free", Flags)))


def _once(verb: str, stream: str, name: str, last: Event) -> Operation:
    edge = Event(name)
    made: dict[str, Operation] = {"sync": SyncStream(stream), "record": RecordEvent(edge, stream), "wait": WaitEvent(stream, edge)}
    made |= {"last": SyncEvent(last), "record last": RecordEvent(last, stream)}
    return made[verb]


def _operation(line: Line, at: Here, pooled: Rows, paged: Paged, staged: Rows, packed: Rows, out: Rows) -> Operation:
    stream, event, aim = line.stream, Event(line.event, INDICES[line.index](at)), AIMS[line.aim](at)
    match line.kind:
        case "take":
            return HostCopy(staged, out)
        case "fill":
            return HostCopy(out, staged)
        case "pack":
            return Gather(stream, paged, packed)
        case "unpack":
            return Scatter(stream, packed, paged)
        case "look":
            return HostRead(staged)
        case "scribble":
            return HostWrite(staged)
        case "kernel":
            return Launch(stream, reads=(staged, paged), writes=(packed,))
        case "sync":
            return SyncStream(stream)
        case "record":
            return RecordEvent(event, stream)
        case "hwait":
            return SyncEvent(event, aim)
        case "swait":
            return WaitEvent(stream, event, aim)
        case "query":
            return QueryEvent(event, at.free(at.i))  # one line of a body at most
        case "batch":
            return CopyBatch(stream, ((pooled, staged), (pooled, packed)))
        case "lend":
            return Release(staged)
        case "regain":
            return Acquire(staged)
        case kind:
            ends = {"fetch": (pooled, staged), "store": (staged, pooled), "down": (packed, staged), "up": (staged, packed)}
            source, target = ends.get(kind, (pooled, out))
            return Copy(stream, source, target)
