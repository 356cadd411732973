"""What people and programs read of a run: text, JSON, JUnit XML, GitHub annotations, and the long form of `kvstage explain`.

Read `console` first.
"""
