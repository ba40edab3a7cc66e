"""What the judge found as JUnit's XML, for continuous integration: a test case a subsystem, a failure a rejection."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaspec.judge.result import SubsystemVerdict

NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot say, such as control characters that a target wrote."""


def junit(judged: Sequence[SubsystemVerdict]) -> str:
    """The document. A subsystem that could not be judged is an error; its output has what was exercised."""
    target = next((j.target for j in judged if j.target), "")
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name=_fit(f"kafkaspec judge {target}".rstrip()),
        tests=str(len(judged)),
        failures=str(sum(bool(j.rejections) for j in judged)),
        errors=str(sum(j.verdict == "could not judge" for j in judged)),
        skipped="0",
        time=f"{sum(j.seconds for j in judged):.3f}",
    )
    for j in judged:
        case = ElementTree.SubElement(
            suite, "testcase", classname="kafkaspec.judge", name=j.job.subsystem, time=f"{j.seconds:.3f}"
        )
        for n, r in enumerate(j.rejections):
            again = j.replay(j.kept[n]) if n < len(j.kept) else j.again
            what = f"{r.operation}: {r.verdict.sentence or r.shape}"
            failure = ElementTree.SubElement(case, "failure", type=r.clause or "rejected", message=_fit(what))
            failure.text = _fit(f"{r.history}\nto see it again: {again}\n")
        if j.verdict == "could not judge":
            kind = j.tally.trouble.kind if j.tally.trouble is not None else j.verdict
            error = ElementTree.SubElement(case, "error", type=kind, message=_fit(j.why))
            stderr = j.tally.trouble.stderr if j.tally.trouble is not None else ()
            error.text = _fit("\n".join([*stderr, str(j.tally.last or "")]))
        ElementTree.SubElement(case, "system-out").text = _fit(_said(j))
    ElementTree.indent(suites)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(suites, encoding='unicode')}\n"


def _said(j: SubsystemVerdict) -> str:
    t = j.tally
    met = ", ".join(f"{id} x{n}" for id, n in sorted(t.deviations.items())) or "none"
    return (
        f"{t.histories} histories, {t.calls} calls; {len(j.clauses) - len(j.never_exercised)} of {len(j.clauses)} "
        f"clauses exercised; known deviations met: {met}"
    )


def _fit(text: str) -> str:
    return NO_XML.sub("\ufffd", text)
