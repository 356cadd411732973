"""I1, a ring by induction: the simulator's own moves keep an invariant, in which no slot is used too early.

It shares nothing with the proofs of T1 and T3, neither their axioms nor their windows of steps: it is the second
opinion on them. A step of an induction that fails is no counterexample, so one is looked for from the start, by running
small instances under delays.
"""

from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from itertools import islice

import z3

from kvstage_model.language.operations import Copy, HostCopy, RecordEvent, SyncEvent
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import Direction, Scheme
from kvstage_model.ordering.program import unroll
from kvstage_model.schedules.drivers import delays
from kvstage_model.search.instances import instances
from kvstage_model.search.search import Counterexample
from kvstage_model.simulation.simulator import simulate
from kvstage_model.symbolic.world import World
from kvstage_model.symbolic.z3_terms import Term

from ..obligation import Theorem
from ..solvers.query import Query
from .i1_ring_moves import RingMove, State, at, begins, ends, exists, implies, initial, moves, on_slot
from .i1_ring_text import Ring, ring_of

CLAIM = (
    "By induction over the moves of the host and of the stream: when the host takes a slot, both halves of it hold the item "
    "that it takes and no copy is active there; when it fills one, no copy from there is queued or active, and a copy moves "
    "the item that it was issued for; a call that returns leaves no copy. For every number of slots and items."
)


def invariant(ring: Ring, s: State) -> Iterator[bool]:
    """What holds before and after every move."""
    copying, steps, returned = ring.place(Copy), ring.steps.of(s.items, s.slots), len(ring.acts)
    yield (s.slots >= 1) & (s.items >= 0) & (s.step >= 0) & (s.step <= steps)
    yield (s.position >= 0) & (s.position <= returned) & implies(s.step < steps, s.position < returned)
    yield implies(s.step == steps, (s.position == 0) | (s.position == returned))
    yield (s.step <= s.turn) & (s.turn < s.step + s.slots)
    yield (s.ended >= 0) & (s.ended <= s.begun) & (s.begun <= s.ended + 1) & (s.begun <= s.issued)
    yield (s.ended <= s.due) & (s.due < s.ended + s.slots)
    yield (s.due == s.turn - s.slots) | (s.due == s.turn) | (s.due == s.turn + s.slots)
    yield implies((s.step < s.items) & (s.position <= copying), s.issued == s.step)
    yield implies((s.step < s.items) & (s.position > copying), s.issued == s.step + 1)
    yield implies(s.step >= s.items, s.issued == s.items)
    yield from _marked(ring, s)
    yield from _read(ring, s) if ring.direction is Direction.READ else _write(ring, s)


def _marked(ring: Ring, s: State) -> Iterator[bool]:
    """The slot's event waits for the last item that was issued there; `last` is the step before this one that fell on it."""
    last = s.turn - s.slots
    recorded = (s.step == s.turn) & (s.turn < s.items) & (s.position > ring.place(RecordEvent))
    before = (s.step < s.turn) | (s.turn >= s.items) | (s.position <= ring.place(RecordEvent))
    yield implies(recorded, s.mark == s.turn + 1)
    yield implies(before & (last >= 0) & (last < s.items), s.mark == last + 1)
    yield implies(before & (last < 0), s.mark == 0)
    yield implies(last >= s.items, (s.mark <= 0) | (s.mark <= last - s.slots + 1))


def _read(ring: Ring, s: State) -> Iterator[bool]:
    """An item is taken when the next step is that of the slot's next item; the stream alone changes what the slot holds."""
    last, waited = s.turn - s.slots, s.position > ring.place(SyncEvent)
    an_item = (last >= 0) & (last < s.items)
    yield implies((s.step == s.turn) & an_item, s.ended > last)
    yield implies((s.step + 1 == s.turn) & waited & an_item, s.ended > last)
    yield implies((s.slots == 1) & waited & (s.step < s.items), s.ended > s.step)
    yield implies(s.due >= s.slots, s.second == s.due - s.slots)
    yield implies((s.due >= s.slots) & (s.begun <= s.due), s.first == s.due - s.slots)
    yield implies(s.begun > s.due, s.first == s.due)


