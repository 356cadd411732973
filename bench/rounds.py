"""Rounds of replays, interleaved, so that a busy moment hits all schemes; and what two identical legs differ by."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from kvstage import Stats

from .forward import progress
from .replay import FLAT, Recording, Replay, Sample

SCHEMES = ("per_row", "per_block", "direct", "gather_pinned")
"""From the one with the most round trips to the one with the fewest."""
ROUNDS = 3


@dataclass(slots=True)
class Leg:
    """A recording, staged by a scheme or copied flat: its samples, and the seconds of pairs of identical runs of it."""

    recording: Recording
    scheme: str
    samples: list[Sample] = field(default_factory=list)
    pairs: list[tuple[float, float]] = field(default_factory=list)

    @property
    def stats(self) -> Stats:
        """What one run asks of the device."""
        return self.samples[0].stats

    @property
    def totals(self) -> list[float]:
        """Seconds of each run."""
        return [sum(sample.seconds) for sample in self.samples]

    @property
    def seconds(self) -> float:
        """The median run."""
        return median(self.totals)

    @property
    def waiting(self) -> float:
        """The median of the seconds that the host waited in a run."""
        return median(sum(sample.waiting) for sample in self.samples)

    @property
    def points(self) -> list[float]:
        """The median seconds of each step."""
        return [median(times) for times in zip(*(sample.seconds for sample in self.samples), strict=True)]

    @property
    def band(self) -> float | None:
        """The largest relative difference of two identical runs, one behind the other: 0.1 for 10 %. None if there were none."""
        return max((max(pair) / min(pair) - 1 for pair in self.pairs), default=None)


def measure(
    replay: Replay, recordings: Iterable[Recording], schemes: Iterable[str] = SCHEMES, *, rounds: int = ROUNDS, once: float
) -> list[Leg]:
    """First the pairs of identical runs, then the rounds. Raises WrongReplayError if a run left wrong bytes.

    A leg with more than `once` waits runs in the first round alone: noise averages out in so many. No pairs of per_row: they
    would double the time, and it does what per_block does, 32 times as often.
    """
    legs = [Leg(recording, scheme) for recording in recordings for scheme in (FLAT, *schemes)]
    for turn in range(rounds):
        for leg in legs:
            if leg.scheme not in (FLAT, "per_row"):
                progress(f"pair {turn + 1}: {leg.recording.name}, {leg.scheme}")
                first, second = (sum(replay.run(leg.recording, leg.scheme).seconds) for _ in range(2))
                leg.pairs.append((first, second))
    for turn in range(rounds):
        for leg in legs:
            if turn == 0 or leg.stats.waits <= once:
                progress(f"round {turn + 1}: {leg.recording.name}, {leg.scheme}")
                leg.samples.append(replay.run(leg.recording, leg.scheme))
    progress("")
    return legs


def band(legs: Iterable[Leg], leg: Leg) -> float:
    """The leg's own band; for one without pairs, the widest of the legs of the same recording."""
    own = leg.band
    if own is not None:
        return own
    return max(other.band for other in legs if other.recording is leg.recording and other.band is not None)


def order(legs: list[Leg]) -> list[tuple[str, str]]:
    """The schemes of one recording, as in SCHEMES, and how each compares with the one before: quicker, alike or slower.

    Alike are two whose difference is inside the wider of their bands. All schemes share one rest of the step, so their
    shares of the step are in this order too. The first one's word is "".
    """
    staged = [leg for leg in legs if leg.scheme != FLAT]
    found = [(staged[0].scheme, "")]
    for before, leg in pairwise(staged):
        margin = 1 + max(band(staged, before), band(staged, leg))
        quicker, slower = before.seconds > leg.seconds * margin, leg.seconds > before.seconds * margin
        found.append((leg.scheme, "quicker" if quicker else "slower" if slower else "alike"))
    return found
