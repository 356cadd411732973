"""The report as JUnit XML, which CI servers read: a testcase for each obligation.

A wrong verdict is a failure, with the schedule that breaks the claim if there is one. What the model has no meaning
for, and a run that ended before all was judged, are errors.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from ..obligation import Judgement, Verdict

SUITE = "kvstage prove"
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 can't hold, not even escaped; an exception's message may."""


def as_junit(judgements: Sequence[Judgement], broke_off: str = "") -> str:
    """The report as XML text. `broke_off` says why the run ended before all was judged; it is empty if it did not."""
    cases = [_case(judgement) for judgement in judgements]
    if broke_off:
        cases.append(ET.Element("testcase", classname=SUITE, name="the run", time=_seconds(0)))
        _outcome(cases[-1], "error", "internal", "the run ended before all was judged", broke_off)
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": "0",
        "time": _seconds(sum(judgement.seconds for judgement in judgements)),
    }
    suites = ET.Element("testsuites", {"name": SUITE, **counts})
    ET.SubElement(suites, "testsuite", {"name": SUITE, **counts}).extend(cases)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _case(judgement: Judgement) -> ET.Element:
    statement, verdict = judgement.statement, judgement.verdict
    name = f"{statement.theorem} {statement.title}".rstrip()
    case = ET.Element("testcase", classname=_clean(statement.subject), name=_clean(name), time=_seconds(judgement.seconds))
    if not judgement.ok:
        message = f"{verdict.value}, expected {statement.expected.value}"
        broken = [] if judgement.counterexample is None else list(judgement.counterexample.lines())
        text = "\n".join([statement.claim, *([judgement.reason] if judgement.reason else []), *broken])
        _outcome(case, "error" if verdict is Verdict.UNSUPPORTED else "failure", verdict.value, message, text)
    return case


def _outcome(case: ET.Element, tag: str, kind: str, message: str, text: str) -> None:
    ET.SubElement(case, tag, message=_clean(message), type=kind).text = _clean(text)


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"


def _clean(text: str) -> str:
    """The text with what XML can't hold spelled out."""
    return NOT_XML.sub(lambda found: f"#x{ord(found.group()):02X}", text)
