"""T2, the single-row guarantee: seen from any staging row, a scheme is (fill; use) over and over, as the row loop is.

The row loop's guarantee is that its one row is not refilled before it was used, and not used before it was filled. Any
staging row of any scheme is seen to keep it: each fill ends before its use begins, and the use ends before the next fill
of that row begins. So a caller that may rely on the row loop may rely on a scheme that coalesces or pipelines.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product

import z3

from kvstage_model.language.buffers import Access
from kvstage_model.language.operations import reads, writes
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.search.faults import hazard
from kvstage_model.search.search import search
from kvstage_model.symbolic.aims import distances
from kvstage_model.symbolic.scheme_model import Instance
from kvstage_model.symbolic.window import Window

from ..obligation import Theorem
from ..solvers.query import Query
from .t3_result import REACH, ResultModel

CLAIM = (
    "For every row of every staging buffer: each fill has ended before the row is used, the use has ended before the next "
    "fill of that row begins, and what is used is what was filled: for every length, history, block size and table, any "
    "number of calls."
)


def queries(function: SchemeFunction) -> Iterator[Query]:
    """That each fill is used before the next fill, and that each use finds its own fill."""
    result = ResultModel(function)
    given = {result.source, result.target}
    yield from result.stays(but=given)
    fills = [(number, access) for number, access in _fills(result) if access.buffer.name not in given]
    for (first, _), (second, _), later in product(fills, fills, (False, True)):
        yield from _Refill(result, first, second, later).queries()


def _fills(result: ResultModel) -> Iterator[tuple[int, Access]]:
    """The positions in a step of the loop at which something is written, and what is."""
    world = result.world
    for instance in result.model.instances("fill", result.call, result.loop, world.integer("i")):
        for access in writes(instance.operation):
            yield instance.site.position, access


class _Refill:
    """A fill, and a later fill of the same row: between them lies the use."""

    def __init__(self, result: ResultModel, first: int, second: int, later: bool) -> None:
        self.result, self.world = result, result.world
        self.first, self.second, self.later = first, second, later

    def queries(self) -> Iterator[Query]:
        """One query, if both write one buffer."""
        window = Window(self.result.model)
        fill, again = self._two(window)
        if writes(fill.operation)[0].buffer.name == writes(again.operation)[0].buffer.name:
            yield self._query(0)

    def _two(self, window: Window) -> tuple[Instance, Instance]:
        call = self.world.integer("later call") if self.later else self.result.call
        fill = window.add("i", self.result.call, self.result.loop, self.world.integer("i"))[self.first]
        return fill, window.add("j", call, self.result.loop, self.world.integer("j"))[self.second]

    def _query(self, reach: int) -> Query:
        window = Window(self.result.model)
        fill, again = self._two(window)
        chain = self.result.chain(window)
        (filled,), (refilled,) = writes(fill.operation), writes(again.operation)
        cell, _, reached = chain.some_cell(filled, "x")
        used = [z3.BoolVal(False, self.world.context)]
        for user in self._users(window, fill):
            for access in reads(user.operation):
                if access.buffer.name == cell.buffer.name:
                    between = z3.And(fill.end <= user.begin, user.end <= again.begin)
                    used.append(z3.And(user.exists, chain.touches(access, cell), between))
        self.result.complete(window, self.world.index(again.call), [fill, again], reach)
        order = fill.call < again.call if self.later else window.before(fill, again)
        met = z3.And(fill.exists, again.exists, order, reached, chain.touches(refilled, cell))
        name = f"the row that {self.result.word(fill)}[i] fills is used before {self.result.word(again)}[j]"
        strengthened = partial(self._query, reach + 1) if reach < REACH else None
        words = f"{name}{' of a later call' if self.later else ''} fills it again"
        return Query(words, window.facts(), met, z3.Not(z3.Or(used)), self.world.hint, strengthened=strengthened)

    def _users(self, window: Window, fill: Instance) -> list[Instance]:
        """Where a fill's use is looked for: its own step, and the steps whose waits are meant for it."""
        step, call = self.world.index(fill.step), self.world.index(fill.call)
        steps = [step, *(step - distance for distance in distances(self.result.model, fill))]
        return window.at(call, self.result.loop, steps)


T2 = Theorem[SchemeFunction]("T2", "single-row guarantee", CLAIM, queries, lambda function, most: search(function, hazard, most))
