"""Random staging loops as Python text, that also use what Python has: closures, defaults, classes, iterators, caches, branches.

A loop is told by a seed. Some are right, some race, some keep a state until they do; `text(seed)` is its file.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.support.texts import run_text

HEAD = """\
import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import *
from kvstage_model.language.operations import Copy, Event, HostCopy, RecordEvent, SyncEvent, SyncStream
from kvstage_model.language.parameters import Distinct
from kvstage_model.language.partitions import Runs
from kvstage_model.language.scheme import Direction, Result, Scheme
"""
ABOVE = {  # what a module holds: a name, and how `late` asks it
    "list": ("SEEN = []", "SEEN.append(i) or len(SEEN) > {k}"),
    "list read": ("SEEN = [0, 0, 0, 0, 0, 0]", "SEEN[i % 6] > {k}"),
    "tuple": ("SEEN = (0, 0, 1)", "i > {k} and SEEN[2] == {t}"),
    "mapping": ("TABLE = MappingProxyType({{'late': {k}}})", "i > TABLE['late']"),
    "dict": ("TABLE = {{'late': 0}}", "TABLE.update(late=TABLE['late'] + 1) or TABLE['late'] > {k}"),
    "iterator": ("TURNS = itertools.count()", "next(TURNS) > {k}"),
    "iterator in": ("TURNS = iter(range(99))", "{k} not in TURNS"),
    "cache": ("@functools.cache\ndef seen():\n    return []", "seen().append(1) or len(seen()) > {k}"),
    "lru": ("@functools.lru_cache\ndef odd(i):\n    return i > {k}", "odd(i)"),
    "class": (
        "class Kept:\n    steps = 0\n    def __call__(self, i):\n        Kept.steps += 1\n        return Kept.steps > {k}",
        "Kept()(i)",
    ),
    "object": (
        "class Kept:\n    def __init__(self):\n        self.steps = 0\n    def __call__(self, i):\n        self.steps += 1\n"
        "        return self.steps > {k}\nKEPT = Kept()",
        "KEPT(i)",
    ),
    "frozen": (
        "@dataclass(frozen=True)\nclass Plan:\n    last: int\n    def late(self, i):\n        return i > self.last\n"
        "PLAN = Plan({k})",
        "PLAN.late(i)",
    ),
    "frozen list": (
        "@dataclass(frozen=True)\nclass Plan:\n    done: list = field(default_factory=list)\n    def late(self, i):\n"
        "        self.done.append(i)\n        return len(self.done) > {k}\nPLAN = Plan()",
        "PLAN.late(i)",
    ),
    "property": (
        "SEEN = []\n@dataclass(frozen=True)\nclass Plan:\n    @property\n    def late(self):\n        return len(SEEN) > {k}\n"
        "PLAN = Plan()",
        "PLAN.late",
    ),
    "default": ("def late(i, done=[]):\n    done.append(i)\n    return len(done) > {k}", "late(i)"),
    "pure default": ("def late(i, last={k}):\n    return i > last", "late(i)"),
    "attribute": ("def late(i):\n    late.steps += 1\n    return late.steps > {k}\nlate.steps = 0", "late(i)"),
    "global": ("steps = 0\ndef late(i):\n    global steps\n    steps += 1\n    return steps > {k}", "late(i)"),
    "generator": ("def turns():\n    yield from range(99)\nTURNS = turns()", "next(TURNS) > {k}"),
    "partial": ("def beyond(last, i):\n    return i > last\nlate = functools.partial(beyond, {k})", "late(i)"),
    "decorated": (
        "def kept(function):\n    calls = [0]\n    @functools.wraps(function)\n    def called(i):\n        calls[0] += 1\n"
        "        return calls[0] > {k}\n    return called\n@kept\ndef late(i):\n    return False",
        "late(i)",
    ),
    "caught": (
        "def late(i):\n    try:\n        return i.bit_length() > {k}\n    except Exception:\n        return False",
        "late(i)",
    ),
    "helper": ("def late(i):\n    return i > {k} if i % 2 == {t} else False", "late(i)"),
    "nothing": ("", "False"),
    "compared": ("", "i > {k}"),
    "odd": ("", "i % 2 == {t} and i > {k}"),
    "identity": ("LAST = {k}", "i is LAST"),
    "truth": ("", "(i > {k}) is True"),
    "kind": ("", "isinstance(i, int) and i > {k}"),
    "inverted": ("", "~(i < {k}) == -1"),
    "last": ("", "i == runs.number - 1"),
    "first": ("", "i == 0"),
}
AROUND = {  # what a call of the scheme makes anew
    "nothing": ("", "{late}"),
    "list": ("done = []", "{late} or done.append(i) or len(done) > {k}"),
    "cell": (
        "done = 0\n    def count():\n        nonlocal done\n        done += 1\n        return done > {k}",
        "{late} or count()",
    ),
    "iterator": ("turns = iter(range(9))", "{late} or next(turns, 9) > {k}"),
    "closure": ("last = {k}\n    def beyond(j):\n        return j > last", "{late} or beyond(i)"),
    "anonymous": ("never = lambda j, last=99: j > last", "{late} or never(i)"),
    "comprehension": ("", "{late} or any(i == size + 50 for size in (1, 2))"),
    "default": ("def kept(j, done=[]):\n        done.append(j)\n        return len(done) > {k}", "{late} or kept(i)"),
    "tuple": ("ends = (99, 98)", "{late} or i in ends"),
}
STEPS = {
    "read": """\
        yield Copy("s", pool.at(run.slot, run.start, run.count), stage.at({slot}, 0, run.count))
        if not ({late}):
            yield SyncStream({stream})
        yield HostCopy(stage.at({slot}, 0, run.count), host.at(0, run.position, run.count))
