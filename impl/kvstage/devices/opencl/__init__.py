"""A device by OpenCL: in-order queues, user events and kernels, on PoCL or any other driver.

Read `device` first.
"""
