"""The small managers of Kafka 4.3.0's controller, recorded together: what their records come to is what they show.

Each call of the recording wrote records; the metadata image replays them, and is compared with what the managers show,
configurations, features, producer ids, quotas, ACLs and credentials. A snapshot keeps the image, a revert puts it back.
What the managers answer, and why, is said by the subsystems of some of them, whose recordings are parts of this one.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.spec.common.metadata_schemas import DATA
from kafkaspec.spec.controller.metadata_image import Contents, Image, config_key, machine
from kafkaspec.spec.controller.records import MetadataRecord


def uuid(n: int) -> str:
    """In the place of the n-th id of the recording."""
    return urlsafe_b64encode(n.to_bytes(16, "big")).decode()[:22]


RECORDING = Path(__file__).parent.parent / "recordings" / "controller-managers.ndjson"
TEXT = re.sub(r'"uuid-(\d+)"', lambda m: f'"{uuid(int(m[1]))}"', RECORDING.read_text("utf-8"))
LINES = [orjson.loads(line) for line in TEXT.splitlines()]
TYPES = {m.name.upper(): n for n, m in DATA.items()}
RESOURCES = {"TOPIC": 2, "BROKER": 4}
ACL_RESOURCES = {2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID"}
PATTERNS, PERMISSIONS = {3: "LITERAL", 4: "PREFIXED"}, {2: "DENY", 3: "ALLOW"}
OPERATIONS = {2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE"}
MECHANISMS = {"SCRAM_SHA_256": 1, "SCRAM_SHA_512": 2}
Line = dict[str, Any]
Place = tuple[str | int, ...]


def contents(state: Line, ids: Mapping[str, str]) -> Contents:
    """What the managers show, as the image has it; `ids`: those of the ACLs, by their texts."""
    configs = {
        config_key(RESOURCES[resource.partition(":")[0]], resource.partition(":")[2], name): value
        for resource, of in state["configs"].items()
        for name, value in of.items()
    }
    scram = [
        s.removeprefix("ScramCredentialKey(username=").removesuffix(")").split(", mechanism=") for s in state["scram"]
    ]
    quotas = {
        f"{entity.strip('{}').replace(', ', ',')}/{key}": value
        for entity, of in state["quotas"].items()
        for key, value in of.items()
    }
    return Contents(
        features=dict(sorted(state["features"].items())),
        next_producer_id=state["nextProducerId"] or None,
        configs=dict(sorted(configs.items())),
        quotas=dict(sorted(quotas.items())),
        acls=tuple(sorted(ids.get(text, text) for text in state["acls"])),
        scram=tuple(sorted(f"{user}/{MECHANISMS.get(mechanism, mechanism)}" for user, mechanism in scram)),
    )


def replayed(image: Image, record: Line, offset: int) -> Image | None:
    """The image behind a record; None if it is no record of Kafka's, or is refused."""
    type = TYPES.get(record["type"].replace("_", ""))
    if type is None or not isinstance(record["version"], int):
        return None
    made = machine.apply(
        image, "replay", {"record": MetadataRecord(type, record["version"], record["data"]), "offset": offset}
    )
    return None if isinstance(made, Outside) or isinstance(made.result, Refused) else made.state


def binding(data: Line) -> str:
    """An ACL's record, as Kafka writes the ACL."""
    pattern = f"{ACL_RESOURCES.get(data['resourceType'])}, name={data['resourceName']}"
    pattern += f", patternType={PATTERNS.get(data['patternType'])}"
    entry = f"principal={data['principal']}, host={data['host']}, operation={OPERATIONS.get(data['operation'])}"
    entry += f", permissionType={PERMISSIONS.get(data['permissionType'])}"
    return f"(pattern=ResourcePattern(resourceType={pattern}), entry=({entry}))"


