"""What was measured, as the numbers that the JSON holds and the table prints."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from .extrapolate import PCIE_5, RATES, operations, share
from .replay import FLAT, Recording
from .rounds import Leg, band, order
from .sizes import REAL, Sizes

MILLI = 1e3


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": median(values), "least": min(values), "most": max(values)}


def rests(recording: Recording) -> list[float]:
    """Seconds of everything but staging in all steps of a recording, once for each pass."""
    return [sum(times) for times in zip(*(step.rest for step in recording.steps), strict=True)]


def steps(recordings: Sequence[Recording]) -> list[dict[str, Any]]:
    """Each recording: how many rows its steps read and write, counted in its calls, and what the rest of it takes."""
    found = []
    for recording in recordings:
        calls = [call for step in recording.steps for call in step.calls]
        rows = {way: sum(call.stop - call.start for call in calls if call.direction == way) for way in ("read", "write")}
        found.append(
            {
                "step": recording.name,
                "forwards": len(recording.steps),
                "tokens": sum(step.tokens for step in recording.steps),
                "rows_read": rows["read"],
                "rows_written": rows["write"],
                "rest_milliseconds": spread([each * MILLI for each in rests(recording)]),
                "unstaged_milliseconds": recording.unstaged * MILLI,
            }
        )
    return found


def growth(recording: Recording) -> list[dict[str, int]]:
    """Rows that a prefill in chunks has read behind 1, 2, 4, ... of its chunks: they grow with the square of the tokens."""
    found, read = [], 0
    for number, step in enumerate(recording.steps, 1):
        read += sum(call.stop - call.start for call in step.calls if call.direction == "read")
        if number & (number - 1) == 0:
            found.append({"chunks": number, "tokens": step.history + step.tokens, "rows_read": read})
    return found


def legs(measured: list[Leg]) -> list[dict[str, Any]]:
    """Each leg on one device, its recording's flat copy first."""
    found = []
    for leg in measured:
        flat = next(other for other in measured if other.recording is leg.recording and other.scheme == FLAT)
        times, rest = leg.totals, rests(leg.recording)
        found.append(
            {
                "step": leg.recording.name,
                "scheme": leg.scheme,
                "copies": leg.stats.copies,
                "launches": leg.stats.launches,
                "waits": leg.stats.waits,
                "bytes": leg.stats.bytes,
                "staging_milliseconds": spread([each * MILLI for each in times]),
                "submission_milliseconds": (leg.seconds - leg.waiting) * MILLI,
                "waiting_milliseconds": leg.waiting * MILLI,
                "step_milliseconds": (leg.seconds + median(rest)) * MILLI,
                "share": {
                    "median": share(leg.seconds, median(rest)),
                    "least": share(min(times), max(rest)),
                    "most": share(max(times), min(rest)),
                },
                "to_flat": leg.seconds / flat.seconds,
                "rounds": [each * MILLI for each in times],
                "pairs": [[first * MILLI, second * MILLI] for first, second in leg.pairs],
                "points": [
                    {"history": step.history, "tokens": step.tokens, "share": share(seconds, median(step.rest))}
                    for step, seconds in zip(leg.recording.steps, leg.points, strict=True)
                ],
            }
        )
    return found


def orders(measured: list[Leg]) -> list[dict[str, Any]]:
    """For each recording: the schemes, how each compares with the one before, and the noise band of each."""
    found = []
    for recording in dict.fromkeys(leg.recording for leg in measured):
        own = [leg for leg in measured if leg.recording is recording and leg.scheme != FLAT]
        bands = {leg.scheme: band(own, leg) for leg in own}
        compared = [{"scheme": scheme, "than_before": word, "band": bands[scheme]} for scheme, word in order(own)]
        found.append({"step": recording.name, "schemes": compared})
    return found


def extrapolation(measured: list[Leg], sizes: Sizes, real: Sizes = REAL) -> list[dict[str, Any]]:
    """Each leg at the real widths: its staging here and on PCIe 5, beside the real step's rest here and at stated rates."""
    found = []
    for leg in measured:
        if leg.scheme == FLAT:
            continue
        work = [(step.history, step.tokens) for step in leg.recording.steps]
        small, reference = (sum(operations(each, *step) for step in work) for each in (sizes, real))
        serving = sum(operations(real, *step, serving=True) for step in work)
        rest = median(rests(leg.recording)) * reference / small
        bus = PCIE_5.seconds(leg.stats.copies, leg.stats.waits, leg.stats.launches, leg.stats.bytes)
        prefill = leg.recording.before == 0
        found.append(
            {
                "step": leg.recording.name,
                "scheme": leg.scheme,
                "operations": {"measured": small, "real": reference, "real_serving": serving},
                "rest_here_seconds": rest,
                "share_here": share(leg.seconds, rest),
                "bus_milliseconds": [each * MILLI for each in bus],
                # A decode step is bound by reading the weights: operations say nothing of its time on an accelerator.
                "bus_shares": [[share(each, serving / rate) for each in bus] for rate in RATES] if prefill else None,
            }
        )
    return found
