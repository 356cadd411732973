"""Concrete runs: schemes with numbers for their parameters, carried out under one schedule, row by row.

Read `simulator` first. `machine` has the streams and events, `cells` the memory, and `delivery` looks whether every row arrived.
"""
