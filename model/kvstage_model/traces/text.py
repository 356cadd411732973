"""A trace drawn as text: a lane for each agent, and time downwards.

host                                stream copy
                                    + step 0: Copy pool[0].rows[0:1] ->
                                    |   stage[0].rows[0:1]
+ step 0: HostCopy ...              #
#                                   + ends
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from ..ordering.axioms import Moment
from ..ordering.program import HOST, describe
from ..ordering.races import Race
from ..ordering.trace import Trace

LANE = 38
"""Characters of a lane, its mark included."""
BEGINS, RUNS, AT_ONCE, OVERLAPS = "+", "|", "-", "#"
INDENT = "  "
KEY = f"{BEGINS} begins or ends   {RUNS} runs   {AT_ONCE} begins and ends with nothing in between"
KEY_OF_A_RACE = f"{OVERLAPS} both of the race run"


@dataclass(frozen=True)
class _Row:
    """One line in one lane: its mark and text. All other lanes go on."""

    agent: str
    mark: str
    text: str


def timeline(trace: Trace, race: Race | None = None) -> Iterator[str]:
    """The lines of the picture: the agents' names, then the events in their order, at last what the marks mean."""
    agents = trace.lanes()
    yield _line(list(agents.values()))
    running: dict[str, int] = {}
    skip = False
    for at, event in enumerate(trace.events):
        if skip:
            skip = False
            continue
        agent = trace.lane(event.index)
        skip = trace.at_once(at)
        if event.moment is Moment.BEGIN:
            running[agent] = event.index
        yield from _drawn(_rows(trace, at, agent, skip), agents, running, race)
        if event.moment is Moment.END or skip:
            del running[agent]
    yield KEY + (f"   {KEY_OF_A_RACE}" if race else "")


def _rows(trace: Trace, at: int, agent: str, at_once: bool) -> list[_Row]:
    event, issued = trace.events[at], trace.program[trace.events[at].index]
    if event.moment is Moment.END:
        return [_Row(agent, BEGINS, "ends")]
    words = describe(issued)
    words = words if agent == HOST else words.removesuffix(f" on stream {issued.agent}")
    first, *more = wrap(words, LANE - len(INDENT) - 2, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)
    return [_Row(agent, AT_ONCE if at_once else BEGINS, first), *(_Row(agent, " " if at_once else RUNS, text) for text in more)]


def _drawn(rows: Sequence[_Row], agents: Iterable[str], running: dict[str, int], race: Race | None) -> Iterator[str]:
    """The rows of one event, with the lanes of all that runs meanwhile."""
    both = race is not None and {race.first, race.second} <= set(running.values())
    for row in rows:
        cells = []
        for agent in agents:
            of_race = both and race is not None and running.get(agent) in (race.first, race.second)
            runs = OVERLAPS if of_race else RUNS if agent in running else ""
            if agent != row.agent:
                cells.append(runs)
            else:
                cells.append(f"{OVERLAPS if of_race and row.mark == RUNS else row.mark} {row.text}")
        yield _line(cells)


def _line(cells: Sequence[str]) -> str:
    return INDENT + "".join(f"{cell:<{LANE}}" for cell in cells).rstrip()
