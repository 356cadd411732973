"""The schedules of a scheme's small instances, safe and broken, as traces to be written."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.ordering.program import unroll
from kvstage_model.ordering.races import HappensBefore, Race, races
from kvstage_model.ordering.trace import Trace
from kvstage_model.schedules.drivers import NothingAsynchronousError, delays
from kvstage_model.schedules.schedule import Schedule
from kvstage_model.search.instances import MOST_CALLS, MOST_ROWS, small_values
from kvstage_model.simulation.simulator import Simulation, simulate
from kvstage_model.traces.call_arguments import arguments_as_json
from kvstage_model.traces.json_writer import as_json
from kvstage_model.traces.perfetto import as_chrome
from kvstage_model.traces.svg import as_svg
from kvstage_model.traces.text import timeline

from ..obligation import Obligation
from ..targets.names import TargetError, obligations
from ..targets.user_file import is_file, load
from ..theorems.t1_no_hazard import T1
from ..theorems.t5_removals import removals

NUMBER = 2
"""What the numbers of an instance are, if their ranges allow it, such as the slots of a ring."""


@dataclass(frozen=True, eq=False)
class Written:
    """One trace of a scheme: its schedule in words, its calls' arguments, and the race that it shows, if any."""

    schedule: str
    trace: Trace
    arguments: tuple[dict[str, Any], ...]
    race: Race | None = None

    def text(self, form: str) -> str:
        """The trace in one of FORMATS. Pictures of a race end with it; JSON has the whole run."""
        shown = self.trace.until(self.race.first, self.race.second) if self.race else self.trace
        return FORMATS[form].text(self, shown)


@dataclass(frozen=True)
class Format:
    """A format of a trace: how its files end, and the text of what was written, of which as much is shown as matters."""

    suffix: str
    text: Callable[[Written, Trace], str]


FORMATS: dict[str, Format] = {
    "json": Format(".json", lambda written, _: as_json(written.trace, written.arguments)),
    "chrome": Format(".chrome.json", lambda written, shown: as_chrome(shown, written.race)),
    "svg": Format(".svg", lambda written, shown: as_svg(shown, written.race)),
    "text": Format(".txt", lambda written, shown: "\n".join(timeline(shown, written.race)) + "\n"),
}
"""Each format of a trace, by its name on the command line."""


def subjects(target: str) -> dict[str, SchemeFunction]:
    """What a target names, by name, each with its broken variants: `ring`, `ring.read`, `file.py:scheme`.

    Raises TargetError if it names no scheme, SchemeFileError for a file's that can't be used.
    """
    if is_file(target):
        function = load(target)
        return {target: function} | {each.statement.scheme: _function(each) for each in removals(function, target, "")}
    stated = [each for each in obligations((target,)) if each.statement.theorem == T1.name]
    if not stated:
        raise TargetError(f"{target!r} names no scheme that has schedules: name one as `kvstage prove` does, without a theorem")
    return {each.statement.subject: _function(each) for each in stated}


def _function(obligation: Obligation) -> SchemeFunction:
    assert callable(obligation.subject), "T1 is a claim about a scheme function"
    return obligation.subject


def traces(function: SchemeFunction) -> Iterator[Written]:
    """The traces of a scheme: one in issue order, one for each half of each asynchronous operation, held back; and its race.

    If none of its small instances has a race, there is none to show.
    """
    values = _instance(function)
    scheme = function(**values)
    arguments = (arguments_as_json(values, scheme.steps),)

    def run(schedule: Schedule) -> Simulation:
        return simulate([scheme], schedule)

    try:
        for schedule, simulation in delays(run):
            yield Written(str(schedule), simulation.trace, arguments)
    except NothingAsynchronousError:
        pass
    yield from _race(function)


def _instance(function: SchemeFunction) -> dict[str, Any]:
    """The arguments of the small instance with the most operations, of those with the usual numbers."""
    found = list(small_values(declared(function), MOST_ROWS))
    if not found:
        raise TargetError("the scheme has no small instance")

    def size(values: dict[str, Any]) -> tuple[bool, int]:
        usual = all(value == NUMBER for value in values.values() if isinstance(value, int))
        return usual, len(unroll([function(**values)]))

    return max(found, key=size)


def _race(function: SchemeFunction) -> Iterator[Written]:
    """The smallest instance in which two accesses may overlap, in a schedule in which they do."""
    for values in small_values(declared(function), MOST_ROWS):
        scheme = function(**values)
        for calls in range(1, MOST_CALLS + 1):
            program = unroll([scheme] * calls)
            race = next(races(program), None)
            if race is not None:
                arguments = (arguments_as_json(values, scheme.steps),) * calls
                yield Written("race", HappensBefore(program).schedule(race), arguments, race)
                return
