"""Faults of formatting storage, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kafkaspec.contract.machine import Refused, Step
from kafkaspec.impl.controller import bootstrap as impl
from kafkaspec.impl.controller.bootstrap import METADATA, Arguments, FormatResult, Formatter, Node, Voter
from kafkaspec.impl.controller.bootstrap_driver import Driver
from kafkaspec.impl.controller.records import Record
from kafkaspec.impl.management import meta_properties
from kafkaspec.impl.management.meta_properties import Ensemble, MetaProperties
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.controller import bootstrap as model
from kafkaspec.models.controller.bootstrap import A, Directory
from kafkaspec.mutants.mutant import Mutant, driver_with, of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.controller import bootstrap as spec
from kafkaspec.spec.controller.bootstrap import Outcome, Properties, Storage


def _of(make: type[Formatter]) -> Callable[[], Driver]:
    """What makes a driver of a faulty formatter."""
    return driver_with(Driver, make=make)


class OneId(Formatter):
    """All directories get one id."""

    def directory_id(self, taken: Any) -> str:
        return next((id for id in taken if id is not None), None) or super().directory_id(())


class Overlooks(Formatter):
    """Another node's directory is taken."""

    def check(self, found: Ensemble, cluster_id: str, node_id: int) -> None:
        node = next((p.node_id for p in found.valid.values() if p.node_id is not None), node_id)
        super().check(found, cluster_id, node)


class TakesTheCluster(Formatter):
    """The cluster's id is that of the directories that there are."""

    def check(self, found: Ensemble, cluster_id: str, node_id: int) -> None:
        cluster = next((p.cluster_id for p in found.valid.values() if p.cluster_id is not None), cluster_id)
        super().check(found, cluster, node_id)


class Reserved(Formatter):
    """A reserved directory id is overlooked."""

    def check(self, found: Ensemble, cluster_id: str, node_id: int) -> None:
        try:
            super().check(found, cluster_id, node_id)
        except impl.DisagreementError as e:
            if e.message is None or not e.message.startswith("Invalid reserved"):
                raise


class FormatsAgain(Formatter):
    """What is formatted is left, whether or not it was asked for."""

    def ensemble(self, node: Node, asked: Arguments) -> Ensemble:
        return super().ensemble(node, replace(asked, ignore_formatted=True))


class FormatsOver(Formatter):
    """What was to be ignored is formatted again."""

    def ensemble(self, node: Node, asked: Arguments) -> Ensemble:
        found = super().ensemble(node, asked)
        return Ensemble({}, sorted([*found.empty, *found.valid]), found.failed)


class FormatsTheFailed(Formatter):
    """What cannot be read is formatted."""

    def ensemble(self, node: Node, asked: Arguments) -> Ensemble:
        found = super().ensemble(node, asked)
        return Ensemble(found.valid, sorted([*found.empty, *found.failed]), [])


class StopsAtTheFailed(Formatter):
    """A metadata directory that cannot be read ends it."""

    def ensemble(self, node: Node, asked: Arguments) -> Ensemble:
        found = super().ensemble(node, asked)
        if node.metadata_directory in found.failed:
            raise impl.NoDirectoryError("No available log directories to format.")
        return found


class ZeroLevels(Formatter):
    """Levels of 0 have records too."""

    def first_records(self, release: int, levels: Mapping[str, int], scram: Sequence[str]) -> list[Record]:
        first = super().first_records(release, levels, scram)
        names = {r.fields["name"] for r in first if impl.is_level(r)}
        return [*first, *(impl.level_record(f, 0) for f in sorted(impl.FEATURES) if f not in names and f != impl.KRAFT)]


class KraftRecord(Formatter):
    """kraft.version has a record among the others."""

    def first_records(self, release: int, levels: Mapping[str, int], scram: Sequence[str]) -> list[Record]:
        first = super().first_records(release, levels, scram)
        return [*first, impl.level_record(impl.KRAFT, levels[impl.KRAFT])] if levels[impl.KRAFT] else first


