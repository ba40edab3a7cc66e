"""Writes spec/common/metadata_facts.py: what Kafka's released jars say of the records of the metadata log.

    python targets/kafka/metadata_schemas.py FOLDER_WITH_JARS 4.3.0 > spec/common/metadata_facts.py

The jars of kafka-metadata and kafka-clients carry a JSON file for each message. Facts alone are taken over: names,
numbers, types, versions, tags, defaults. Ranges of versions become [first, last], last null for "and all later ones".
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

CONTROL = {
    "LeaderChangeMessage": 2,
    "SnapshotHeaderRecord": 3,
    "SnapshotFooterRecord": 4,
    "KRaftVersionRecord": 5,
    "VotersRecord": 6,
}
"""The messages of control records, with their ControlRecordType: no file says it."""
EMPTY = {"string": "", "bool": False, "float64": 0.0, "uuid": "AAAAAAAAAAAAAAAAAAAAAA", "bytes": ""}


def versions(text: str) -> list[int | None]:
    first, dash, last = text.rstrip("+").partition("-")
    return [int(first), None if text.endswith("+") else int(last if dash else first)]


def default(of: dict[str, Any]) -> Any:
    said = of.get("default")
    if said == "null":
        return None
    if of["type"].startswith("[]"):
        return []
    empty = EMPTY.get(of["type"], 0)
    if said is None:
        return empty
    return said == "true" if isinstance(empty, bool) else said if isinstance(empty, str) else int(said)


def field(of: dict[str, Any], structures: dict[str, Any]) -> dict[str, Any]:
    array, kind = of["type"].startswith("[]"), of["type"].removeprefix("[]")
    inner = of.get("fields") or structures.get(kind)
    out: dict[str, Any] = {"name": of["name"][0].lower() + of["name"][1:], "type": "struct" if inner else kind}
    out |= {"array": True} if array else {}
    out |= {"versions": versions(of["versions"])}
    out |= {"nullable": versions(of["nullableVersions"])} if "nullableVersions" in of else {}
    out |= {"tag": of["tag"]} if "tag" in of else {}
    if inner:
        out["structure"] = kind
        out["fields"] = [field(f, structures) for f in inner]
    if array or not inner:
        out["default"] = default(of)
    assert of.get("taggedVersions", of["versions"]) == of["versions"], of
    return out


def message(text: str, type: int | None) -> dict[str, Any]:
    of = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert of["flexibleVersions"] == "0+", of["name"]
    assert of["validVersions"].startswith("0"), of["name"]
    structures = {s["name"]: s["fields"] for s in of.get("commonStructs", ())}
    return {
        "name": of["name"],
        "type": of["apiKey"] if type is None else type,
        "highest": versions(of["validVersions"])[1],
        "fields": [field(f, structures) for f in of["fields"]],
    }


def schemas(folder: Path, release: str) -> dict[str, Any]:
    with ZipFile(folder / f"kafka-metadata-{release}.jar") as jar:
        names = sorted(n for n in jar.namelist() if re.fullmatch(r"common/metadata/\w+\.json", n))
        data = [message(jar.read(n).decode(), None) for n in names]
    with ZipFile(folder / f"kafka-clients-{release}.jar") as jar:
        control = [message(jar.read(f"common/message/{n}.json").decode(), type) for n, type in CONTROL.items()]
    return {"release": release, "data": sorted(data, key=lambda m: int(m["type"])), "control": control}


MODULE = '''"""What Kafka's released jars say of the records of the metadata log; `targets/kafka/metadata_schemas.py` writes it.

A text of this language, and not a file beside it: the package is also used from within an archive.
"""

# ruff: noqa: E501
from typing import Final

JSON: Final = """\\
%s"""
'''


def text(of: dict[str, Any]) -> str:
    """One line a field, so that a diff shows what a release changed."""

    def fields(these: list[dict[str, Any]], indent: str) -> str:
        lines = []
        for f in these:
            head = json.dumps({k: v for k, v in f.items() if k != "fields"})
            inner = f.get("fields")
            lines.append(
                indent + (head if inner is None else f'{head[:-1]}, "fields": [\n{fields(inner, indent + "  ")}]}}')
            )
        return ",\n".join(lines)

    def messages(these: list[dict[str, Any]]) -> str:
        return ",\n".join(
            f'  {{"name": "{m["name"]}", "type": {m["type"]}, "highest": {m["highest"]}, "fields": ['
            + (f"\n{fields(m['fields'], '    ')}]}}" if m["fields"] else "]}")
            for m in these
        )

    data, control = messages(of["data"]), messages(of["control"])
    return f'{{"release": "{of["release"]}",\n"data": [\n{data}],\n"control": [\n{control}]}}\n'


if __name__ == "__main__":
    sys.stdout.write(MODULE % text(schemas(Path(sys.argv[1]), sys.argv[2])))
