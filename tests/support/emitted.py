"""Random transfers for emitted schemes: what Python's own scheme issues for each, and a program that runs the C++ one."""

import random
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvstage_model.language.buffers import Access, Rows, parts
from kvstage_model.language.edits import Named
from kvstage_model.language.operations import Operation, event_of, moves, stream_of
from kvstage_model.language.paged_rows import IntoLarger, IntoSmaller, PagedRows
from kvstage_model.language.parameters import declared
from kvstage_model.language.partitions import by_block
from kvstage_model.language.scheme import CALLER, Scheme
from kvstage_model.schemes.registry import ENTRIES
from tests.support.paths import ROOT

HEADERS = ROOT / "proofs" / "kvstage_emit" / "include" / "kvstage" / "staging"
SOURCE = ROOT / "tests" / "emit" / "run_schemes.cpp"
STRICT = ("-Wall", "-Wextra", "-Werror")
ORDERS = 3
"""Late, at once, and as a seed says."""
PLACES = {"out": "host", "rows": "host", "larger pool": "host"}
"""What the program calls the memory of a buffer, if not by the buffer's name."""


@dataclass(frozen=True)
class Case:
    """A call of one direction of a scheme, in a pool of random size."""

    scheme: str
    direction: str
    table: tuple[int, ...]
    larger_table: tuple[int, ...]
    num_blocks: int
    size: int
    factor: int
    start: int
    stop: int
    slots: int
    chunk: int
    most: int

    def line(self, order: int, seed: int, deaf: str = "-") -> str:
        """What the program reads."""
        numbers = (self.num_blocks, self.size, self.factor, self.start, self.stop, self.slots, self.chunk, self.most, order, seed)
        tables = (len(self.table), *self.table, len(self.larger_table), *self.larger_table)
        return " ".join(map(str, (f"{self.scheme}_{self.direction}", *numbers, deaf, *tables)))

    def concrete(self) -> Scheme:
        """The scheme as Python runs it."""
        entry = next(each for each in ENTRIES if each.name == self.scheme)
        function = getattr(entry.proved if entry.bind is None else entry.offered, self.direction)
        small = PagedRows(self.table.__getitem__, self.num_blocks, self.size, self.start, self.stop)
        kind = IntoLarger if self.direction == "read" else IntoSmaller
        pair = kind(small, self.larger_table.__getitem__, len(self.larger_table), self.factor)
        options = {"rows": pair if entry.bind is None and entry.into_pools else small, "runs": None, "slots": self.slots}
        options |= {"chunk": self.chunk, "most": self.most}
        if self.scheme == "staged":  # what a header cuts by blocks
            options["runs"] = by_block(small)
        scheme: Scheme = function(**{parameter.name: options[parameter.name] for parameter in declared(function)})
        return scheme

    def tape(self) -> str:
        """Every operation that Python's scheme issues, as the program writes it."""
        return "".join(f"{self._told(operation)};" for operation in issued(self.concrete()))

    def _told(self, operation: Operation) -> str:
        event, stream = event_of(operation), stream_of(operation)
        words = [type(operation).__name__]
        named = [f"{event.name}{event.index}"] if event else []
        words += [*named, *([stream] if stream else [])] if words[0] == "RecordEvent" else [*([stream] if stream else []), *named]
        for source, target in moves(operation):
            words += [*self._places(source), *self._places(target)]
        return " ".join(words)

    def _places(self, access: Access) -> list[str]:
        return [self._place(rows) for rows in parts(access)]

    def _place(self, rows: Rows) -> str:
        name = rows.buffer.name
        stride = max(self.size, self.chunk, self.most) if name in ("stage", "packed") else rows.buffer.rows
        return f"{PLACES.get(name, name)}+{rows.slot * stride + rows.start}*{rows.count}"


def issued(scheme: Scheme) -> Iterable[Operation]:
    """All that one call issues itself."""
    for phase in scheme.phases:
        if phase.name != CALLER:
            for i in range(phase.steps):
                yield from phase.step(i)


def case(random_: random.Random, scheme: str, direction: str) -> Case:
    """A random call. Neighbouring blocks are frequent, and half of the transfers begin or end inside a block."""
    size, factor, larger = random_.randint(1, 5), random_.randint(1, 3), random_.randint(1, 4)
    num_blocks = larger * factor
    table, larger_table = list(range(num_blocks)), list(range(larger))
    for each in (table, larger_table):
        if random_.random() < 0.7:
            random_.shuffle(each)
    stop = random_.randint(0, num_blocks * size)
    slots, chunk, most = random_.randint(1, 4), random_.randint(1, 7), random_.randint(1, 12)
    pools = tuple(table), tuple(larger_table), num_blocks, size, factor
    return Case(scheme, direction, *pools, random_.randint(0, stop), stop, slots, chunk, most)


def cases(number: int, seed: int) -> list[Case]:
    """So many calls, of each direction of each scheme in turn."""
    random_ = random.Random(seed)
    names = [(entry.name, direction) for entry in ENTRIES for direction in ("read", "write")]
    return [case(random_, *names[k % len(names)]) for k in range(number)]


def compiled(folder: Path, *options: str, compiler: str = "g++", source: Path = SOURCE, headers: Path = HEADERS) -> Path:
    """A program, compiled without a warning."""
    program = folder / f"{source.stem}-{compiler}"
    command = [compiler, *STRICT, *(options or ("-std=c++17", "-O0")), f"-I{headers}", str(source), "-o", str(program)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return program


def answers(program: Path, lines: Sequence[str]) -> list[tuple[bool, str]]:
    """For each line whether its bytes were right, and what was issued."""
    run = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = [(line[0] == "1", line[2:]) for line in run.stdout.splitlines()]
    assert len(found) == len(lines)
    return found


def ignored(named: Named) -> str:
    """How the program is told to ignore the operations of a name."""
    return f"{named.kind.__name__}:{named.event or ''}:{named.stream or ''}"
