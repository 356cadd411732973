"""From obligations to verdicts: PROVED, REFUTED, VACUOUS, UNKNOWN, UNSUPPORTED.

Read `judge` first. `why_unknown` says what to add, `crosscheck` asks the second solver, `t8_axioms_used` takes axioms away.
"""
