"""What `kvstage prove` states without a target: the schemes, how they may be called, and broken variants that must be refuted.

Read `catalogue` first.
"""