""",
    "read by event": """\
        yield Copy("s", pool.at(run.slot, run.start, run.count), stage.at({slot}, 0, run.count))
        yield RecordEvent({event}, "s")
        if not ({late}):
            yield SyncEvent({event}, aim=i)
        yield HostCopy(stage.at({slot}, 0, run.count), host.at(0, run.position, run.count))
""",
    "read and changed": """\
        wait = SyncStream({stream})
        yield Copy("s", pool.at(run.slot, run.start, run.count), stage.at({slot}, 0, run.count))
        yield wait
        yield HostCopy(stage.at({slot}, 0, run.count), host.at(0, run.position, run.count))
        if not ({late}):
            wait.stream = "s"
""",
    "write": """\
        yield HostCopy(host.at(0, run.position, run.count), stage.at({slot}, 0, run.count))
        yield Copy("s", stage.at({slot}, 0, run.count), pool.at(run.slot, run.start, run.count))
        if not ({late}):
            yield SyncStream({stream})
""",
    "write by event": """\
        yield SyncEvent({event}, aim=i - {depth})
        yield HostCopy(host.at(0, run.position, run.count), stage.at({slot}, 0, run.count))
        yield Copy("s", stage.at({slot}, 0, run.count), pool.at(run.slot, run.start, run.count))
        if not ({late}):
            yield RecordEvent({event}, "s")
""",
}


@dataclass(frozen=True)
class Loop:
    """A loop: its text, and what it was made of."""

    text: str
    step: str
    above: str
    around: str

    @property
    def reads(self) -> bool:
        """Which way it moves rows."""
        return self.step.startswith("read")


def loop(seed: int) -> Loop:
    """The loop of a seed."""
    random = Random(seed)
    step = random.choice(tuple(STEPS))
    above, around = random.choice(tuple(ABOVE)), random.choice((*AROUND, *["nothing"] * len(AROUND)))
    numbers = {"k": random.choice((0, 1, 2, 3, 50)), "t": random.choice((0, 1))}
    depth = random.choice((1, 2))
    held, late = (each.format(**numbers) for each in ABOVE[above])
    made, asked = (each.format(late=late, **numbers) for each in AROUND[around])
    index = random.choice((f"i % {depth}", f"i % {depth}", "0", "i % 2"))
    issued = STEPS[step].format(
        late=asked,
        slot=f"i % {depth}",
        depth=depth,
        stream=random.choice(('"s"', '"s"', '"s"', '"t"')),
        event=f'Event("e", {index}{random.choice(("", "", "", ", 0", ", 1"))})',
    )
    reads = step.startswith("read")
    last = random.choice(("(SyncStream('s'),)", "(SyncStream('s'),)", "()"))
    lines = [
        HEAD,
        held,
        "",
        f"def scheme(runs: {'Runs' if reads else 'Distinct[Runs]'}) -> Scheme:",
        "    pool = Buffer('pool', Memory.DEVICE, runs.num_blocks, runs.block_size)",
        f"    stage = Buffer('stage', Memory.PINNED, {depth}, runs.longest)",
        "    host = Buffer('host', Memory.PAGEABLE, 1, runs.length)",
        f"    {made}",
        "",
        "    def step(i: int) -> Iterator[Operation]:",
        "        run = runs.part(i)",
        issued,
        f"    result = Result(Direction.{'READ' if reads else 'WRITE'}, pool, host, runs.length, runs.address, runs.holder)",
        f"    return Scheme('hunted', (pool, stage, host), runs.number, step, {last}, result)",
        "",
    ]
    return Loop("\n".join(lines), step, above, around)


def function(text: str, name: str) -> Callable[..., Any]:
    """The scheme function of a text, which stands where Python looks for sources."""
    names: dict[str, Any] = {"__name__": name}
    run_text(text, f"<{name}>", names)
    scheme: Callable[..., Any] = names["scheme"]
    return scheme
