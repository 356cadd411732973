"""H1, the host tier: rows that the decision leaves where they are, are right. By induction over all that can happen to a block.

Watched are one block, one mirror of it, and one row, with what the two hold there. The invariant: if the row is below
`still_right`, the mirror's row is the block's; and no more rows are right than were written. Each event keeps it: rows
written anywhere in the block (appended, in place, after a truncation), a truncation, a new owner, and a read, which moves the
rows from `still_right` on. The functions are those that the library runs. So it holds after any number of events in any
order, of any number of sequences that share the block: an event of one is an event of the block to all others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import z3

from kvstage_model.ordering.trace import Trace
from kvstage_model.search.search import Counterexample
from kvstage_model.symbolic.world import World
from kvstage_model.symbolic.z3_terms import Term
from kvstage_model.tier.generations import Block, Mirror, cut, mirrored, rewritten, still_right

from ..obligation import Theorem
from ..solvers.query import Query

CLAIM = (
    "After any appends, rewrites, truncations and changes of owner, in any order and of any number of sequences, every row that a "
    "read leaves where it is, is the block's own: for every block size, length and number of steps."
)
EVENTS, BLOCKS, ROWS = 5, 2, 3
"""The search for a counterexample: sequences of so many events over so many blocks of so many rows."""


@dataclass(frozen=True)
class Rules:
    """The functions of the tier."""

    rewritten: Callable[[Block, int, int], Block] = rewritten
    cut: Callable[[Block, int], Block] = cut
    still_right: Callable[[Mirror, int, Block], int] = still_right
    mirrored: Callable[[Mirror, int, Block, int], Mirror] = mirrored


@dataclass(frozen=True, eq=False)
class Watched:
    """One block and one mirror, before an event: with symbols for all that is known of them, and what the watched row holds."""

    world: World
    block: Block
    mirror: Mirror
    number: int
    row: int
    in_block: int
    in_mirror: int

    @classmethod
    def in_new_world(cls) -> "Watched":
        """A block and a mirror of which nothing is assumed but what the functions promise of them: numbers of rows are no less
        than 0, and no mirror is of a generation to come.
        """
        world = World()
        generation, kept, written = (world.integer(name) for name in ("generation", "kept", "written"))
        of, seen, right = (world.integer(name) for name in ("mirror.block", "mirror.generation", "mirror.right"))
        number, row = world.integer("number"), world.integer("row")
        world.assume(kept >= 0, kept <= written, right >= 0, row >= 0)
        world.assume_implied(of == number, seen <= generation)
        held = world.integer("in block"), world.integer("in mirror")
        return cls(world, Block(generation, kept, written), Mirror(of, seen, right), number, row, *held)

    def formula(self, condition: Any) -> Term:
        """A condition as a formula."""
        return self.world.formula(condition)


def queries(rules: Rules) -> Iterator[Query]:
    """That each event keeps the invariant, on each path through the functions; and that a new mirror has it."""
    for name, event in (("rows are written", _written), ("a block is cut", _cut), ("rows are read", _read)):
        watched = Watched.in_new_world()
        yield from _steps(rules, watched, name, event)
    yield from _fresh(rules)


Event = Callable[[Rules, Watched], tuple[Any, Any, Block, Mirror, Any, Any]]
"""What an event may assume, whether it may change the watched row in the block and must bring it to the mirror, and both after."""


def _written(rules: Rules, at: Watched) -> tuple[Any, Any, Block, Mirror, Any, Any]:
    start, stop = at.world.integer("start"), at.world.integer("stop")
    allowed = (start >= 0) & (start <= stop)
    changes = (start <= at.row) & (at.row < stop)
    return allowed, changes, rules.rewritten(at.block, start, stop), at.mirror, start >= 0, at.row < 0


def _cut(rules: Rules, at: Watched) -> tuple[Any, Any, Block, Mirror, Any, Any]:
    length = at.world.integer("length")
    return length >= 0, at.row >= length, rules.cut(at.block, length), at.mirror, length >= 0, at.row < 0


def _read(rules: Rules, at: Watched) -> tuple[Any, Any, Block, Mirror, Any, Any]:
    wanted = at.world.integer("wanted")
    right = rules.still_right(at.mirror, at.number, at.block)
    moves = (right <= at.row) & (at.row < wanted)
    after = rules.mirrored(at.mirror, at.number, at.block, wanted)
    return (wanted >= 0) & (wanted <= at.block.written), at.row < 0, at.block, after, wanted >= 0, moves


def _steps(rules: Rules, at: Watched, name: str, event: Event) -> Iterator[Query]:
    world = at.world

    def run() -> tuple[Any, ...]:
        before = rules.still_right(at.mirror, at.number, at.block)
        allowed, changes, block, mirror, _, moves = event(rules, at)
        return before, allowed, changes, block, mirror, moves, rules.still_right(mirror, at.number, block)

    for path in world.paths(run):
        condition, (before, allowed, changes, block, mirror, moves, right) = world.follow(path, run)
        same, after = at.formula(at.in_mirror == at.in_block), z3.Int("in block, after", world.context)
        held = z3.If(at.formula(changes), after, world.term(at.in_block))
        in_mirror = z3.If(at.formula(moves), held, world.term(at.in_mirror))
        kept = z3.And(z3.Implies(at.formula(at.row < before), same), at.formula(before <= at.block.written))
        premise = z3.And(condition, at.formula(allowed), kept)
        goals = {
            "a row that stays is right": z3.Implies(at.formula(at.row < right), in_mirror == held),
            "no more rows are right than were written": at.formula(right <= block.written),
            "what was kept was written": at.formula((block.kept >= 0) & (block.kept <= block.written)),
            "no mirror is of a generation to come": z3.Implies(
                at.formula(mirror.block == at.number), at.formula(mirror.generation <= block.generation)
            ),
        }
        for goal, claim in goals.items():
            yield Query(f"when {name}, {goal}", world.facts, premise, z3.Not(claim), world.hint)


def _fresh(rules: Rules) -> Iterator[Query]:
    """A mirror that holds nothing has the invariant with every block."""
    at = Watched.in_new_world()
    empty = Mirror(at.mirror.block, at.mirror.generation, 0)
    world = at.world
    for path in world.paths(lambda: rules.still_right(empty, at.number, at.block)):
        condition, right = world.follow(path, lambda: rules.still_right(empty, at.number, at.block))
        yield Query("a mirror that holds nothing claims nothing", world.facts, condition, at.formula(right > 0), world.hint)


Happened = tuple[str, int, int, int]
"""An event: its kind, the block, and two numbers, as `_words` tells them."""


@dataclass(frozen=True)
class _State:
    """Small blocks and a mirror, with what their rows hold: the number of the event that wrote it."""

    blocks: tuple[tuple[int, int, int], ...]
    rows: tuple[tuple[int, ...], ...]
    mirror: tuple[int, int, int]
    copy: tuple[int, ...]

    def alike(self) -> "_State":
        """The state with what rows hold numbered by where it is found first: what it was called changes nothing."""
        names: dict[int, int] = {}
        rows = tuple(tuple(names.setdefault(held, len(names)) for held in block) for block in self.rows)
        return _State(self.blocks, rows, self.mirror, tuple(names.setdefault(held, len(names)) for held in self.copy))


def search(rules: Rules, most: int | None) -> Counterexample | None:
    """The first sequence of small events after which a read leaves a wrong row where it is; the shortest first."""
    events = [("write", b, s, e) for b in range(BLOCKS) for s in range(ROWS) for e in range(s + 1, ROWS + 1)]
    events += [("cut", b, length, 0) for b in range(BLOCKS) for length in range(ROWS)]
    events += [("read", b, wanted, 0) for b in range(BLOCKS) for wanted in range(1, ROWS + 1)]
    start = _State(((0, 0, 0),) * BLOCKS, ((0,) * ROWS,) * BLOCKS, (-1, 0, 0), (0,) * ROWS)
    seen = {start}
    reached: list[tuple[_State, tuple[Happened, ...]]] = [(start, ())]
    for number in range(1, EVENTS + 1):
        following: list[tuple[_State, tuple[Happened, ...]]] = []
        for state, before in reached[:most]:
            for event in events:
                after = _after(rules, state, event, number)
                if after is None:
                    continue
                happened = (*before, event)
                if wrong := _wrong(after, event):
                    return Counterexample("; ".join(map(_words, happened)), number, Trace((), ()), wrong)
                if after.alike() not in seen:
                    seen.add(after.alike())
                    following.append((after, happened))
        reached = following
    return None


def _words(event: Happened) -> str:
    kind, block, a, b = event
    rest = {"write": f"rows [{a}, {b}) of block {block}", "cut": f"block {block} to {a} rows", "read": f"{a} rows of block {block}"}
    return f"{kind} {rest[kind]}"


def _after(rules: Rules, state: _State, event: Happened, number: int) -> _State | None:
    """The state after an event, None if it can't happen: a sequence has no holes, and no row is read that was not written."""
    kind, b, x, y = event
    block, mirror = Block(*state.blocks[b]), Mirror(*state.mirror)
    if x > block.written:
        return None
    match kind:
        case "write":
            block = rules.rewritten(block, x, y)
            held = tuple(number if x <= at < y else was for at, was in enumerate(state.rows[b]))
            rows = tuple(held if at == b else was for at, was in enumerate(state.rows))
            return replace(state, blocks=_put(state.blocks, b, block), rows=rows)
        case "cut":
            return replace(state, blocks=_put(state.blocks, b, rules.cut(block, x)))
        case _:
            right = rules.still_right(mirror, b, block)
            copy = tuple(state.rows[b][at] if right <= at < x else was for at, was in enumerate(state.copy))
            made = rules.mirrored(mirror, b, block, x)
            return replace(state, mirror=(made.block, made.generation, made.right), copy=copy)


def _put(blocks: tuple[tuple[int, int, int], ...], at: int, block: Block) -> tuple[tuple[int, int, int], ...]:
    return (*blocks[:at], (block.generation, block.kept, block.written), *blocks[at + 1 :])


def _wrong(state: _State, event: Happened) -> str | None:
    kind, b, wanted, _ = event
    wrong = [at for at in range(wanted) if kind == "read" and state.copy[at] != state.rows[b][at]]
    if not wrong:
        return None
    writer = state.rows[b][wrong[0]]
    return f"row {wrong[0]} of block {b} was not moved, and is not the block's: event {writer} has written it since"


H1 = Theorem[Rules]("H1", "the host tier", CLAIM, queries, search)
