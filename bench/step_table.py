"""The report of `python -m bench step` for people: what was measured. `extrapolation_table` has the rest."""

from collections.abc import Iterator
from typing import Any

from .extrapolation_table import extrapolated
from .replay import FLAT

SIGNS = {"": "", "quicker": " > ", "alike": " ~ ", "slower": " < "}


def table(report: dict[str, Any]) -> str:
    """Everything that was measured, then what is extrapolated from it, in parts with an empty line between them."""
    parts = [_head(report), _model(report)]
    for device in report["devices"]:
        parts += [_legs(device, step) for step in report["steps"]]
        parts.append(_orders(device))
    return "\n\n".join("\n".join(part) for part in (*parts, _growth(report), extrapolated(report)))


def _head(report: dict[str, Any]) -> Iterator[str]:
    data, machine, verified = report["input"], report["machine"], report["verified"]
    yield (
        f"GLM-5.3-Flash step: {data['tokens']} tokens, {data['caches']} caches in blocks of {data['block_size']} rows, "
        f"{data['bytes']} bytes of rows"
    )
    yield (
        f"{machine['cpus']} CPUs ({machine['architecture']}), load {machine['load_average']:.1f} before, torch {machine['torch']}, "
        f"transformers {machine['transformers']}"
    )
    yield f"torch threads: {machine['torch_threads']}, {machine['wait_policy']}"
    yield (
        f"verified first: the logits and cached rows of {verified['passes']} staged forward passes, {verified['bytes']} bytes, are "
        "those of no staging"
    )
    yield f"medians [least, most] of up to {report['rounds']} interleaved runs, the bytes of each compared"
    yield from (f"without {name}: {why}" for name, why in report["missing"].items())


def _model(report: dict[str, Any]) -> Iterator[str]:
    yield "sizes as measured (and real, where they differ); weights are random"
    words = [f"{name} {small}" if small == real else f"{name} {small} ({real})" for name, small, real in report["model"]]
    line = ""
    for word in words:
        if len(line) + len(word) > 115:
            yield f"  {line},"
            line = ""
        line += f", {word}" if line else word
    yield f"  {line}"


def _legs(device: dict[str, Any], step: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{device['device']}, {step['step']}: {step['forwards']} x the model, {step['rows_read']} rows read, "
        f"{step['rows_written']} rows written"
    )
    yield (
        f"all else takes {_spread(step['rest_milliseconds'])} ms; the pass with no staging at all took "
        f"{step['unstaged_milliseconds']:.0f} ms"
    )
    yield (
        f"{'scheme':13} {'copies':>8} {'launches':>8} {'waits':>8} {'MB':>7} {'staging, ms':>24} {'submit':>8} {'wait':>8} "
        f"{'step, ms':>9} {'share of the step':>22} {'to flat':>7} {'runs':>4}"
    )
    for row in device["legs"]:
        if row["step"] == step["step"]:
            share, step_ = ("", "") if row["scheme"] == FLAT else (_percent(row["share"]), f"{row['step_milliseconds']:.0f}")
            yield (
                f"{row['scheme']:13} {row['copies']:8} {row['launches']:8} {row['waits']:8} {row['bytes'] / 1e6:7.1f} "
                f"{_spread(row['staging_milliseconds']):>24} {row['submission_milliseconds']:8.1f} "
                f"{row['waiting_milliseconds']:8.1f} {step_:>9} {share:>22} {row['to_flat']:7.1f} {len(row['rounds']):4}"
            )


def _orders(device: dict[str, Any]) -> Iterator[str]:
    yield f"{device['device']}: where the share falls from one scheme to the next; in brackets what two identical legs differ by"
    yield "  > beyond the wider of both brackets; ~ inside it, so no difference is claimed; < it rises"
    for row in device["orders"]:
        words = (f"{SIGNS[each['than_before']]}{each['scheme']} ({each['band'] * 100:.0f} %)" for each in row["schemes"])
        yield f"  {row['step']}: {''.join(words)}"
        legs = {leg["scheme"]: leg for leg in device["legs"] if leg["step"] == row["step"]}
        for before, each in zip(row["schemes"], row["schemes"][1:], strict=False):
            if each["than_before"] != "quicker":
                yield f"      why: {_why(legs[before['scheme']])}; {_why(legs[each['scheme']])}"


def _why(leg: dict[str, Any]) -> str:
    """What the time of a leg goes to: on the host it is calls, and what it waits for is bytes."""
    return (
        f"{leg['scheme']} submits {leg['copies'] + leg['launches']} in {leg['submission_milliseconds']:.1f} ms "
        f"and waits {leg['waiting_milliseconds']:.1f} ms"
    )


def _growth(report: dict[str, Any]) -> Iterator[str]:
    caches, chunk = report["input"]["caches"], report["growth"][0]["tokens"]
    yield f"rows read by a prefill in c chunks of {chunk}, {caches} * {chunk} * c (c - 1) / 2: the square of the tokens, in the end"
    yield "  " + ", ".join(f"{row['tokens']} tokens: {row['rows_read']}" for row in report["growth"])


def _spread(values: dict[str, float]) -> str:
    digits = 1 if values["median"] < 1000 else 0
    return f"{values['median']:.{digits}f} [{values['least']:.{digits}f}, {values['most']:.{digits}f}]"


def _percent(values: dict[str, float]) -> str:
    median, least, most = (values[name] * 100 for name in ("median", "least", "most"))
    return f"{median:.1f} [{least:.1f}, {most:.1f}] %"
