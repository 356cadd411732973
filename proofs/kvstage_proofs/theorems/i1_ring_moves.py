"""The running ring, as seen from one slot: its state, and the moves that the simulator's machine can make in it.

`watched` stands for any slot, so what holds of it holds of all. The moves are plain Python: tests compare them, with
ints, to what the machine does, and the proof runs the same text on symbolic indices. What the watched slot does not
know, it allows: the host's waits for other slots never block here.

Instead of `step % slots == watched` a state carries the next number that falls on the slot, which goes up by `slots`
when it has been reached. So everything is linear, for every number of slots.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kvstage_model.language.operations import Copy, HostCopy, RecordEvent, SyncEvent
from kvstage_model.language.scheme import Direction

from .i1_ring_text import STEP, Act, Ring

HOST, STREAM = "host", "stream"


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """One call under way. Items and steps count from 0 in this call; all numbers are ints or symbolic indices.

    `position` is the host's place in its step, or one after the last place of a step when the call has returned. Copies
    are of items 0, 1, 2, ...: `issued`, `begun` and `ended` count them. `first` and `second` name the item whose rows the
    halves of the slot hold: negative for what an earlier call left.
    """

    slots: int
    items: int
    step: int
    position: int
    turn: int
    """The first step, from `step` on, that falls on the slot."""
    issued: int
    begun: int
    ended: int
    due: int
    """The first item, from `ended` on, that falls on the slot: the next one that the stream brings there or takes from it."""
    mark: int
    """How many copies the slot's event waits for: those issued before its last record; 0 if this call recorded none."""
    first: int
    second: int


@dataclass(frozen=True, slots=True, eq=False)
class RingMove:
    """What happens at once: who moves, when it may, and the state after it. `act` is what the host does, if anything."""

    name: str
    agent: str | None
    """HOST or STREAM; None if the host only passes by what it has no item for, and the machine sees nothing."""
    may: Callable[[State], bool]
    after: Callable[[State], State]
    act: Act | None = None


def implies(premise: bool, conclusion: bool) -> bool:
    """Whether a conclusion holds if a premise does, without asking for the truth of either."""
    return (premise & conclusion) == premise


def initial(slots: int, items: int, watched: int, first: int, second: int) -> State:
    """A call begins, with an idle stream and no record left to wait for. The slot holds what some earlier call left."""
    return State(slots, items, 0, 0, watched, 0, 0, 0, watched, 0, first, second)


def moves(ring: Ring) -> Iterator[RingMove]:
    """Every move. At most one of the host's is possible in a state, and at most one of the stream's."""
    for place, act in enumerate(ring.acts):
        yield _performed(ring, place, act)
        if (act.item, ring.steps) != (STEP, STEP):
            yield _passed_by(ring, place, act)
    yield _returned(ring)
    yield begins(ring)
    yield ends(ring)


def on_slot(act: Act, state: State) -> bool:
    """Whether an act of this step is on the watched slot: its number lies some rounds from `turn`.

    It lies at most 2 from the step, and `turn` less than a round after that one: so no more than 2 rounds count.
    """
    number, found = state.step + act.item.more + act.aside, False
    for rounds in range(-2, 3):
        found = found | (number == state.turn + rounds * state.slots)
    return found


def exists(act: Act, state: State) -> bool:
    """Whether there is the item that an act of this step is about."""
    item = act.item.of(state.step, state.slots)
    return (item >= 0) & (item < state.items)


def at(ring: Ring, place: int, state: State) -> bool:
    """Whether the host stands before an act of a step."""
    return (state.step < ring.steps.of(state.items, state.slots)) & (state.position == place)


def _performed(ring: Ring, place: int, act: Act) -> RingMove:
    def may(state: State) -> bool:
        ready = implies(on_slot(act, state), state.mark <= state.ended) if act.kind is SyncEvent else True
        return at(ring, place, state) & exists(act, state) & ready

    def after(state: State) -> State:
        return _onwards(ring, place, _done(ring, act, state))

    return RingMove(f"{act.kind.__name__} of the host", HOST, may, after, act)


def _done(ring: Ring, act: Act, state: State) -> State:
    """What an act changes, but for the host's place."""
    if act.kind is Copy:
        return replace(state, issued=state.issued + 1)
    if act.kind is RecordEvent and on_slot(act, state):
        return replace(state, mark=state.issued)
    if act.kind is HostCopy and ring.direction is Direction.WRITE and on_slot(act, state):
        item = act.item.of(state.step, state.slots)
        return replace(state, first=item, second=item)
    return state


def _onwards(ring: Ring, place: int, state: State) -> State:
    """The host stands before the next act, of this step or of the next one."""
    if place + 1 < len(ring.acts):
        return replace(state, position=place + 1)
    turn = state.turn + state.slots if state.turn == state.step else state.turn
    return replace(state, step=state.step + 1, position=0, turn=turn)


def _passed_by(ring: Ring, place: int, act: Act) -> RingMove:
    def may(state: State) -> bool:
        item = act.item.of(state.step, state.slots)
        return at(ring, place, state) & ((item < 0) | (item >= state.items))

    return RingMove(f"no {act.kind.__name__} of the host", None, may, lambda state: _onwards(ring, place, state))


def _returned(ring: Ring) -> RingMove:
    def may(state: State) -> bool:
        last = (state.step == ring.steps.of(state.items, state.slots)) & (state.position == 0)
        return last & (state.ended == state.issued) if ring.waits_at_end else last

    agent = HOST if ring.waits_at_end else None
    return RingMove("the return of the call", agent, may, lambda state: replace(state, position=len(ring.acts)))


def begins(ring: Ring) -> RingMove:
    """The stream begins its oldest copy: half of the rows are moved."""

    def after(state: State) -> State:
        begun = replace(state, begun=state.begun + 1)
        if ring.direction is Direction.READ and state.due == state.ended:
            return replace(begun, first=state.ended)
        return begun

    return RingMove("the begin of a copy", STREAM, lambda state: (state.begun == state.ended) & (state.begun < state.issued), after)


def ends(ring: Ring) -> RingMove:
    """The stream ends the copy that it has begun: the other half is moved."""

    def after(state: State) -> State:
        ended = replace(state, ended=state.ended + 1)
        if state.due == state.ended:
            ended = replace(ended, due=state.due + state.slots)
            if ring.direction is Direction.READ:
                return replace(ended, second=state.ended)
        return ended

    return RingMove("the end of a copy", STREAM, lambda state: state.begun > state.ended, after)
