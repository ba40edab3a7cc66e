"""What the arguments of `kafka-storage format` say: a release, the voters of a quorum, a SCRAM credential."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import re
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from kafkaspec.contract.clauses import ONE_CALL, states
from kafkaspec.contract.machine import Refused
from kafkaspec.spec.common.checkpoint_text import canonical, integer, is_topic_id
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, INT_MAX
from kafkaspec.spec.controller.features import METADATA as METADATA
from kafkaspec.spec.controller.features import NEWEST, OLDEST
from kafkaspec.spec.controller.features import PRODUCTION as PRODUCTION
from kafkaspec.spec.controller.features import STABLE as STABLE
from kafkaspec.spec.management.meta_properties import RUNTIME as RUNTIME

CHAPTER = "Kafka Internals, ch. 11, Cluster formation & bootstrap"
TERSE: Final = "kafka.tools.TerseFailure"
FORMATTER: Final = "org.apache.kafka.metadata.storage.FormatterException"
TESTING: Final = NEWEST
RELEASES: Final = (
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0",
    "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2",
    "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0",
)  # fmt: skip
"""of metadata.version, from the oldest level on"""
MECHANISMS: Final = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
"""The number of each in its record, and its hash"""
LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384
MOST_PORT: Final = 65535


class Voter(NamedTuple):
    """A controller of a dynamic quorum, and where it listens."""

    node_id: int
    directory_id: str
    host: str
    port: int

    @property
    def in_full(self) -> Voter:
        """As it stands in the record: an address of IPv6 in its eight numbers."""
        try:
            address = ipaddress.IPv6Address(self.host)
        except ValueError:
            return self
        return self._replace(host=":".join(f"{int(part, 16):x}" for part in address.exploded.split(":")))


@dataclass(frozen=True)
class Credential:
    """A UserScramCredentialRecord; bytes in hexadecimal. Without a salt that was asked for one is drawn at random, and
    nothing that comes of it is shown."""

    user: str
    mechanism: int
    iterations: int
    salt: str | None
    stored_key: str | None
    server_key: str | None


# ---- releases --------------------------------------------------------------------------------------------------------
def version_name(level: int) -> str | None:
    """The name of a metadata.version; None if there is none of that level."""
    return RELEASES[level - OLDEST] if OLDEST <= level < OLDEST + len(RELEASES) else None


@states(without=ONE_CALL)
def named_version(text: str, unstable: bool) -> int | Refused:
    """The level of a metadata.version.

    BST-24: A release of Kafka stands for the newest stable metadata.version of that release line, whatever stands
    behind its second number; a metadata.version may be named itself. One that is not known, or that is not stable and
    those are not allowed, is refused. [MetadataVersion.fromVersionString, Kafka 4.3.0]
    """
    parts = text.split(".")
    while parts[1:] and not parts[-1]:  # as Java splits
        parts.pop()
    key = text if len(parts) <= 2 else ".".join(parts[:2])
    known = {name: OLDEST + n for n, name in enumerate(RELEASES)}
    lines = {name.partition("-")[0]: level for name, level in known.items() if level <= STABLE}
    level = (known | lines).get(key)
    most = TESTING if unstable else STABLE
    if level is None or level > most:
        names = ", ".join(RELEASES[: most - OLDEST + 1])
        message = f"Unknown metadata.version '{text}'. Supported metadata.version are: {names}"
        return Refused("BST-24", TERSE, message)
    return level


# ---- voters ----------------------------------------------------------------------------------------------------------
def trimmed(text: str) -> str:
    """As Java trims: all up to the blank is left out."""
    return re.sub(r"^[\0-\x20]+|[\0-\x20]+$", "", text)


def _not_a_voter(message: str) -> Refused:
    return Refused("BST-21", ILLEGAL_ARGUMENT, message)


def _voter(text: str) -> Voter | Refused:
    before, at, rest = trimmed(text).partition("@")
    if not at:
        return _not_a_voter("No @ found in dynamic voter string.")
    if not before:
        return _not_a_voter("Invalid @ at beginning of dynamic voter string.")
    node_id = integer(before, INT_MAX)
    if node_id is None:
        return _not_a_voter("Failed to parse node id in dynamic voter string.")
    if node_id < 0:
        return _not_a_voter(f"Invalid negative node id {node_id} in dynamic voter string.")
    if not rest:
        return _not_a_voter("No hostname found after node id.")
    if rest[0] == "[":
        host, bracket, rest = rest[1:].partition("]")
        if not bracket:
            return _not_a_voter("Hostname began with left bracket, but no right bracket was found.")
    else:
        host, colon, behind = rest.partition(":")
        if not colon:
            return _not_a_voter("No colon following hostname could be found.")
        rest = colon + behind
    if not rest.startswith(":"):
        return _not_a_voter("Port section must start with a colon.")
    number, colon, id = rest[1:].partition(":")
    if not colon:
        return _not_a_voter("No colon following port could be found.")
    port = integer(number, INT_MAX)
    if port is None:
        return _not_a_voter("Failed to parse port in dynamic voter string.")
    if not 0 <= port <= MOST_PORT:
        return _not_a_voter(f"Invalid port {port} in dynamic voter string.")
    if not is_topic_id(id):
        return _not_a_voter("Failed to parse directory ID in dynamic voter string.")
    return Voter(node_id, canonical(id), host, port)


@states(without=ONE_CALL)
def voters(text: str) -> tuple[Voter, ...] | Refused:
    """The voters, by their ids.

    BST-21: Voters are said as `id@host:port:directory id`, a host with colons in brackets, with commas between them;
    what is empty between two commas does not count. Anything else is refused, no voter at all, and two of one id; two
    of one directory id are not, nor is a reserved one. [{CHAPTER}; KIP-853; DynamicVoters and DynamicVoter.parse,
    Kafka 4.3.0]
    """
    found: list[Voter] = []
    for part in trimmed(text).split(","):
        if part:
            voter = _voter(part)
            if isinstance(voter, Refused):
                return voter
            found.append(voter)
    if not found:
        return _not_a_voter("No voters given.")
    for n, voter in enumerate(found):
        if any(v.node_id == voter.node_id for v in found[:n]):
            return _not_a_voter(f"Node id {voter.node_id} was specified more than once.")
    return tuple(sorted(found))


# ---- SCRAM -----------------------------------------------------------------------------------------------------------
def _not_scram(message: str) -> Refused:
    return Refused("BST-22", FORMATTER, message)


def _components(text: str) -> dict[str, str] | Refused:
    found: dict[str, str] = {}
    parts = text.split(",")
    while parts[1:] and not parts[-1]:  # as Java splits
        parts.pop()
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            return _not_scram(f"No equals sign found in SCRAM component: {part}")
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        found[name] = value
    return found


def of_base64(text: str) -> bytes | None:
    """As Java's decoder: the basic alphabet, padding right or left out; None if it is malformed."""
    bare = text.rstrip("=")
    pad = len(text) - len(bare)
    if not re.fullmatch(r"[A-Za-z0-9+/]*", bare) or len(bare) % 4 == 1:
        return None
    if pad and (len(bare) % 4 == 0 or (len(bare) + pad) % 4):
        return None
    return base64.b64decode(bare + "=" * (-len(bare) % 4))