class WithoutScram(Formatter):
    """Credentials that were asked for have no records."""

    def first_records(self, release: int, levels: Mapping[str, int], scram: Sequence[str]) -> list[Record]:
        super().first_records(release, levels, scram)
        return super().first_records(release, levels, ())


class ScramFirst(Formatter):
    """The credentials come before the levels."""

    def first_records(self, release: int, levels: Mapping[str, int], scram: Sequence[str]) -> list[Record]:
        return sorted(super().first_records(release, levels, scram), key=impl.is_level)


class ScramAtAnyTime(Formatter):
    """Whatever the metadata.version."""

    def first_records(self, release: int, levels: Mapping[str, int], scram: Sequence[str]) -> list[Record]:
        first = super().first_records(max(release, impl.SCRAM_SINCE), levels, scram)
        return [impl.level_record(METADATA, release), *first[1:]]


class OldestDefault(Formatter):
    """Without a release, the newest metadata.version that there is."""

    def release(self, named: int | None, level: int | None, unstable: bool) -> int:
        return super().release(
            impl.NEWEST if named is level is None else named, level, named is level is None or unstable
        )


class LevelWins(Formatter):
    """A level for metadata.version wins over a release."""

    def release(self, named: int | None, level: int | None, unstable: bool) -> int:
        return super().release(named if level is None else None, level, unstable)


class Unstable(Formatter):
    """A level that is not stable may be asked for as such."""

    def release(self, named: int | None, level: int | None, unstable: bool) -> int:
        return super().release(named, level, unstable or level is not None)


class LatestLevels(Formatter):
    """What is not asked for has its highest level, whatever the metadata.version."""

    def levels(self, asked: Mapping[str, int], release: int, dynamic: bool) -> dict[str, int]:
        levels = super().levels(asked, release, dynamic)
        more = {"group.version": 1} if release >= 20 else {}
        return {**levels, **{f: level for f, level in more.items() if f not in asked}}


class AnyFeature(Formatter):
    """What is not known is left out."""

    def levels(self, asked: Mapping[str, int], release: int, dynamic: bool) -> dict[str, int]:
        known = {f: level for f, level in asked.items() if f in impl.FEATURES or f == METADATA}
        return super().levels(known, release, dynamic)


class NeedsNothing(Formatter):
    """A feature's needs are not looked at."""

    def levels(self, asked: Mapping[str, int], release: int, dynamic: bool) -> dict[str, int]:
        return (
            {**super().levels(asked, max(release, 23), dynamic), METADATA: release}
            if release < 22
            else super().levels(asked, release, dynamic)
        )


class DynamicByVoters(Formatter):
    """kraft.version is 1 only where there are voters to write."""

    def kraft(self, level: int | None, dynamic: bool) -> int:
        return 0 if level == 0 else super().kraft(level, dynamic)


class AnyKraft(Formatter):
    """Of a static quorum any kraft.version may be asked for."""

    def kraft(self, level: int | None, dynamic: bool) -> int:
        return level if level is not None and not dynamic else super().kraft(level, dynamic)


class Both(Formatter):
    """A static quorum may be given voters."""

    def check_quorum(self, node: Node, flag: str) -> None:
        if not node.static_voters:
            super().check_quorum(node, flag)


class AloneAnywhere(Formatter):
    """A broker may be a quorum by itself."""

    def check_quorum(self, node: Node, flag: str) -> None:
        super().check_quorum(replace(node, controls=node.controls or flag == "standalone"), flag)


class NoVotersSaid(Formatter):
    """A controller need not say who the voters are."""

    def check_quorum(self, node: Node, flag: str) -> None:
        super().check_quorum(node, "noInitial" if flag == "none" else flag)


class VotersForMembers(Formatter):
    """A node that is no voter gets no voters."""

    def kind(self, node: Node, directory: str, voters: Sequence[Voter] | None) -> str:
        found = super().kind(node, directory, voters)
        return "metadata directory" if found == "dynamic metadata directory" else found


