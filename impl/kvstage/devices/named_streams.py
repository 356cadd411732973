"""How calls are ordered against a caller whose streams are the device's own, known by name."""

from typing import Any

from ..errors import DeviceError
from .device import Device


class OwnStreams(dict[str, str]):
    """The library's streams by the names that its schemes have for them: "kvstage copy" for "copy".

    A caller's stream is called as the caller says, and these are no names of a caller's: so no stream is both.
    """

    def __missing__(self, name: str) -> str:
        own = self[name] = f"{OWN}{name}"
        return own


OWN = "kvstage "
"""What the names of the library's own streams begin with."""

OWN_STREAMS = OwnStreams()


class PlainEvent:
    """An event that is known by its identity alone."""


class NamedStreams:
    """`order_after` and `order_before` for devices without a current stream: `after` is a stream's name or an event."""

    def order_after(self: Device[Any, Any], stream: str, after: object) -> None:
        """The stream goes on after an event of this device, or all that is on a stream now; None orders nothing."""
        if after is None or (isinstance(after, str) and after == stream):
            return
        event = self.event()
        if isinstance(after, str):
            self.record(event, after)
            self.wait_event(stream, event)
        elif isinstance(after, type(event)):
            self.wait_event(stream, after)
        else:
            raise DeviceError(f"after is a {type(after).__name__}: it must be the name of a stream, or an event of this device")

    def order_before(self: Device[Any, Any], event: Any, stream: object) -> None:
        """The caller's stream of that name goes on after the event."""
        if not isinstance(stream, str):
            raise DeviceError(f"stream is {stream!r}: this device has no current stream, so name the one that is to wait")
        self.wait_event(stream, event)
