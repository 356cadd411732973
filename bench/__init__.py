"""Benchmarks of kvstage, run from a checkout: `python -m bench NAME`."""
