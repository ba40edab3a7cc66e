"""StorageFormat the directories of one node, killed at any moment and asked again.

Each directory gets its files one after the other: the first records, in the metadata directory of a dynamic quorum the
voters, and at last meta.properties, by which a directory counts as formatted. Whoever starts the node finds that some
directory lacks it, or all is there. Source: Formatter, MetaPropertiesEnsemble.Copier and KafkaRaftServer, Kafka 4.3.0.

What was simplified: files are written whole, and outlive whoever wrote them.
"""

from __future__ import annotations

from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Range, Size, Sort, action, initial, invariant, lemma, require, step, witness


class Directory(Sort):
    """A log directory."""


A = Size("A")
"""How often format is asked for at most."""
Attempt = Annotated[int, Range(0, A)]
"""By its number; 0: none. The voters of an attempt have an id for the metadata directory that is its own."""


class StorageFormat(Model):
    """`metadata` is the metadata directory, `dynamic` whether the node is given voters. Of each directory, by which
    attempt its files are; `working` is the directory that is being formatted."""

    metadata: Directory
    dynamic: bool
    attempts: Attempt
    running: bool
    working: Directory | None
    records: dict[Directory, Attempt]
    voters: Attempt
    properties: dict[Directory, Attempt]
    started: bool

    @initial
    def empty(s, d: Directory, dynamic: bool) -> None:
        s.next.metadata = d
        s.next.dynamic = dynamic

    @action("BST-3", "BST-16", who="operator")
    def ask(s, ignore: bool) -> None:
        """Refused if a directory is formatted, unless such are ignored."""
        require(not s.running, not s.started, s.attempts < A)
        require(ignore or all(s.properties[d] == 0 for d in Directory))
        require(any(s.properties[d] == 0 for d in Directory))
        s.next.attempts = s.attempts + 1
        s.next.running = True

    @action("BST-17", "BST-5", who="tool")
    def write_records(s, d: Directory) -> None:
        require(s.running, s.working is None, s.properties[d] == 0)
        s.next.working = d
        s.next.records[d] = s.attempts

    @action("BST-13", "BST-15", who="tool")
    def write_voters(s) -> None:
        require(s.running, s.working == s.metadata, s.dynamic, s.voters != s.attempts)
        s.next.voters = s.attempts

    @action("BST-1", "BST-14", "BST-4", who="tool")
    def write_properties(s, d: Directory) -> None:
        require(s.running, s.working == d, d != s.metadata or not s.dynamic or s.voters == s.attempts)
        s.next.properties[d] = s.attempts
        s.next.working = None

    @action("BST-1", who="tool")
    def end(s) -> None:
        require(s.running, all(s.properties[d] > 0 for d in Directory))
        s.next.running = False

    @action("BST-1", who="nobody")
    def kill(s) -> None:
        require(s.running)
        s.next.running = False
        s.next.working = None

    @action("BST-2", "BST-18", who="operator")
    def start(s) -> None:
        """The node is started: refused unless every directory is formatted."""
        require(not s.running, not s.started, all(s.properties[d] > 0 for d in Directory))
        s.next.started = True

    @invariant("BST-17", "BST-5", "BST-18")
    def what_is_formatted_has_its_records(s, d: Directory) -> bool:
        """Of the same attempt."""
        return s.properties[d] == 0 or s.records[d] == s.properties[d]

    @invariant("BST-13", "BST-14", "BST-15")
    def the_voters_have_the_id_of_the_metadata_directory(s) -> bool:
        return s.properties[s.metadata] == 0 or not s.dynamic or s.voters == s.properties[s.metadata]

    @invariant("BST-13")
    def without_voters_there_are_none(s) -> bool:
        return s.dynamic or s.voters == 0

    @invariant("BST-2", "BST-1")
    def a_node_starts_whole(s, d: Directory) -> bool:
        return not s.started or (s.properties[d] > 0 and not s.running)

    @step("BST-3", "BST-4", "BST-16")
    def what_is_formatted_stays(s, d: Directory) -> bool:
        return s.properties[d] == 0 or (s.next.properties[d] == s.properties[d] and s.next.records[d] == s.records[d])

    @step("BST-1")
    def one_directory_after_the_other(s, d: Directory, e: Directory) -> bool:
        return d == e or s.next.records[d] == s.records[d] or s.next.records[e] == s.records[e]

    @step("BST-1")
    def a_directory_is_done_before_the_next(s) -> bool:
        return s.working is None or s.next.working is None or s.next.working == s.working

    @step("BST-3")
    def nothing_is_begun_where_all_is_formatted(s) -> bool:
        return s.next.attempts == s.attempts or any(s.properties[d] == 0 for d in Directory)

    @step("BST-16")
    def nothing_is_written_by_nobody(s, d: Directory) -> bool:
        return s.running or (
            s.next.records[d] == s.records[d] and s.next.properties[d] == s.properties[d] and s.next.voters == s.voters
        )

    @lemma()
    def what_is_worked_on_has_records_of_this_attempt(s) -> bool:
        return s.working is None or (s.running and s.records[s.working] == s.attempts and s.properties[s.working] == 0)

    @lemma()
    def nothing_is_of_a_later_attempt(s, d: Directory) -> bool:
        return s.records[d] <= s.attempts and s.properties[d] <= s.attempts and s.voters <= s.attempts

    @lemma()
    def who_runs_was_asked(s) -> bool:
        return not s.running or s.attempts > 0

    @witness
    def formatted_in_part(s) -> bool:
        """Whom nobody helps but one who ignores what is formatted."""
        return (
            not s.running
            and any(s.properties[d] > 0 for d in Directory)
            and any(s.properties[d] == 0 for d in Directory)
        )

    @witness
    def directories_of_two_attempts(s) -> bool:
        """What each was asked for may differ, and the node starts."""
        return s.started and any(s.properties[d] != s.properties[e] for d in Directory for e in Directory)

    @witness
    def voters_of_an_attempt_that_was_killed(s) -> bool:
        return not s.running and s.voters > 0 and s.properties[s.metadata] == 0

    @witness
    def started_with_voters(s) -> bool:
        return s.started and s.dynamic

    @witness
    def started_at_once(s) -> bool:
        return s.started and s.attempts == 1 and not s.dynamic


MODELS = [
    Expectation(StorageFormat, sizes={"Directory": 2, "A": 3}, distinct=800, generated=1046, depth=13, deadlock=True)
]
