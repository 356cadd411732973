"""What callers hand over, checked before anything is written: block tables, rows at the host, pairs of pools, dtypes.

Read `block_table` first.
"""
