"""The z3 model of schemes, and the only folder that imports z3.

Read `index` first: an `int` of a scheme becomes a term. `world` holds the facts and forks the paths, `scheme_model` has the
operations of any call and step, `window` the axioms between a few of them. `purity` refuses what has no meaning here.
"""
