"""The real machine runs a ring, and after each of its moves every slot's state is written down as the proof sees it."""

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import partial
from random import Random

from kvstage_model.language.buffers import Rows
from kvstage_model.language.operations import Copy, HostCopy, Operation, RecordEvent, SyncEvent, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.language.partitions import by_block, by_row
from kvstage_model.language.scheme import Direction, Scheme
from kvstage_model.schedules.schedule import Move as MachineMove
from kvstage_model.simulation.cells import Cells, Token
from kvstage_model.simulation.machine import Machine
from kvstage_proofs.theorems.i1_ring_moves import HOST, STREAM, State, moves
from kvstage_proofs.theorems.i1_ring_text import Ring


@dataclass(frozen=True)
class Happened:
    """One move, and the states of all slots before and after it. `agent` is HOST, STREAM, or None for no move at all."""

    agent: str | None
    before: tuple[State, ...]
    after: tuple[State, ...]


@dataclass(frozen=True)
class Offered:
    """Who could move in a state, as the machine says."""

    state: tuple[State, ...]
    host: bool
    stream: bool


class Watch:
    """Runs calls of a ring on one machine, of which it is the schedule too: `random` chooses who goes on.

    The states come from what the machine calls and from the memory's cells, never from the moves of the proof.
    """

    def __init__(self, function: SchemeFunction, ring: Ring, random: Random) -> None:
        self.happened: list[Happened] = []
        self.offered: list[Offered] = []
        self._function, self._ring, self._random = function, ring, random
        self._machine, self._memory = Machine(self), Cells(frozenset())
        self._stream_moves = False
        self._call = self._step = self._position = self._issued = self._begun = self._ended = 0
        self._marks: dict[int, int] = {}
        self._state: tuple[State, ...] = ()

    def call(self, rows: PagedRows, slots: int, cut: Callable[[PagedRows], object] = by_row) -> None:
        """One call for these rows. The rows it moves are told from those of earlier calls by a stamp of its own."""
        runs = cut(rows)
        values = zip((parameter.name for parameter in declared(self._function)), (runs, slots), strict=True)
        self._scheme = self._function(**dict(values))
        self._slots = slots
        self._call += 1
        self._step = self._position = self._issued = self._begun = self._ended = 0
        self._marks = dict.fromkeys(range(slots), 0)
        self._items = self._stamped(self._scheme)
        self._state = self._states()
        for step in range(self._scheme.steps):
            issued = {type(operation): operation for operation in self._scheme.step(step)}
            for place, act in enumerate(self._ring.acts):
                if act.kind in issued:
                    self._perform(issued[act.kind])
                self._step, self._position = (step, place + 1) if place + 1 < len(self._ring.acts) else (step + 1, 0)
                self._note(HOST if act.kind in issued else None)
        for operation in self._scheme.epilogue:
            self._perform(operation)
        self._position = len(self._ring.acts)
        self._note(HOST if self._scheme.epilogue else None)

    def choose(self, moves: tuple[MachineMove, ...]) -> MachineMove:
        """The machine asks who goes on; what a stream did before is done now."""
        if self._stream_moves:
            self._note(STREAM)
        streams = [move for move in moves if move.stream is not None]
        self.offered.append(Offered(self._state, len(streams) < len(moves), bool(streams)))
        chosen = self._random.choice(moves)
        self._stream_moves = chosen.stream is not None
        return chosen

    def _perform(self, operation: Operation) -> None:
        match operation:
            case Copy():
                self._machine.issue(operation.stream, partial(self._half, operation), None)
                self._issued += 1
            case RecordEvent():
                self._machine.record(operation.event.index, operation.stream, None)
                self._marks[operation.event.index] = self._issued
            case SyncEvent():
                self._machine.synchronize_event(operation.event.index, None)
            case SyncStream():
                self._machine.synchronize(operation.stream, None)
            case HostCopy():
                self._machine.host(partial(self._both, operation), None)
            case _:
                raise AssertionError(operation)

    def _half(self, copy: Copy, half: int) -> None:
        self._memory.move(copy.source, copy.target, half)
        self._begun += half == 0
        self._ended += half == 1

    def _both(self, copy: HostCopy) -> None:
        for half in (0, 1):
            self._memory.move(copy.source, copy.target, half)

    def _stamped(self, scheme: Scheme) -> dict[Token, int]:
        """Stamps the first row of each item at its source, and says which item each stamp is of."""
        items = {}
        copies = [o for step in range(scheme.steps) for o in scheme.step(step) if isinstance(o, self._filler)]
        for item, operation in enumerate(copies):
            for half in (0, 1):
                self._memory.stamp(operation.source, self._call, half)
            items[self._first_row(operation.source)[0]] = item
        return items

    @property
    def _filler(self) -> type[Copy] | type[HostCopy]:
        return Copy if self._ring.direction is Direction.READ else HostCopy

    def _first_row(self, rows: Rows) -> tuple[Token | None, Token | None]:
        return self._memory.content((rows.buffer.name, rows.slot, rows.start))

    def _note(self, agent: str | None) -> None:
        states = self._states()
        self.happened.append(Happened(agent, self._state, states))
        self._state = states

    def _states(self) -> tuple[State, ...]:
        return tuple(map(self._seen_from, range(self._slots)))

    def _seen_from(self, slot: int) -> State:
        first, second = self._memory.content(("stage", slot, 0))
        return State(
            slots=self._slots,
            items=len(self._items),
            step=self._step,
            position=self._position,
            turn=next(step for step in range(self._step, self._step + self._slots) if step % self._slots == slot),
            issued=self._issued,
            begun=self._begun,
            ended=self._ended,
            due=next(item for item in range(self._ended, self._ended + self._slots) if item % self._slots == slot),
            mark=self._marks[slot],
            first=-1 if first is None else self._items.get(first, -1),
            second=-1 if second is None else self._items.get(second, -1),
        )