def is_asked(line: Line, data: Line, before: Contents) -> bool:
    """Whether a record says what the call asked for, as far as the image does not have it."""
    args = line["args"]
    match line["op"]:
        case "createAcls":
            return bool(binding(data) == args["binding"])
        case "generateNextProducerId":
            return (data["brokerId"], data["brokerEpoch"]) == (args["brokerId"], args["brokerEpoch"])
        case "alterCredentials":
            same = (data["name"], data["mechanism"]) == (args["user"], args["mechanism"])
            return same and bool(args["delete"] or data["iterations"] == args["iterations"])
        case "updateFeatures":
            return bool(data["name"] == args["feature"])
        case "incrementalAlterConfigs":
            type, _, name = args["resource"].partition(":")
            return (data["resourceType"], data["resourceName"], data["name"]) == (RESOURCES[type], name, args["key"])
        case "legacyAlterConfigs":
            type, _, name = args["resource"].partition(":")
            is_named = (
                data["name"] in args["configs"] or config_key(RESOURCES[type], name, data["name"]) in before.configs
            )
            return is_named and (data["resourceType"], data["resourceName"]) == (RESOURCES[type], name)
    return True


class Judge:
    """Follows the recording."""

    def __init__(self, level: int) -> None:
        first = {
            "type": "FEATURE_LEVEL_RECORD",
            "version": 0,
            "data": {"name": "metadata.version", "featureLevel": level},
        }
        image = replayed(Image(), first, 0)
        assert image is not None
        self.image = image
        self.kept: dict[int, Image] = {-1: image}
        self.offset = 101
        self.ids: dict[str, str] = {}

    def copy(self) -> Judge:
        other = Judge.__new__(Judge)
        other.__dict__.update(image=self.image, kept=dict(self.kept), offset=self.offset, ids=dict(self.ids))
        return other

    def takes(self, line: Line) -> bool:
        """Whether the line is right; the image is behind it then."""
        records = (line.get("result") or {}).get("records", [])
        if line["op"] == "snapshot":
            self.kept[line["args"]["epoch"]] = self.image
        elif line["op"] == "revertToSnapshot":
            self.image = self.kept[line["args"]["epoch"]]
            self.kept = {e: i for e, i in self.kept.items() if e <= line["args"]["epoch"]}
        elif records and line["result"]["firstOffset"] != self.offset:
            return False
        for record in records:
            image = replayed(self.image, record, self.offset)
            if image is None or not is_asked(line, record["data"], self.image.contents):
                return False
            self.image = image
            self.offset += 1
            if line["op"] == "createAcls":
                self.ids[line["args"]["binding"]] = record["data"]["id"]
        shown = contents(line["state"], self.ids)
        return shown == self.image.contents and line["state"]["snapshotEpochs"] == sorted(self.kept)


def leaves(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where a single value stands."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*place, key))
    else:
        yield place


def other(value: Any) -> Any:
    """Of its kind, and another."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str) and value.endswith("="):
        return ("B" if value[0] == "A" else "A") + value[1:]
    return value + "x" if isinstance(value, str) else 3 * (value or 0) + 1


def altered(line: Line, place: Place) -> Line:
    made = orjson.loads(orjson.dumps(line))
    inner = made
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = other(inner[place[-1]])
    return made  # type: ignore[no-any-return]


NOT_COMPARED = {
    "salt": "drawn by whoever asks",
    "storedKey": "made of a password, which the recording does not have",
    "serverKey": "made of a password, which the recording does not have",
}
"""Why a value may be another one."""


@pytest.mark.clause("IMG-8", "IMG-9", "IMG-10", "IMG-11", "IMG-12")
def test_the_image_is_what_the_managers_show() -> None:
    judge = Judge(30)
    assert [line["i"] for line in LINES if not judge.takes(line)] == []
    assert judge.offset > 101 + 60


def test_altered_copies_are_rejected() -> None:
    """Every value of every state and record, one at a time; what is accepted has a reason."""
    judge, tried, accepted = Judge(30), 0, set[str]()
    for line in LINES:
        compared = [("state",), ("result", "records")] + [("result", "firstOffset")] * bool(
            (line.get("result") or {}).get("records")
        )
        places = [p for p in leaves(line) if p[:1] in compared or p[:2] in compared]
        for place in places:
            tried += 1
            if judge.copy().takes(altered(line, place)):
                accepted.add(str(place[-1]))
        assert judge.takes(line)
    assert accepted == NOT_COMPARED.keys()
    assert tried > 2000
