"""Running a scheme function over C++ expressions: names, conditions and loops of the text are kept.

Read `number` first: what an index is here. `expressions` and `statements` are Python's meaning; `source` finds the text of a
function; `lines` collects what is written. What has no C++ is refused with its line.
"""
