"""Tests in this folder are run by `test_booted.py`, in a process of their own: a process that has booted stays so."""
