"""One direction of a scheme as a C++ function template."""

import textwrap
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.language.scheme import CALLER, Phase, Scheme, Session

from ..reading.expressions import Fork
from ..reading.lines import INDENT, KEYWORDS, Line, Lines, indented, text, useful
from ..reading.number import Number, Truth
from ..reading.refusal import EmitError
from ..reading.values import Readable
from .arguments import Arguments
from .operations import Writer

WIDTH = 120


@dataclass(frozen=True)
class Function:
    """A function template, the functions that it calls, and the Python functions that were read for it."""

    text: str
    helpers: dict[str, str]
    read: dict[str, FunctionType]


def written(function: SchemeFunction, name: str, doc: str) -> Function:
    """A scheme function as C++. Raises EmitError, with the line, for what has none."""
    words = [each for each in (name, *(parameter.name for parameter in declared(function))) if each in KEYWORDS]
    if words:
        raise EmitError(f"{words[0]!r} is a word of C++, or of the header's own: give it another name")
    passes: list[Writer] = []
    lines, arguments = _body(function, (), passes)
    needs = passes[-1]
    for other in passes[:-1]:
        for mine, others in ((needs.streams, other.streams), (needs.buffers, other.buffers), (needs.events, other.events)):
            if any(mine.setdefault(key, value) != value for key, value in others.items()):
                raise EmitError(f"{name} gives one buffer, stream or event two names")
        needs.memory |= other.memory
        needs.sites += [site for site in other.sites if site not in needs.sites]
        needs.helpers |= other.helpers
        needs.read |= other.read
    head = _head(name, doc, needs, arguments)
    demands = [Line(0, demand) for demand in arguments.demands]
    return Function(f"{head}{text([*demands, *useful(lines)], 1)}}}\n", needs.helpers, needs.read)


def _body(function: SchemeFunction, decisions: tuple[bool, ...], passes: list[Writer]) -> tuple[list[Line], Arguments]:
    parameters = declared(function)
    writer = Writer(Lines([each.name for each in parameters]), decisions)
    arguments = Arguments(writer, parameters)
    writer.paged = arguments.rows
    try:
        scheme: Any = writer.call(function, [], arguments.values)
        if not isinstance(scheme, Scheme):
            raise EmitError(f"it returns a {type(scheme).__name__}, not a Scheme")
        _scheme(writer, scheme, arguments)
    except Fork as fork:
        shared = len(writer.lines.written)
        (yes, arguments), (no, _) = (_body(function, (*decisions, way), passes) for way in (True, False))
        first = [Line(0, f"if ({fork.test.text}) {{"), *indented(yes[shared:], 1)]
        second = [Line(0, "} else {"), *indented(no[shared:], 1), Line(0, "}")]
        return [*yes[:shared], *first, *second], arguments
    passes.append(writer)
    return writer.lines.written, arguments


def _scheme(writer: Writer, scheme: Scheme, arguments: Arguments) -> None:
    for buffer in scheme.buffers:
        slots, rows = writer_text(buffer.slots), writer_text(buffer.rows)
        writer.lines.add(f'{writer.buffer(buffer)}.fit("{buffer.name}", {slots}, {rows});')
    phases = [phase for phase in scheme.phases if isinstance(scheme, Session) or phase.name != CALLER]
    writer.sizes = [*(buffer.slots for buffer in scheme.buffers), *arguments.numbers, *(phase.steps for phase in phases)]
    at = len(writer.lines.written)
    for phase in phases:
        writer.phase = phase.name if isinstance(scheme, Session) else ""
        writer.answers.clear()
        if isinstance(scheme, Session):
            writer.lines.add(f"// {phase.name}")
        _phase(writer, phase)
    ready = [f'demand_same_rows("{a}", {a}, "{b}", {b});' for a, b in writer.linked if a != b]
    for event, name in writer.events.items():
        counts = list(writer.counts[event])
        most = counts[0] if len(counts) == 1 else f"std::max<Index>({{{', '.join(counts)}}})"
        if scheme.fresh_events:
            ready.append(f"const auto {name} = backend.fresh_events({most});")
        else:
            ready.append(f'demand_events("{event}", {name}.size(), {most});')
    if scheme.fresh_events:
        writer.events.clear()
    writer.lines.written[at:at] = [Line(0, each) for each in ready]


def _phase(writer: Writer, phase: Phase) -> None:
    step: Any = phase.step
    steps: Any = phase.steps
    if isinstance(steps, int) and steps == 1 and not isinstance(step, Readable):
        _issue(writer, step(0))
        return
    names = step.parameters if isinstance(step, Readable) else list(step.__code__.co_varnames[:1])
    with writer.counting(names[0], 0, steps) as turn:
        _issue(writer, step(turn))


def _issue(writer: Writer, operations: Any) -> None:
    streaming = False
    for operation in operations:
        streaming = streaming or writer.suspended > 0
        if streaming and not writer.suspended:
            raise EmitError("an edit of the scheme moves operations of a step: write the step as it is to be")
        try:
            writer.issue(operation)
        except EmitError as reason:
            raise EmitError(f"{writer.where if streaming else ''}{reason}") from reason


def writer_text(value: object) -> str:
    """A number as an argument."""
    return value.text if isinstance(value, Number | Truth) else str(value)


def _head(name: str, doc: str, needs: Writer, arguments: Arguments) -> str:
    kinds = ["class Backend", *(f"class {_camel(site)}" for site in needs.sites)]
    parameters = [
        "Backend& backend",
        *arguments.taken,
        *(f"typename Backend::Stream {stream}" for stream in needs.streams.values()),
        *(f"Buffer {buffer}" for buffer in needs.buffers.values()),
        *(f"const std::vector<typename Backend::Event>& {event}" for event in needs.events.values()),
        *(f"{_camel(site)}&& {site}" for site in needs.sites),
    ]
    where = ", ".join(f"{needs.buffers[buffer]} ({memory})" for buffer, memory in needs.memory.items())
    comment = [*doc.splitlines(), "", *textwrap.wrap(f"Memory: {where}.", WIDTH - 4)]
    told = "".join(f"/// {line}".rstrip() + "\n" for line in comment)
    whole = f"void {name}({', '.join(parameters)}) {{"
    if len(whole) > WIDTH:
        whole = f"void {name}(\n" + ",\n".join(textwrap.indent(each, INDENT) for each in parameters) + ") {"
    return f"{told}template <{', '.join(kinds)}>\n{whole}\n"


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