class VotersEverywhere(Formatter):
    """Each directory gets the voters."""

    def kind(self, node: Node, directory: str, voters: Sequence[Voter] | None) -> str:
        return super().kind(node, node.metadata_directory if voters else directory, voters)


class AnotherId(Formatter):
    """A voter's metadata directory gets an id that the voters do not know."""

    def write(
        self, node: Node, cluster_id: str, kinds: Mapping[str, str], first: Sequence[Record], kraft: int,
        voters: Sequence[Voter] | None, ensemble: Ensemble,
    ) -> None:  # fmt: skip
        super().write(node, cluster_id, kinds, first, kraft, voters, ensemble)
        where = node.metadata_directory
        if voters and where in kinds and any(v.node_id == node.node_id for v in voters):
            id = self.directory_id(())
            meta_properties.write(self.disk, where, MetaProperties(1, cluster_id, node.node_id, id))


class MetadataAlone(Formatter):
    """Data directories get no first records, as the chapter has it."""

    def write(
        self, node: Node, cluster_id: str, kinds: Mapping[str, str], first: Sequence[Record], kraft: int,
        voters: Sequence[Voter] | None, ensemble: Ensemble,
    ) -> None:  # fmt: skip
        before = {d: self.disk.exists(f"{d}/{impl.BOOTSTRAP}") for d in kinds}
        super().write(node, cluster_id, kinds, first, kraft, voters, ensemble)
        for d in kinds:
            if d != node.metadata_directory and not before[d]:
                self.disk.remove(f"{d}/{impl.BOOTSTRAP}")


class WritesFirst(Formatter):
    """The records are there before it is known that all fits."""

    def ensemble(self, node: Node, asked: Arguments) -> Ensemble:
        try:
            return super().ensemble(node, asked)
        except impl.FormattedError:
            for d in Ensemble.load(self.disk, node.all_directories).empty:
                self.disk.write(f"{d}/{impl.BOOTSTRAP}", impl.bootstrap_file([], lambda: 0))
            raise


class SaysNothing(Formatter):
    """What was done is not told of the metadata directory."""

    def run(self, node: Node, asked: Arguments) -> FormatResult:
        done = super().run(node, asked)
        return replace(done, kinds={d: k for d, k in done.kinds.items() if k != "metadata directory"})


# ---- faults of functions


def _in_place(name: str, faulty: Callable[[Any], Any]) -> Callable[[], Driver]:
    """A driver during whose calls a function of the module is a faulty one."""

    class Patched(Driver):
        def apply(self, op: str, arguments: Mapping[str, Any]) -> Any:
            sound = getattr(impl, name)
            setattr(impl, name, faulty(sound))
            try:
                return super().apply(op, arguments)
            finally:
                setattr(impl, name, sound)

    return Patched


def _oldest_first(sound: Any) -> Any:
    """Of two records of metadata.version the first counts."""

    def first_records(*arguments: Any) -> Any:
        found = sound(*arguments)
        said = [r.fields["featureLevel"] for r in found.records if impl.is_level(r) and r.fields["name"] == METADATA]
        return replace(found, version=said[0])

    return first_records


def _without_version(sound: Any) -> Any:
    """A file that says no metadata.version is taken for the newest stable one."""

    def first_records(*arguments: Any) -> Any:
        try:
            return sound(*arguments)
        except impl.NoVersionError:
            return impl.First(impl.STABLE, [], False)

    return first_records


def _with_levels(sound: Any) -> Any:
    """Without a file, the features have the levels of a new cluster."""

    def first_records(*arguments: Any) -> Any:
        found = sound(*arguments)
        more = [impl.level_record("group.version", 1)] if found.by_default else []
        return replace(found, records=[*found.records, *more])

    return first_records


def _without_scram(sound: Any) -> Any:
    """Only levels are read."""

    def first_records(*arguments: Any) -> Any:
        found = sound(*arguments)
        return replace(found, records=[r for r in found.records if impl.is_level(r)])

    return first_records


