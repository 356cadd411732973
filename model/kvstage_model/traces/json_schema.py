"""Traces as JSON: their form as a JSON schema, made of the fields of each operation. `trace.schema.json` is its text.

`python -m kvstage_model.traces.json_schema > trace.schema.json` writes it anew after a change of `json_fields`.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from ..language.buffers import Memory
from ..ordering.axioms import Moment
from ..ordering.program import ELSEWHERE, HOST
from .json_fields import FIELDS, FORMAT, VERSION, FieldForm
from .json_values import LARGEST, LONGEST_NAME

Schema: TypeAlias = dict[str, Any]

_NAME, _NUMBER, _ROWS, _PLACES, _EVENT = ({"$ref": f"#/$defs/{name}"} for name in ("name", "number", "rows", "places", "event"))


def _object(properties: Mapping[str, Schema], optional: tuple[str, ...] = (), **more: object) -> Schema:
    """An object with these keys and no others."""
    required = [key for key in properties if key not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **more}


def _list(items: Schema, **more: object) -> Schema:
    return {"type": "array", **more, "items": items}


def _pair(form: Schema) -> Schema:
    return {"type": "array", "prefixItems": [form, form], "minItems": 2, "items": False}


FORMS: dict[FieldForm, Schema] = {
    FieldForm.NAME: {"$ref": "#/$defs/stream"},
    FieldForm.ROWS: _ROWS,
    FieldForm.PLACES: _PLACES,
    FieldForm.ACCESSES: _list({"oneOf": [_ROWS, _PLACES]}),
    FieldForm.PAIRS: _list(_pair(_ROWS)),
    FieldForm.EVENT: _EVENT,
    FieldForm.ANSWER: {"enum": [0, 1]},
}
"""What each form of a field is in a schema. Names of operations are those of streams."""


def _operation(kind: type, parts: dict[str, FieldForm]) -> Schema:
    place: dict[str, Schema] = {"call": _NUMBER, "phase": _NAME, "step": _NUMBER, "kind": {"const": kind.__name__}}
    return _object(place | {name: FORMS[form] for name, form in parts.items()})


def schema() -> Schema:
    """The form of a trace. A reader demands more than a schema can say: see docs/traces.md."""
    buffer = _object(
        {"name": _NAME, "memory": {"enum": [memory.value for memory in Memory]}, "slots": _NUMBER, "rows": _NUMBER},
    )
    at = {"description": "Nanoseconds, never before the event in front of it.", **_NUMBER}
    moments = [Moment.BEGIN.value, Moment.END.value]
    event = _object({"operation": _NUMBER, "moment": {"enum": moments}, "at": at}, optional=("at",))
    calls = "The arguments of each call's scheme, by parameter; left out where they are not known."
    trace: dict[str, Schema] = {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "calls": {"description": calls, **_list({"type": "object"})},
        "buffers": _list(buffer),
        "program": _list({"$ref": "#/$defs/operation"}, minItems=1),
        "events": _list(event, minItems=1),
    }
    rows = {"buffer": _NAME, "slot": _NUMBER, "start": _NUMBER, "count": _NUMBER}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A kvstage trace, version {VERSION}",
        "description": (
            "Operations in the order in which the host issued them, and the order in which they began and ended. "
            "A reader demands more than a schema can say: see docs/traces.md."
        ),
        **_object(trace, optional=("calls",)),
        "$defs": {
            "number": {"type": "integer", "minimum": 0, "maximum": LARGEST},
            "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
            "stream": {**_NAME, "not": {"enum": [HOST, ELSEWHERE]}},
            "rows": _object(rows, description="Rows [start, start + count) of one slot."),
            "places": _object(
                {"buffer": _NAME, "places": _list(_pair(_NUMBER))},
                description="Rows of a pool that a kernel reaches, each [slot, row].",
            ),
            "event": _object({"name": _NAME, "index": _NUMBER, "call": _NUMBER}),
            "operation": {"oneOf": [_operation(kind, parts) for kind, parts in FIELDS.items()]},
        },
    }


def text() -> str:
    """The text of `trace.schema.json`."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(text(), end="")
