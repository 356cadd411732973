"""The theorems, a file each: what is claimed, the queries that prove it, and the search that refutes it.

Read `t1_no_hazard` first. T1 to T7 are about schemes, P1 and P2 about partitions, L1 is the one nonlinear lemma, I1 the rings by
induction.
"""
