"""Boils the client side of a recording down to what an audit of its log directories must agree with.

    python condense.py RECORDING-FOLDER OUTPUT-FOLDER

RECORDING-FOLDER has `manifest.json` and `history.ndjson[.gz]`. For each archive of log directories OUTPUT-FOLDER gets
`<archive>.truth.json.gz`: what clients had seen when the directories were copied.

    partitions     name -> isolation level -> [first offset, end offset, records], read just before a clean stop
    acknowledged   name -> outcome -> [[offset, crc], ...]: every send that was acknowledged with an offset; outcome
                   "plain", or how its transaction ended: "committed", "aborted", "open"; of a compacted topic
                   [offset, crc, key, whether it is a tombstone]
    unsure         name -> keys of sends whose fate is not known, null among them
    deleted        name -> offset that DeleteRecords moved the log start to
    lossy          topics that may have lost acknowledged records (an unclean election)
    compacted      topics with compaction; aged: topics that retention deletes from
    in_flight      the manifest's list of .deleted, .cleaned and .swap files
    transactions   how many the clients saw committed and aborted, over all partitions: for people alone
    replicas       name -> how many of these directories have it at least, where it is not one of them

The runs of `tests/broker` write down more, since there is no client but their own:

    acknowledged   outcomes too: "left", a transaction of which no client ever asked for a commit; "given up", one whose
                   marker in this partition the broker said that it would not write: here it may have any fate
    unanswered     name -> crc of the sends that may or may not be in the log; all other records were acknowledged
    together       transactions of which no client knows the end: [[name, offset], ...], of one fate
    asked_to_delete  name -> the largest offset that DeleteRecords was asked for, answered or not
    reads          [isolation level, name, from, to, [[offset, crc], ...]]: what a consumer read of these offsets, in
                   the order in which it did
    settled        whether every marker is written that will be

`crc` is the CRC-32 of the key, or of nothing, then of a byte 0xff, then of the value likewise.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def events(folder: Path) -> Iterator[Event]:
    """The history's events, by time."""
    packed = folder / "history.ndjson.gz"
    with gzip.open(packed, "rt") if packed.exists() else (folder / "history.ndjson").open() as lines:
        yield from map(json.loads, lines)


def digest(key: str | None, value: str | None) -> int:
    parts = [b"" if x is None else x.encode() for x in (key, value)]
    return zlib.crc32(parts[1], zlib.crc32(b"\xff", zlib.crc32(parts[0])))


def moment(manifest: Event, archive: str) -> int:
    """When the directories of an archive were left by their broker: the clock of the events, ns."""
    steps = manifest["steps"]
    if "clean-stop" in archive:
        return min((int(s["t"]) for s in steps if s["what"].startswith("clean stop")), default=1 << 62)
    kills = [int(s["t"]) for s in steps if s["what"] == "SIGKILL"]
    number = archive.removesuffix(".tar.gz").rpartition("-")[2]
    return kills[int(number) - 1] if number.isdecimal() else kills[0]


def condensed(folder: Path, archive: str) -> Event | None:
    """The truth of one archive; None if the history does not reach to it."""
    manifest = json.loads((folder / "manifest.json").read_text())
    if archive.endswith("-swap.tar.gz"):
        return None
    until = moment(manifest, archive)
    sent: dict[tuple[str, int], Event] = {}
    transaction: dict[str, list[Event]] = defaultdict(list)
    pending: dict[str, bool] = defaultdict(bool)
    records: list[Event] = []
    compacted, aged, deleted = set(), set(), {}
    counts = {"committed": 0, "aborted": 0}
    for e in events(folder):
        if int(e["t"]) > until:
            break
        match e["ev"]:
            case "admin" if e.get("call") == "create_topic" and "error" not in e:
                policy = e["args"].get("configs", {}).get("cleanup.policy", "delete")
                if "compact" in policy:
                    compacted.add(e["args"]["topic"])
                if any(c.startswith("retention.") for c in e["args"].get("configs", {})):
                    aged.add(e["args"]["topic"])
            case "begin" if e.get("result") == "ok":
                transaction[e["client"]], pending[e["client"]] = [], True
            case "produce":
                r = {
                    "at": f"{e['topic']}-{e['partition']}",
                    "key": e.get("key"),
                    "crc": digest(e.get("key"), e.get("value")),
                    "tombstone": e.get("value") is None,
                    "outcome": "open" if pending[e["client"]] else "plain",
                    "offset": None,
                    "failed": False,
                }
                sent[e["client"], e["n"]] = r
                records.append(r)
                if pending[e["client"]]:
                    transaction[e["client"]].append(r)
            case "produced":
                r = sent[e["client"], e["n"]]
                r["failed"] = "error" in e
                r["offset"] = e.get("offset")
            case "commit_result" | "abort_result":
                ended = "committed" if e["ev"] == "commit_result" else "aborted"
                ok = e.get("result") == "ok"
                counts[ended] += ok
                for r in transaction[e["client"]]:
                    r["outcome"] = ended if ok else "open"
                transaction[e["client"]], pending[e["client"]] = [], False
    for s in manifest["steps"]:
        for topic, partition, offset in s.get("args", []) if "DeleteRecords" in s["what"] else []:
            deleted[f"{topic}-{partition}"] = offset
    acknowledged: dict[str, dict[str, list[list[int]]]] = defaultdict(lambda: defaultdict(list))
    unsure: dict[str, set[str | None]] = defaultdict(set)
    for r in records:
        if r["offset"] is not None and r["offset"] >= 0:
            more = [r["key"], r["tombstone"]] if r["at"].rpartition("-")[0] in compacted else []
            acknowledged[r["at"]][r["outcome"]].append([r["offset"], r["crc"], *more])
        elif r["outcome"] != "aborted":
            unsure[r["at"]].add(r["key"])
        if r["outcome"] == "open":
            unsure[r["at"]].add(r["key"])
    final: Event = {}
    if "clean-stop" in archive:
        for isolation, partitions in manifest["truth"].get("final", {}).items():
            for name, p in partitions.items():
                final.setdefault(name, {})[isolation] = [p["beginning"], p["end"], p["records"]]
    return {
        "recording": manifest["recording"],
        "kafka": manifest["kafka"],
        "archive": archive,
        "state": manifest["archives"][archive]["state"],
        "partitions": final,
        "acknowledged": {
            at: {o: sorted(rs, key=lambda r: r[0]) for o, rs in sorted(of.items())}
            for at, of in sorted(acknowledged.items())
        },
        "unsure": {at: sorted(keys, key=str) for at, keys in sorted(unsure.items())},
        "deleted": deleted,
        "lossy": [t for t in [manifest["truth"].get("unclean_topic")] if t],
        "compacted": sorted(compacted),
        "aged": sorted(aged),
        "in_flight": manifest.get("files_in_flight", {}).get(archive.removesuffix(".tar.gz"), []),
        "transactions": counts,
    }


def main() -> None:
    folder, out = map(Path, sys.argv[1:])
    for archive in sorted(json.loads((folder / "manifest.json").read_text())["archives"]):
        truth = condensed(folder, archive)
        if truth is not None:
            text = json.dumps(truth, separators=(",", ":")).encode()
            name = archive.removesuffix(".tar.gz") + ".truth.json.gz"
            (out / name).write_bytes(gzip.compress(text, 9, mtime=0))


if __name__ == "__main__":
    main()
