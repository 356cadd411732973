"""`CheckedDevice`: runs code under one schedule and names both lines of an access without a wait.

Read `device` first. `accesses` turns calls into a program of the model, `findings` says what the model's race finder found there.
"""
