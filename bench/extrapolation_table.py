"""The part of the report that was not measured: the same staging beside a step of the released model's sizes."""

from collections.abc import Iterator
from typing import Any

from .extrapolate import FORMULAS, PCIE_5, RATES


def extrapolated(report: dict[str, Any]) -> Iterator[str]:
    """The formulas, then a line for each step, and one for each scheme in it."""
    least, most = PCIE_5.least, PCIE_5.most
    copy, wait = ([f"{each * 1e6:g}" for each in costs] for costs in ((least.copy, most.copy), (least.wait, most.wait)))
    yield "EXTRAPOLATION to the real widths: not a measurement"
    yield from FORMULAS.splitlines()
    yield "here: (all else as measured) * (operations, real) / (operations, measured); staging as measured, since its rows are real"
    yield (
        f"{PCIE_5.name}: copies * ({' .. '.join(copy)} us) + waits * ({' .. '.join(wait)} us) + "
        f"launches * {least.launch * 1e6:g} us + bytes / ({least.bandwidth / 1e9:g} GB/s), published figures"
    )
    yield "beside it: (operations, real, serving) / (operations a second); none for decoding, whose time is in reading weights"
    steps = dict.fromkeys(row["step"] for row in report["extrapolation"])
    for step in steps:
        rows = [row for row in report["extrapolation"] if row["step"] == step]
        yield ""
        yield _heading(rows[0])
        rates = "".join(f"{f'share at {rate / 1e12:g} Tflop/s':>24}" for rate in RATES)
        yield f"{'scheme':13} {'share here':>11} {f'{PCIE_5.name}, ms':>20}{rates}"
        for row in rows:
            bus = " .. ".join(f"{each:.1f}" for each in row["bus_milliseconds"])
            shares = "".join(f"{_range(pair):>24}" for pair in row["bus_shares"] or ())
            yield f"{row['scheme']:13} {row['share_here'] * 100:9.3f} % {bus:>20}{shares}"


def _heading(row: dict[str, Any]) -> str:
    work = row["operations"]
    return (
        f"{row['step']}: {work['measured'] / 1e12:.4f} Tflop measured, {work['real'] / 1e12:.2f} real "
        f"({work['real_serving'] / 1e12:.2f} serving), so all else would take {row['rest_here_seconds']:.0f} s here"
    )


def _range(pair: list[float]) -> str:
    return f"{pair[0] * 100:.1f} .. {pair[1] * 100:.1f} %"
