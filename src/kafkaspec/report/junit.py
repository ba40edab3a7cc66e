"""What the judge found as JUnit's XML, for continuous integration: a suite a subsystem, a test case a clause."""

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
    """The document: a suite a subsystem, in it a test case for the campaign as a whole and one a clause. A clause that
    was not exercised is skipped; a subsystem that could not be judged is an error of its campaign."""
    suites = ElementTree.Element("testsuites")
    for j in judged:
        suites.append(_suite(j))
    ElementTree.indent(suites)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(suites, encoding='unicode')}\n"


def _suite(j: SubsystemVerdict) -> ElementTree.Element:
    of: dict[str, list[int]] = {}
    for n, r in enumerate(j.rejections):
        of.setdefault(r.clause if r.clause in j.clauses else "", []).append(n)
    suite = ElementTree.Element(
        "testsuite",
        name=_fit(f"kafkaspec judge {j.target}".rstrip() + f": {j.job.subsystem}"),
        tests=str(1 + len(j.clauses)),
        failures=str(len(of)),
        errors=str(int(j.verdict == "could not judge")),
        skipped=str(sum(c not in of for c in j.never_exercised)),
        time=f"{j.seconds:.3f}",
    )
    whole = _case(suite, j, "campaign", f"{j.seconds:.3f}", of.get("", ()))
    if j.verdict == "could not judge":
        kind = j.tally.trouble.kind if j.tally.trouble is not None else j.verdict
        error = ElementTree.SubElement(whole, "error", type=kind, message=_fit(j.why))
        stderr = j.tally.trouble.stderr if j.tally.trouble is not None else ()
        error.text = _fit("\n".join([*stderr, str(j.tally.last or "")]))
    ElementTree.SubElement(whole, "system-out").text = _fit(_said(j))
    for clause in j.clauses:
        case = _case(suite, j, clause, "0", of.get(clause, ()))
        taken, all_ = j.sides_of(clause)
        if clause in j.never_exercised and clause not in of:
            ElementTree.SubElement(case, "skipped", message="no call exercised it")
        else:
            calls = f"{j.tally.clauses[clause]} calls"
            both = f", {taken} of {all_} sides of its conditions taken" if all_ else "; it has no condition"
            ElementTree.SubElement(case, "system-out").text = calls + both
    return suite


def _case(
    suite: ElementTree.Element, j: SubsystemVerdict, name: str, seconds: str, rejections: Sequence[int]
) -> ElementTree.Element:
    """A test case, with its rejections, by their numbers, as one failure."""
    case = ElementTree.SubElement(
        suite, "testcase", classname=f"kafkaspec.judge.{j.job.subsystem}", name=name, time=seconds
    )
    if rejections:
        first = j.rejections[rejections[0]]
        what = f"{first.operation}: {first.verdict.sentence or first.shape}"
        failure = ElementTree.SubElement(case, "failure", type=first.clause or "rejected", message=_fit(what))
        failure.text = _fit(
            "\n".join(
                f"{j.rejections[n].breaks}\n{j.rejections[n].history}\nto see it again: {_again(j, n)}\n".lstrip()
                for n in rejections
            )
        )
    return case


def _again(j: SubsystemVerdict, n: int) -> str:
    return j.replay(j.kept_in(n)) if j.kept_in(n) else j.again


def _said(j: SubsystemVerdict) -> str:
    t = j.tally
    both, all_ = j.with_condition
    exercised, others = j.without_condition
    return (
        f"{t.histories} histories, {t.calls} calls; {both} of {all_} clauses decided both ways, and "
        f"{exercised} of {others} without a condition exercised; {j.coverage:.1f} % of the sides of conditions taken; "
        f"known deviations met: {t.known or 'none'}; not offered: {', '.join(j.not_offered) or 'none'}; "
        f"offered in part: {', '.join(j.in_part) or 'none'}"
    )


def _fit(text: str) -> str:
    return NO_XML.sub("\ufffd", text)
