"""What a test gets as `staging_schedule`: one run of it, under one schedule, on a device that checks.

Nothing here loads torch before a test asks for its device.
"""

import shlex
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvstage_model.schedules.replay_strings import to_string
from kvstage_model.schedules.schedule import Choices, Hold, HoldPair, Schedule

if TYPE_CHECKING:
    from kvstage import CheckedDevice


ALL_ORDERED = (
    "the device has seen no two accesses without an order: the code is wrong in any order, or some access goes around the device's "
    "tensors (an array from numpy(), data_ptr(), a tensor that is not from allocate, view or host_view)"
)
"""Added to a failure where nothing was found."""


OTHER_WORK = (
    "earlier runs of the test issued that much, so this schedule has shown nothing. A test must issue the same work in each run: "
    "keep nothing from run to run, such as a module's variable, and take no time or random number that differs"
)
"""Added where a run could not follow a schedule that was made from an earlier run."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run has failed, where the test itself has not; and the schedule that shows it best, if any."""

    message: str
    witness: str | None = None


class SecondDeviceError(Exception):
    """A test asked for two devices in one run: a schedule is the order of one."""


class StagingSchedule:
    """One run of a test. `schedule` is its schedule; call `device()` once, and let the code under test run on that."""

    def __init__(self, schedule: Schedule, nodeid: str, *, replayed: bool = False) -> None:
        self.schedule = schedule
        self.name = to_string(schedule)
        self._nodeid = nodeid
        self._replayed = replayed
        self._device: CheckedDevice | None = None

    def running(self) -> AbstractContextManager[None]:
        """Nothing is set up for a test: it asks for its device."""
        return nullcontext()

    def device(self, *, allocator: str = "driver") -> "CheckedDevice":
        """The device of this run. Raises SecondDeviceError when called again.

        `allocator="torch"`: memory that is dropped is used again by the rules of torch's allocators.
        """
        from kvstage import CheckedDevice

        if self._device is not None:
            raise SecondDeviceError("one run of a test has one device: call staging_schedule.device() once, and pass it on")
        self._device = CheckedDevice(self.schedule, allocator=allocator, replayed=self._replayed)
        return self._device

    def __repr__(self) -> str:
        return f"<staging_schedule {self.name}>"

    def finish(self, *, replayed: bool) -> Failure | None:
        """The test has returned: lets all work end, and says what the device found, or why the run shows nothing.

        A schedule must have been followed to its end. `replayed` says that it is a string's, not made from an earlier run.
        """
        if self._device is None:
            return Failure("the test has seen no schedule: call staging_schedule.device(), and run the code on that")
        found = None if self._device.closed else self._device.finish()  # what a test closes itself has raised there
        if found is not None:
            return Failure(f"{found}\n{self.replay()}", found.schedule)
        if not self._device.issued:
            return Failure("nothing was issued on a stream: there is nothing to hold back, and the run shows nothing")
        unused = _unused(self.schedule, self._device.issued)
        if unused is None:
            return None
        return Failure(f"{unused}\n{self.replay()}" if replayed else f"{unused}: {OTHER_WORK}")

    def explain(self, error: BaseException) -> str | None:
        """The test has failed: adds to the error what the device found, and how to run just this again.

        Returns the schedule that shows it best, if any.
        """
        found = None
        if self._device is not None:
            raised = self._device.closed
            found = self._device.finish()
            if found is None and self._device.issued:
                error.add_note(ALL_ORDERED)
            elif found is not None and not raised:
                error.add_note(str(found))
        error.add_note(self.replay())
        return found.schedule if found else None

    def replay(self) -> str:
        """The schedule, and the command that runs the test under it, each on a line."""
        command = f"pytest {shlex.quote(self._nodeid)} --kvstage-replay {self.name}"
        return f"schedule {self.name} ({self.schedule})\nreplay: {command}"


def _unused(schedule: Schedule, issued: int) -> str | None:
    """What a schedule asks for that the run did not have."""
    match schedule:
        case Hold(index) if index >= issued:
            work = f"{issued} operation{'' if issued == 1 else 's'}"
            return f"nothing was held back: the test issued {work}, and this schedule holds number {index}, from 0"
        case HoldPair(_, index) if index >= issued:
            return f"one was not held back: the test issued {issued} operations, and this schedule holds number {index}, from 0"
        case Choices() if len(schedule.first) > max(len(schedule.widths), 1):
            return f"the run had {len(schedule.widths)} choices, and this schedule makes {len(schedule.first)}"
    return None
