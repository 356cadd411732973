"""How a scheme runs: its operations carried out on a device, with staging memory, budgets and what is under way.

Read `runtime` first, then `performer`, which carries out one operation.
"""
