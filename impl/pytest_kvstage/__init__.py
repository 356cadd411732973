"""The pytest plugin: `staging_schedule` runs a test of a staging loop once for each order that a driver may choose.

Read `plugin` first. It loads neither torch nor the model before a test asks for a schedule.
"""
