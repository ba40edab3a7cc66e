"""What the judge rejects of codec and image is made small, whatever its arguments are."""

from __future__ import annotations

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.mutants.blame import asked, cited

FAULTS = {"drops", "keeps quotas"}


@pytest.mark.parametrize("name", ["records", "metadata_image"])
def test_a_faulty_implementation_is_cited(name: str) -> None:
    """A planted fault of each, of an operation that is given a record."""
    subsystem = find(name)
    some = [m for m in asked(subsystem) if m.name in FAULTS]
    assert {m.name for m in some} & FAULTS
    for mutant in some:
        found = cited(subsystem, mutant)
        assert {*found.cited} & {*found.stated}, found