def _first_of_two(sound: Any) -> Any:
    """Two voters of one id: the last counts."""

    def initial_voters(text: str) -> Any:
        parts = {impl.voter(p).node_id: p for p in impl.trimmed(text).split(",") if p}
        return sound(",".join(parts.values()))

    return initial_voters


def _reserved_voter(sound: Any) -> Any:
    """A voter with a reserved directory id is refused."""

    def initial_voters(text: str) -> Any:
        found = sound(text)
        if any(meta_properties.is_reserved(v.directory_id) for v in found):
            raise impl.VotersError("Failed to parse directory ID in dynamic voter string.")
        return found

    return initial_voters


def _both_passwords(sound: Any) -> Any:
    """A salted password beside a password is refused."""

    def credential(text: str, salt: Any) -> Any:
        found = sound(text, salt)
        if "saltedpassword=" in text and ",password=" in text:
            raise impl.ScramTextError("Unknown SCRAM configurations: saltedpassword")
        return found

    return credential


def _keys_swapped(sound: Any) -> Any:
    """The server key stands in the place of the stored key."""

    def credential(text: str, salt: Any) -> Any:
        found = sound(text, salt)
        f = found.fields
        return replace(found, fields={**f, "storedKey": f["serverKey"], "serverKey": f["storedKey"]})

    return credential


def _any_iterations(sound: Any) -> Any:
    """One iteration less than the fewest is taken."""

    def credential(text: str, salt: Any) -> Any:
        return sound(text.replace("iterations=4095", "iterations=4096"), salt)

    return credential


def _level_of_the_first(sound: Any) -> Any:
    """A level is what stands before a second equals sign."""
    return lambda text: sound("=".join(text.split("=")[:2]))


def _any_line(sound: Any) -> Any:
    """A release line stands for its first metadata.version."""

    def release_level(text: str, unstable: bool) -> int:
        level: int = sound(text, unstable)
        return level if "-" in text else impl.VERSIONS[f"{'.'.join(text.split('.')[:2])}-IV{impl.LINES[text[:3]][0]}"]

    return release_level


# ---- faults of the spec


def _spec(name: str, clauses: str, what: str, change: Callable[[Storage, Step[Storage, Outcome], Any], Any]) -> Mutant:
    body = spec.machine.find("format").body

    def faulty(state: Storage, **arguments: Any) -> Any:
        return change(state, body(state, **arguments), arguments)

    return of_spec(name, clauses, what, lambda: with_fault(spec.machine, "format", faulty))


def _moved(before: Storage, step: Step[Storage, Outcome], of: Any) -> Any:
    if isinstance(step.result, Refused):
        return Step(replace(before, d0=replace(before.d0, bootstrap=())), step.result)
    return step


def _failed_too(before: Storage, step: Step[Storage, Outcome], of: Any) -> Any:
    if isinstance(step.result, Refused) or not step.result.ignored:
        return step
    (name, *_) = step.result.ignored
    made = replace(before.of(name), properties=Properties(1, of["cluster_id"], of["node_id"], None))
    return Step(replace(step.state, **{name: made}), step.result)


def _one_left(before: Storage, step: Step[Storage, Outcome], of: Any) -> Any:
    if isinstance(step.result, Refused) or not step.result.formatted:
        return step
    name = max(step.result.formatted)
    return Step(replace(step.state, **{name: before.of(name)}), step.result)


SPEC = [
    _spec("something is written (spec)", "BST-16", "though format is refused", _moved),
    _spec("what cannot be read is written over (spec)", "BST-4", "", _failed_too),
    _spec("one is left out (spec)", "BST-1", "the last directory gets no meta.properties", _one_left),
]


# ---- faults of the model


class PropertiesFirst(model.StorageFormat):
    """meta.properties comes before the voters."""

    @action("BST-1", "BST-14", "BST-4", who="tool")
    def write_properties(s, d: Directory) -> None:
        require(s.running, s.working == d)
        s.next.properties[d] = s.attempts
        s.next.working = None


