"""`RecordingDevice`: any device, and a trace of what ran on it.

Read `device` first.
"""

from .device import RecordingDevice, Timed

__all__ = [
    "RecordingDevice",
    "Timed",
]
