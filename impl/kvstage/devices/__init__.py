"""Devices: what carries out copies, kernels and waits.

Read `device` first: the protocol that all of them fulfil. `host` copies at once, `threads` has a worker for each
stream, `simulated` moves as a schedule says, `accelerator` drives what torch drives, `opencl` a CPU by OpenCL.
"""