def _write(ring: Ring, s: State) -> Iterator[bool]:
    """The slot holds what the host filled it with, and is not filled again before the copy of that has ended."""
    last, under_way = s.turn - s.slots, (s.step == s.turn) & (s.turn < s.items)
    filled, waited = s.position > ring.place(HostCopy), s.position > ring.place(SyncEvent)
    yield implies(s.position == len(ring.acts), s.ended == s.issued)
    yield implies(under_way & waited & (last >= 0), s.ended > last)
    yield implies(under_way & filled, (s.first == s.turn) & (s.second == s.turn))
    unfilled = (s.step < s.turn) | (s.position <= ring.place(HostCopy))
    yield implies(unfilled & (last >= 0) & (last < s.items), (s.first == last) & (s.second == last))


def safe(ring: Ring, s: State) -> Iterator[tuple[str, bool, bool]]:
    """What must hold where: a name, where it is asked, and that it is so."""
    place, taken = ring.place(HostCopy), "a slot that is taken holds its item, and no copy is active there"
    for act in ring.acts[place : place + 1]:
        item, here = act.item.of(s.step, s.slots), at(ring, place, s) & exists(act, s) & on_slot(act, s)
        if ring.direction is Direction.READ:
            yield taken, here, (s.first == item) & (s.second == item) & ((s.begun <= s.ended) | (s.ended != s.due))
        else:
            yield "no copy from a slot that is filled is queued or active", here, s.due >= s.issued
    if ring.direction is Direction.WRITE:
        for move, half in ((begins(ring), s.first), (ends(ring), s.second)):
            yield f"{move.name} moves its item", move.may(s) & (s.due == s.ended), half == s.ended
    left = (s.due >= s.issued) & (s.begun <= s.due) & (s.mark <= s.ended)
    yield "a call that has returned leaves no copy, and no record to wait for", s.position == len(ring.acts), left


def queries(function: SchemeFunction) -> Iterator[Query]:
    """One query for the beginning, one for each move, one for each thing that must hold."""
    ring = ring_of(function)
    yield _begin(ring)
    world = World()
    state = State(*(world.integer(field.name) for field in fields(State)))
    world.at_least(state.slots, 1)
    world.assume(*invariant(ring, state))
    for move in moves(ring):
        yield _kept(world, ring, state, move)
    for name, asked, so in safe(ring, state):
        yield Query(name, world.facts, world.formula(asked), z3.Not(world.formula(so)), world.hint, must_hold=True)


def _begin(ring: Ring) -> Query:
    world = World()
    slots, items, watched, first, second = (world.integer(name) for name in ("slots", "items", "watched", "first", "second"))
    world.at_least(slots, 1)
    world.assume(items >= 0, watched >= 0, watched < slots, first < 0, second < 0)
    held = _all(world, invariant(ring, initial(slots, items, watched, first, second)))
    true = z3.BoolVal(True, world.context)
    return Query("a call begins with the invariant", world.facts, true, z3.Not(held), world.hint, must_hold=True)


def _kept(world: World, ring: Ring, state: State, move: RingMove) -> Query:
    """That the invariant holds after a move from any state that has it, on all paths of the move."""

    def run() -> Term:
        return _all(world, invariant(ring, move.after(state)))

    ways = [world.follow(path, run) for path in world.paths(run)]
    negated_goal = z3.Or([z3.And(taken, z3.Not(held)) for taken, held in ways])
    return Query(
        f"{move.name} keeps the invariant", world.facts, world.formula(move.may(state)), negated_goal, world.hint, must_hold=True
    )


def _all(world: World, conditions: Iterator[bool]) -> Term:
    return z3.And([world.formula(condition) for condition in conditions])


def search(function: SchemeFunction, most: int | None) -> Counterexample | None:
    """The first small instance that delivers a wrong row when one of its copies is held back."""
    moving = ((calls, values) for calls, values in instances(function) if any(map(_asynchronous, calls)))
    for calls, values in islice(moving, most):
        for _, simulation in delays(partial(simulate, calls)):
            if simulation.wrong:
                steps = sum(scheme.steps for scheme in calls)
                return Counterexample(values, steps, simulation.trace, str(simulation.wrong[0]))
    return None


def _asynchronous(scheme: Scheme) -> bool:
    """Whether a call issues work that can be held back: one of no rows issues none."""
    return any(isinstance(each.operation, Copy) for each in unroll((scheme,)))


I1 = Theorem[SchemeFunction]("I1", "a ring by induction", CLAIM, queries, search)
