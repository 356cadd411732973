"""Small counterexamples: the smallest instance of a scheme, and a schedule of it, that breaks what was claimed.

Read `search` first. `instances` lists small arguments, `faults` looks for one kind of fault in each, `wording` tells about them.
"""