def watched(function: SchemeFunction, ring: Ring, seed: int, calls: int = 1) -> Watch:
    """A run of up to so many calls, of random sizes, under a random schedule."""
    random = Random(seed)
    watch, slots, size = Watch(function, ring, random), random.randint(1, 4), random.randint(1, 2)
    for _ in range(random.randint(1, calls)):
        start = random.randint(0, 2)
        stop = start + random.randint(0, 7)
        table = random.sample(range(10), 10)
        watch.call(PagedRows(table.__getitem__, 10, size, start, stop), slots, random.choice((by_row, by_block)))
    return watch


def allowed(ring: Ring, agent: str | None, before: State, after: State) -> bool:
    """Whether some move of the proof leads from one state to the other."""
    able = (move for move in moves(ring) if move.agent == agent and move.may(before))
    return any(astuple(move.after(before)) == astuple(after) for move in able)


def may_move(ring: Ring, agent: str, state: State) -> bool:
    """Whether somebody may move, as far as one slot knows."""
    return any(move.may(state) for move in moves(ring) if move.agent == agent)


def disagreement(ring: Ring, watch: Watch) -> str | None:
    """The first thing that the machine did, or could do, and the moves of the proof do not allow, or the other way."""
    for happened in watch.happened:
        for before, after in zip(happened.before, happened.after, strict=True):
            if not allowed(ring, happened.agent, before, after):
                return f"{happened.agent} moved from {before} to {after}"
    for offered in watch.offered:
        for agent, could in ((HOST, offered.host), (STREAM, offered.stream)):
            if could != all(may_move(ring, agent, state) for state in offered.state):
                return f"{agent} could{'' if could else ' not'} move in {offered.state}"
    return None


def altered(state: State, random: Random) -> State:
    """The state with one number changed."""
    name = random.choice(list(State.__slots__))
    return replace(state, **{name: getattr(state, name) + random.choice((-2, -1, 1, 2))})
