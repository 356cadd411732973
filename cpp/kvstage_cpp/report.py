"""The report of `kvstage cpp run`: its last line, and JUnit XML, a testcase for each schedule."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from .judge import Verdict

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 can't hold, not even escaped; a program may print them."""
BLIND = "no sanitizer, so wrong results only: build with -fsanitize=thread to see each race"


def summary(judged: Verdict) -> str:
    """What the runs come to, in one line."""
    runs, found = judged.runs, judged.findings
    counts = runs[0].log.counts
    verdict = "clean" if not found else "1 finding" if len(found) == 1 else f"{len(found)} findings"
    did = f"{counts.operations} operations ({counts.copies} copies, {counts.bytes} bytes), {counts.waits} waits"
    schedules = "1 schedule" if len(runs) == 1 else f"{len(runs)} schedules"
    return f"{verdict}: {schedules}, {did}; {runs[0].log.sanitizer or BLIND}"


def as_junit(command: Sequence[str], judged: Verdict) -> str:
    """The report as XML text: a schedule fails if a finding shows under it."""
    runs, found = judged.runs, judged.findings
    suite = ET.Element("testsuite", name="kvstage cpp run", tests=str(len(runs)), errors="0", skipped="0")
    failures = 0
    for run in runs:
        case = ET.SubElement(suite, "testcase", classname=_clean(" ".join(command)), name=run.schedule)
        shown = [finding for finding in found if run.schedule in finding.schedules]
        failures += bool(shown)
        for finding in shown:
            text = "\n".join(finding.lines(command, len(runs)))
            ET.SubElement(case, "failure", message=_clean(finding.words), type=finding.kind).text = _clean(text)
    suite.set("failures", str(failures))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _clean(text: str) -> str:
    """The text with what XML can't hold spelled out."""
    return NOT_XML.sub(lambda found: f"#x{ord(found.group()):02X}", text)
