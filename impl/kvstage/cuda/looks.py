"""The host that looks at pinned memory until it changes: under a schedule in which it never does, that must end."""

from collections.abc import Sequence

from kvstage_model.language.buffers import Rows
from kvstage_model.schedules.schedule import Schedule
from kvstage_model.simulation.machine import Machine

from ..checked.accesses import CheckedOperation
from ..checked.findings import replay_of, spinning
from ..checked.source_lines import Line

MOST = 1000
"""How often the host may read the same bytes on the same line while nothing else happens."""


class Looks:
    """Counts the host's looks at the same bytes."""

    def __init__(self, machine: Machine, schedule: Schedule) -> None:
        self._machine = machine
        self._schedule = schedule
        self._last: object = None
        self._count = 0

    def look(self, reads: tuple[Rows, ...], line: Line | None, noted: Sequence[CheckedOperation]) -> None:
        """The host reads bytes. Raises SpinningError after MOST looks in which no stream has moved and nothing was issued."""
        what = (line, tuple((rows.buffer.name, rows.start, rows.count) for rows in reads), self._machine.moved)
        self._count = self._count + 1 if what == self._last else 1
        self._last = what
        if self._count > MOST and not self._machine.idle:
            under_way = [each for each in noted if each.number is not None][-4:]
            raise spinning("reads the same bytes", line, under_way, replay_of(self._schedule))