class KeepsVoters(model.StorageFormat):
    """Voters of an attempt before are kept, with the id that they have."""

    @action("BST-13", "BST-15", who="tool")
    def write_voters(s) -> None:
        require(s.running, s.working == s.metadata, s.dynamic, s.voters == 0)
        s.next.voters = s.attempts

    @action("BST-1", "BST-14", "BST-4", who="tool")
    def write_properties(s, d: Directory) -> None:
        require(s.running, s.working == d, d != s.metadata or not s.dynamic or s.voters > 0)
        s.next.properties[d] = s.attempts
        s.next.working = None


class Over(model.StorageFormat):
    """What is formatted is formatted again."""

    @action("BST-17", "BST-5", who="tool")
    def write_records(s, d: Directory) -> None:
        require(s.running, s.working is None)
        s.next.working = d
        s.next.records[d] = s.attempts


class StartsHalf(model.StorageFormat):
    """A node starts when one directory is formatted."""

    @action("BST-2", "BST-18", who="operator")
    def start(s) -> None:
        require(not s.running, not s.started, any(s.properties[d] > 0 for d in Directory))
        s.next.started = True


class AsksAlways(model.StorageFormat):
    """Format is never refused."""

    @action("BST-3", "BST-16", who="operator")
    def ask(s, ignore: bool) -> None:
        require(not s.running, s.attempts < A)
        s.next.attempts = s.attempts + 1
        s.next.running = True


def _loaded(of: type[model.StorageFormat]) -> Callable[[], LoadedModel]:
    return lambda: load(of)


IMPL: Sequence[tuple[str, str, str, type[Formatter]]] = (
    ("one id", "BST-1", "for all directories", OneId),
    ("another node's", "BST-2", "directory is taken", Overlooks),
    ("another cluster's", "BST-2", "directory is taken", TakesTheCluster),
    ("reserved", "BST-2", "a directory id is overlooked", Reserved),
    ("formatted again", "BST-3", "without being asked to ignore it", FormatsAgain),
    ("formatted over", "BST-3", "what was to be ignored", FormatsOver),
    ("the failed too", "BST-4", "is formatted", FormatsTheFailed),
    ("the failed one ends it", "BST-4", "if it is the metadata directory", StopsAtTheFailed),
    ("levels of 0", "BST-5", "have records", ZeroLevels),
    ("kraft.version has a record", "BST-5", "like the others", KraftRecord),
    ("SCRAM first", "BST-5", "before the levels", ScramFirst),
    ("SCRAM at any time", "BST-10", "whatever the metadata.version", ScramAtAnyTime),
    ("the newest", "BST-7", "not the newest stable metadata.version", OldestDefault),
    ("the level wins", "BST-7", "over the release", LevelWins),
    ("unstable", "BST-7", "may be asked for as a level", Unstable),
    ("the highest levels", "BST-8", "for an older metadata.version", LatestLevels),
    ("any feature", "BST-9", "is left out", AnyFeature),
    ("needs nothing", "BST-9", "what a level needs is not looked at", NeedsNothing),
    ("kraft.version 0", "BST-12", "of a dynamic quorum", DynamicByVoters),
    ("any kraft.version", "BST-12", "of a static quorum", AnyKraft),
    ("both quorums", "BST-11", "a static one with voters", Both),
    ("alone anywhere", "BST-11", "also a broker", AloneAnywhere),
    ("no voters said", "BST-11", "by a controller", NoVotersSaid),
    ("voters for members", "BST-13 BST-15", "for no other node", VotersForMembers),
    ("voters everywhere", "BST-13 BST-15", "in each directory", VotersEverywhere),
    ("another id", "BST-14", "than the voters know", AnotherId),
    ("the metadata directory alone", "BST-17", "has first records", MetadataAlone),
    ("written first", "BST-16", "though it is refused", WritesFirst),
    ("says nothing", "BST-15", "of the metadata directory", SaysNothing),
)
FUNCTIONS: Sequence[tuple[str, str, str, str, Callable[[Any], Any]]] = (
    ("the first version", "BST-19", "of two counts", "first_records", _oldest_first),
    ("no version", "BST-19", "is the newest stable one", "first_records", _without_version),
    ("levels by default", "BST-20", "without a file", "first_records", _with_levels),
    ("levels alone", "BST-18", "are read", "first_records", _without_scram),
    ("the last of two voters", "BST-21", "of one id counts", "initial_voters", _first_of_two),
    ("no reserved voter", "BST-21", "is taken", "initial_voters", _reserved_voter),
    ("two passwords", "BST-22", "are refused", "credential", _both_passwords),
    ("keys swapped", "BST-23", "stored and server key", "credential", _keys_swapped),
    ("fewer iterations", "BST-23", "by one", "credential", _any_iterations),
    ("a second equals sign", "BST-6", "ends the level", "feature_level", _level_of_the_first),
    ("the first of a line", "BST-24", "is what a release stands for", "release_level", _any_line),
)

