"""`scheme="auto"`: the scheme that a cost model, measured on the device, expects to be the quickest.

Read `auto` first. `selector` is a stager's memory of it, `measurement` times a device.
"""
