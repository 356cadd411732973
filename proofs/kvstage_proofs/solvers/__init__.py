"""Queries and the solvers that answer them: z3, and cvc5 as a second opinion.

Read `query` first: what is asked, and that only `unsat` proves.
"""