MUTANTS = [
    *SPEC,
    *(of_impl(name, clauses, what, _of(make)) for name, clauses, what, make in IMPL),
    *(of_impl(name, clauses, what, _in_place(f, fault)) for name, clauses, what, f, fault in FUNCTIONS),
    of_impl("no credentials", "BST-5", "though they are asked for", _of(WithoutScram), "KAFKA-17636"),
    of_model("meta.properties first (model)", "BST-13 BST-14", "before the voters", _loaded(PropertiesFirst)),
    of_model("voters are kept (model)", "BST-14", "of an attempt that was killed", _loaded(KeepsVoters)),
    of_model("formatted over (model)", "BST-3 BST-17", "what is formatted", _loaded(Over)),
    of_model("starts half (model)", "BST-2 BST-18", "with one directory formatted", _loaded(StartsHalf)),
    of_model("asks always (model)", "BST-1 BST-16", "also while the node runs", _loaded(AsksAlways)),
]
SURVIVORS: dict[str, str] = {}
"""Generated faults of the model that nobody can notice, and why."""


# ---- what shows rarely
class ChecksTwo(Formatter):
    """A third directory may say anything."""

    def check(self, found: Ensemble, cluster_id: str, node_id: int) -> None:
        super().check(replace(found, valid=dict(sorted(found.valid.items())[:2])), cluster_id, node_id)


class TwoOfOneId(Formatter):
    """Two directories may have the same id."""

    def check(self, found: Ensemble, cluster_id: str, node_id: int) -> None:
        try:
            super().check(found, cluster_id, node_id)
        except impl.DisagreementError as e:
            if e.message is not None:
                raise


class TellsOneFailed(Formatter):
    """Of the directories that cannot be read."""

    def run(self, node: Node, asked: Arguments) -> FormatResult:
        done = super().run(node, asked)
        return replace(done, ignored=[*done.ignored][:1])


class IdOfTheFirstVoter(Formatter):
    """It is that of the metadata directory, whichever voter the node is."""

    def voters(self, node: Node, asked: Arguments) -> list[Voter] | None:
        found = super().voters(node, asked)
        self.first_id = found[0].directory_id if found else None
        return found

    def write(
        self, node: Node, cluster_id: str, kinds: Mapping[str, str], first: Sequence[Record], kraft: int,
        voters: Sequence[Voter] | None, ensemble: Ensemble,
    ) -> None:  # fmt: skip
        super().write(node, cluster_id, kinds, first, kraft, voters, ensemble)
        where = node.metadata_directory
        if voters and self.first_id and where in kinds and any(v.node_id == node.node_id for v in voters):
            meta_properties.write(self.disk, where, MetaProperties(1, cluster_id, node.node_id, self.first_id))


class FirstOfTwoLevels(Formatter):
    """Of two levels for one feature the first counts."""

    def run(self, node: Node, asked: Arguments) -> FormatResult:
        if len(asked.features) == 2 and len({f.partition("=")[0] for f in asked.features}) == 1:
            asked = replace(asked, features=[*asked.features][::-1])
        return super().run(node, asked)


