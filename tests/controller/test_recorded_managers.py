"""The small managers of Kafka 4.3.0's controller, recorded together: what their records come to is what they show.

Each call of the recording wrote records; the metadata image replays them, and is compared with what the managers show,
configurations, features, producer ids, quotas, ACLs and credentials. A snapshot keeps the image, a revert puts it back.
What quotas, ACLs and credentials answer is compared with the rules of their managers, which stand here; what the others
answer is said by the subsystems whose recordings are parts of this one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.spec.common.metadata_schemas import DATA
from kafkaspec.spec.controller.metadata_image import Contents, Image, acl_said, config_key, machine, quota_key
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
HASHES = {1: "sha256", 2: "sha512"}
SALT, SALTED_PASSWORD = b"\1\2", b"\3\4"
"""What every request for a credential had. The salted password is in no record; it is the one that the keys are of."""
Line = dict[str, Any]
Place = tuple[str | int, ...]


def contents(state: Line, written: Mapping[str, Line]) -> Contents:
    """What the managers show, as the image has it; `written`: the records of the ACLs, by their texts."""
    acls = {r["id"]: acl_said(r) for text in state["acls"] if (r := written.get(text, {"id": text}))}
    configs = {
        config_key(RESOURCES[resource.partition(":")[0]], resource.partition(":")[2], name): value
        for resource, of in state["configs"].items()
        for name, value in of.items()
    }
    scram = [
        s.removeprefix("ScramCredentialKey(username=").removesuffix(")").split(", mechanism=") for s in state["scram"]
    ]
    quotas = {
        quota_key([part.split("=") for part in entity.strip("{}").split(", ")], key): value
        for entity, of in state["quotas"].items()
        for key, value in of.items()
    }
    return Contents(
        features=dict(sorted(state["features"].items())),
        next_producer_id=state["nextProducerId"] or None,
        configs=dict(sorted(configs.items())),
        quotas=dict(sorted(quotas.items())),
        acls=dict(sorted(acls.items())),
        removable=tuple(sorted(acls.values())),
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


def credential(args: Line) -> Line:
    """The record of a credential: its keys are made of the salted password as RFC 5802, section 3, says."""
    algorithm = HASHES[args["mechanism"]]
    client, server = (hmac.digest(SALTED_PASSWORD, of, algorithm) for of in (b"Client Key", b"Server Key"))
    of = {"salt": SALT, "storedKey": hashlib.new(algorithm, client).digest(), "serverKey": server}
    kept = {"name": args["user"], "mechanism": args["mechanism"], "iterations": args["iterations"]}
    return kept | {name: b64encode(value).decode() for name, value in of.items()}


NONE = {"error": "NONE", "message": None}
LIMITS = {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
"""The keys of users and clients; that of addresses is another."""


def quota_answer(args: Line) -> Line:
    """ClientQuotaControlManager.alterClientQuotaEntity, of what the recording asks."""
    entity, key, value = args["entity"], args["key"], args["value"]
    unknown = [type for type in entity if type not in ("user", "client-id", "ip")]
    keys = {"connection_creation_rate"} if "ip" in entity else LIMITS
    message = None
    if unknown:
        message = f"Unhandled client quota entity type: {unknown[0]}"
    elif not entity:
        message = "Invalid empty client quota entity"
    elif " " in entity.get("ip", ""):
        message = f"{entity['ip']} is not a valid IP or resolvable host."
    elif value is not None and key not in keys:
        message = f"Invalid configuration key {key}"
    elif value is not None and value <= 0:
        message = f"Quota {key} must be greater than 0"
    return {"error": "INVALID_REQUEST", "message": message} if message else NONE


def credential_answer(args: Line, before: Contents) -> Line:
    """ScramControlManager: validateUpsertion, validateDeletion."""
    if args["mechanism"] not in HASHES:
        return {"error": "UNSUPPORTED_SASL_MECHANISM", "message": "Unknown SCRAM mechanism"}
    if not args["delete"]:
        few = {"error": "UNACCEPTABLE_CREDENTIAL", "message": "Too few iterations"}
        return NONE if args["iterations"] >= 4096 else few
    gone = {"error": "RESOURCE_NOT_FOUND", "message": "Attempt to delete a user credential that does not exist"}
    return NONE if f"{args['user']}/{args['mechanism']}" in before.scram else gone


ANSWERED = ("alterClientQuotas", "alterCredentials", "createAcls", "deleteAcls")
FILTER = re.compile(r"resourceType=(\w+), name=(.*), patternType=(\w+)\), entry(.*)")
EVERYTHING = "Filter=(principal=<any>, host=<any>, operation=ANY, permissionType=ANY))"


def matches(binding: str, by: str) -> bool:
    """Whether an ACL is one that a filter names: of any principal, host, operation and permission."""
    acl, asked = FILTER.search(binding), FILTER.search(by)
    assert acl
    assert asked
    assert asked[4] == EVERYTHING
    if asked[1] not in ("ANY", acl[1]):
        return False
    if asked[3] == "MATCH":
        return asked[2] == "<any>" or (asked[2].startswith(acl[2]) if acl[3] == "PREFIXED" else asked[2] == acl[2])
    return asked[2] in ("<any>", acl[2]) and asked[3] in ("ANY", acl[3])


UNPARSED = {
    "error": "InvalidRequestException",
    "message": "Could not parse principal from `bad` (no colon is present separating the principal type from the "
    "principal name)",
}


def is_answered(line: Line, before: Contents, written: Mapping[str, Line]) -> bool:
    """Whether quotas, ACLs and credentials answer what they must, and write records where they must."""
    args, result = line["args"], line.get("result")
    there = sorted(text for text, r in written.items() if r["id"] in before.acls)
    answer: Any
    match line["op"]:
        case "alterClientQuotas":
            answer = quota_answer(args)
            now = before.quotas.get(quota_key(sorted(args["entity"].items()), args["key"]))
            count = int(answer == NONE and now != args["value"])
        case "alterCredentials":
            answer = credential_answer(args, before)
            count = int(answer == NONE)
        case "createAcls":
            answer = UNPARSED if "principal=bad," in args["binding"] else None
            count = int(answer is None and args["binding"] not in there)
        case "deleteAcls":
            answer = [text for text in there if matches(text, args["filter"])]
            count = len(answer)
        case _:
            return True
    return bool(
        result and result["response"] == answer and len(result["records"]) == count and result["atomic"] is True
    )


def is_asked(line: Line, data: Line, before: Contents) -> bool:
    """Whether a record says what the call asked for, as far as the image does not have it."""
    args = line["args"]
    match line["op"]:
        case "createAcls":
            return bool(binding(data) == args["binding"])
        case "alterClientQuotas":
            entity = {part["entityType"]: part["entityName"] for part in data["entity"]}
            is_named = entity == args["entity"] and data["key"] == args["key"]
            value = None if data["remove"] else data["value"]
            return bool(is_named and value == args["value"])
        case "deleteAcls":
            return True  # of an id that is there, or the image refuses it
        case "generateNextProducerId":
            return (data["brokerId"], data["brokerEpoch"]) == (args["brokerId"], args["brokerEpoch"])
        case "alterCredentials":
            removed = {"name": args["user"], "mechanism": args["mechanism"]}
            return bool(data == (removed if args["delete"] else credential(args)))
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
        self.written: dict[str, Line] = {}

    def copy(self) -> Judge:
        other = Judge.__new__(Judge)
        other.__dict__.update(image=self.image, kept=dict(self.kept), offset=self.offset, written=dict(self.written))
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
        if not is_answered(line, self.image.contents, self.written):
            return False
        for record in records:
            image = replayed(self.image, record, self.offset)
            if image is None or not is_asked(line, record["data"], self.image.contents):
                return False
            self.image = image
            self.offset += 1
            if line["op"] == "createAcls":
                self.written[line["args"]["binding"]] = record["data"]
        shown = contents(line["state"], self.written)
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


@pytest.mark.clause("IMG-8", "IMG-9", "IMG-10", "IMG-11", "IMG-12")
def test_the_image_is_what_the_managers_show() -> None:
    judge = Judge(30)
    assert [line["i"] for line in LINES if not judge.takes(line)] == []
    assert judge.offset > 101 + 60


def test_altered_copies_are_rejected() -> None:
    """Every value of every state and record, one at a time."""
    judge, tried, accepted = Judge(30), 0, []
    for line in LINES:
        compared = [("state",), ("result", "records")] + [("result", "firstOffset")] * bool(
            (line.get("result") or {}).get("records")
        )
        if line["op"] in ANSWERED:
            compared += [("result", "response"), ("result", "atomic")]
        places = [p for p in leaves(line) if p[:1] in compared or p[:2] in compared]
        for place in places:
            tried += 1
            if judge.copy().takes(altered(line, place)):
                accepted.append((line["i"], place))
        assert judge.takes(line)
    assert accepted == []
    assert tried == 4428
