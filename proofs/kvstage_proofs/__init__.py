"""The theorems about staging schemes, the catalogue of what must hold, and `kvstage prove`.

Read `obligation` first (what is claimed, and the verdicts), then `theorems.t1_no_hazard` (T1, the shortest theorem), `judging` and
`catalogue`. Nothing here imports torch: the proofs run even if it is not installed.
"""