@states(without=ONE_CALL)
def credential(text: str) -> Credential | Refused:
    """A credential.

    BST-22: A credential is said as `mechanism=[name=value,...]`: `name`; `password`, or `saltedpassword` with `salt`,
    both in base64; and `salt` and `iterations`, which may be left out. Quotes around a value are left out, and of two
    values the last counts. A `saltedpassword` beside a `password` does not count, whatever it is. [KIP-900;
    ScramParser, Kafka 4.3.0]

    BST-23: Iterations are from 4096 to 16384, 4096 if left out. The record has the stored key and the server key that
    RFC 5802 makes of the salted password; the password itself is not in it. An empty
    password is refused. [KIP-900; ScramParser, ScramFormatter, ScramMechanism, Kafka 4.3.0]
    """
    mechanism, equals, said = trimmed(text).partition("=")
    if not equals:
        return _not_scram(f"Failed to find equals sign in SCRAM argument '{trimmed(text)}'")
    if mechanism not in MECHANISMS:
        return _not_scram(f"The add-scram mechanism {mechanism} is not supported.")
    if not said.startswith("["):
        return _not_scram("Expected configuration string to start with [")
    if not said.endswith("]"):
        return _not_scram("Expected configuration string to end with ]")
    found = _components(said[1:-1])
    if isinstance(found, Refused):
        return found
    user = found.pop("name", None)
    if user is None:
        return _not_scram("You must supply 'name' to add-scram")
    salt_text, salt = found.pop("salt", None), None
    if salt_text is not None and (salt := of_base64(salt_text)) is None:
        return _not_scram(f"Failed to decode given salt: {salt_text}")
    count = found.pop("iterations", None)
    iterations = LEAST_ITERATIONS if count is None else integer(count, INT_MAX)
    if iterations is None:
        return _not_scram(f"Failed to parse iterations count: {count}")
    password, salted = found.pop("password", None), None
    salted_text = found.pop("saltedpassword", None)
    if password is None:
        if salted_text is None:
            return _not_scram("You must supply one of 'password' or 'saltedpassword' to add-scram")
        if salt is None:
            return _not_scram("You must supply 'salt' with 'saltedpassword' to add-scram")
        if (salted := of_base64(salted_text)) is None:
            return _not_scram(f"Failed to decode given saltedPassword: {salted_text}")
    if found:
        return _not_scram(f"Unknown SCRAM configurations: {', '.join(sorted(found))}")
    return _record(user, mechanism, iterations, salt, password, salted)


@cache
def salted_password(algorithm: str, password: str, salt: bytes, iterations: int) -> bytes:
    """`Hi` of RFC 5802. It takes long on purpose, and walks ask for the same ones."""
    return hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)


def _record(
    user: str, mechanism: str, iterations: int, salt: bytes | None, password: str | None, salted: bytes | None
) -> Credential | Refused:
    number, algorithm = MECHANISMS[mechanism]
    name = mechanism.replace("-", "_")
    if iterations < LEAST_ITERATIONS:
        message = f"The 'iterations' value must be >= {LEAST_ITERATIONS} for add-scram using {name}"
        return Refused("BST-23", FORMATTER, message)
    if iterations > MOST_ITERATIONS:
        message = f"The 'iterations' value must be <= {MOST_ITERATIONS} for add-scram using {name}"
        return Refused("BST-23", FORMATTER, message)
    if password == "" or salted == b"":
        return Refused("BST-23", ILLEGAL_ARGUMENT, "Empty key")
    if salt is None:
        return Credential(user, number, iterations, None, None, None)
    if salted is None:
        assert password is not None
        salted = salted_password(algorithm, password, salt, iterations)
    client = hmac.digest(salted, b"Client Key", algorithm)
    stored, server = hashlib.new(algorithm, client).digest(), hmac.digest(salted, b"Server Key", algorithm)
    return Credential(user, number, iterations, salt.hex(), stored.hex(), server.hex())