class NeedsFrom22(Formatter):
    """One metadata.version less is enough."""

    def levels(self, asked: Mapping[str, int], release: int, dynamic: bool) -> dict[str, int]:
        return {**super().levels(asked, release + (release == 22), dynamic), METADATA: release}


class DefaultsFrom24(Formatter):
    """A feature has its level of a new cluster one metadata.version too early."""

    def levels(self, asked: Mapping[str, int], release: int, dynamic: bool) -> dict[str, int]:
        levels = super().levels(asked, release, dynamic)
        early = {f: x.highest for f, x in impl.FEATURES.items() if x.since == release + 1 and f != impl.KRAFT}
        return {**levels, **{f: level for f, level in early.items() if f not in asked}}


def _host_as_said(sound: Any) -> Any:
    return str


def _no_port_0(sound: Any) -> Any:
    def voter(text: str) -> Any:
        found = sound(text)
        if not found.port:
            raise impl.VotersError(f"Invalid port 0 {impl.VOTER}")
        return found

    return voter


def _without_padding(sound: Any) -> Any:
    """An id with its two equals signs is none."""
    return lambda text: None if text.endswith("==") else sound(text)


def _of_64_bits(sound: Any) -> Any:
    def number(text: str, bits: int) -> int | None:
        found: int | None = sound(text, bits)
        return int(text) if found is None and bits == 32 and text.isdigit() else found

    return number


def _without_a_sign(sound: Any) -> Any:
    return lambda text, bits: None if text.startswith("+") else sound(text, bits)


def _no_version_below_0(sound: Any) -> Any:
    """A file that says a negative metadata.version is taken for the newest stable one."""

    def first_records(*arguments: Any) -> Any:
        found = sound(*arguments)
        return found if found.version >= 0 else replace(found, version=impl.STABLE)

    return first_records


def _no_salt(sound: Any) -> Any:
    """A salt that is empty is drawn."""
    return lambda text, salt: sound(text.replace(",salt=,", ",").replace(",salt=]", "]"), salt)


def _first_name(sound: Any) -> Any:
    """Of two names the first counts."""

    def credential(text: str, salt: Any) -> Any:
        found = sound(text, salt)
        first, *more = [part[5:] for part in text.partition("[")[2].split(",") if part.startswith("name=")]
        return replace(found, fields={**found.fields, "name": first}) if more else found

    return credential


RARE: list[Mutant] = [
    of_impl("two are checked", "BST-2", "a third directory may be another node's", _of(ChecksTwo)),
    of_impl("two of one id", "BST-2", "are taken", _of(TwoOfOneId)),
    of_impl("one failed", "BST-4", "of several is told", _of(TellsOneFailed)),
    of_impl("the first voter's id", "BST-14", "whoever the node is", _of(IdOfTheFirstVoter)),
    of_impl("the first of two levels", "BST-6", "counts", _of(FirstOfTwoLevels)),
    of_impl("needs from 22", "BST-9", "one metadata.version less is enough", _of(NeedsFrom22)),
    of_impl("defaults too early", "BST-8", "by one metadata.version", _of(DefaultsFrom24)),
    of_impl("hosts as said", "BST-13", "an address of IPv6 is not written out", _in_place("full_host", _host_as_said)),
    of_impl("no port 0", "BST-21", "is taken", _in_place("voter", _no_port_0)),
    of_impl("no equals signs", "BST-21", "behind an id", _in_place("id_bytes", _without_padding)),
    of_impl("numbers of 64 bits", "BST-21 BST-22", "are taken", _in_place("parse_integer", _of_64_bits)),
    of_impl("no plus sign", "BST-6", "before a level", _in_place("parse_integer", _without_a_sign)),
    of_impl("no version below 0", "BST-19", "is read", _in_place("first_records", _no_version_below_0)),
    of_impl("no empty salt", "BST-22 BST-23", "one is drawn", _in_place("credential", _no_salt)),
    of_impl("the first of two names", "BST-22", "counts", _in_place("credential", _first_name)),
]
"""Those that show with several directories, at the end of a range, or with one text of many."""

MUTANTS += RARE
