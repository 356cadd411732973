"""What may overlap: the axioms, a program that was issued, and the races that the axioms leave in it.

Read `axioms` first: one function, `edges`, says which moment comes before which, for the prover and for concrete programs alike.
`program` unrolls schemes into what is issued, `races` finds two accesses without an order, `missing_waits` names what would
order them.
"""
