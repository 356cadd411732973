"""T7, bounds: every operation keeps inside its buffers and does not overlap itself."""

from collections.abc import Iterator

import z3

from kvstage_model.language.bounds import bounds, unaddressed
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import CALLER
from kvstage_model.search.faults import out_of_bounds
from kvstage_model.search.search import search
from kvstage_model.symbolic.scheme_model import SchemeModel
from kvstage_model.symbolic.window import Window

from ..obligation import Theorem
from ..solvers.query import Query

CLAIM = (
    "Every operation's rows lie inside their buffer and its slot, no count is negative, a copy's source and target have as "
    "many rows and none in common, no operation writes a row twice, and the host touches no memory of the device: for every "
    "length, history, block size and table."
)


def queries(function: SchemeFunction) -> Iterator[Query]:
    """One query for each demand on each operation. Times play no part."""
    model = SchemeModel(function)
    call, step, row, other = (model.world.integer(name) for name in ("call", "i", "row", "other row"))
    for number, phase in enumerate(model.phases):
        for instance in Window(model).add("i", call, number, step):
            demands = [*bounds(instance.operation, row, other)]
            if phase.name != CALLER:  # it stands for all that comes before and after: for a kernel, if the memory is the device's
                demands += unaddressed(instance.operation)
            for clause in demands:
                name = f"{type(instance.operation).__name__} of {phase.name}[i]: {clause.name}"
                premise = z3.And(instance.exists, model.world.formula(clause.premise))
                yield Query(
                    name,
                    model.world.facts,
                    premise,
                    z3.Not(model.world.formula(clause.conclusion)),
                    model.world.hint,
                    must_hold=True,
                )


T7 = Theorem[SchemeFunction]("T7", "bounds", CLAIM, queries, lambda function, most: search(function, out_of_bounds, most))
