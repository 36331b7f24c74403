"""The versions of messages that Kafka 3.9 had and Kafka 4 dropped (KIP-896), extracted once from Kafka's own definitions and
stored here.

For each such message, `tools/dropped_versions.json` has its fields in those versions. `tools/generate_messages.py` merges them
with kio's definitions of the later versions. It needs neither Kafka nor Maven.

Run as `python tools/dropped_versions.py`, which fetches the definitions of Kafka 3.9 (`tools/kafka.py`) and writes the file
again.

A field is `[name, type, is array, first, last, first nullable, last nullable, default, item]`. Its versions are the dropped
ones, `item` is the name of the class of its elements, and the default is its source text in the generated class, or null.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

from kio.schema.index import api_key_map, schema_name_map

FACTS = Path(__file__).resolve().parent / "dropped_versions.json"
DEFINITIONS = "common/message/"  # path in the jar of Kafka's clients
COMMENT = re.compile(r'^\s*//.*$|(?<=[\s,{\[])//[^"\n]*$', re.MULTILINE)
# Without these: brokers of one cluster have one version, and the share groups of 3.9 were a preview of another protocol.
LEFT_OUT = frozenset({"alter_partition", "share_group_heartbeat", "share_group_describe", "share_fetch", "share_acknowledge"})
Facts = dict[str, dict[str, dict[str, Any]]]  # message -> "request" or "response" -> class name -> fields


def load() -> Facts:
    """The content of the file."""
    found: Facts = json.loads(FACTS.read_text())
    return found


def extract(jar: Path) -> Facts:
    """The facts of every message with versions that the definitions in `jar` have and kio does not."""
    found: Facts = {}
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(api_key_map.values()):
            first = min(schema_name_map[name])
            if first == 0 or name in LEFT_OUT:
                continue
            prefix = "".join(part.capitalize() for part in name.split("_"))
            found[name] = {
                kind.lower(): _classes(
                    json.loads(COMMENT.sub("", archive.read(f"{DEFINITIONS}{prefix}{kind}.json").decode())), first
                )
                for kind in ("Request", "Response")
            }
    return found


def _classes(definition: dict[str, Any], first_kept: int) -> dict[str, Any]:
    """A dict of each class to its fields in versions below `first_kept`; the message itself comes last."""
    common = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    found: dict[str, Any] = {}

    def take(name: str, fields: list[dict[str, Any]]) -> None:
        own = []
        for field in fields:
            versions = _below(field["versions"], first_kept)
            if versions is None:
                continue
            kind = field["type"].removeprefix("[]")
            is_struct = kind[0].isupper()
            if is_struct and kind not in found:
                take(kind, field.get("fields") or common[kind])
            nullable = _below(field.get("nullableVersions", "none"), first_kept)
            own.append(
                [
                    _snake(field["name"]),
                    "struct" if is_struct else kind,
                    field["type"].startswith("[]"),
                    *versions,
                    *(nullable or (None, None)),
                    _default(kind, field.get("default")),
                    kind if is_struct else None,
                ]
            )
        found[name] = own

    take(definition["name"], definition["fields"])
    flexible = _below(definition["flexibleVersions"], first_kept)
    if flexible is not None:
        raise SystemExit(f"{definition['name']}: a flexible version was dropped")
    return found


def _below(versions: str, end: int) -> tuple[int, int] | None:
    """The part below `end` of a range such as `0-3`, `2+`, `1` or `none`."""
    if versions == "none":
        return None
    low, _, high = versions.removesuffix("+").partition("-")
    last = end - 1 if versions.endswith("+") else min(int(high or low), end - 1)
    return (int(low), last) if int(low) <= last else None


def _snake(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return words + "_" if keyword.iskeyword(words) else words


def _default(kind: str, given: str | None) -> str | None:
    if given is None or given == "null":
        return None if given is None else "None"
    if kind == "string":
        return json.dumps(given)
    return {"true": "True", "false": "False"}.get(given) or str(int(given, 0))


def main() -> None:
    from tools.kafka import LAST_WITH_ALL, fetch  # imported here, because the test of the generated files needs no Java

    jar = next(fetch(LAST_WITH_ALL).glob("kafka-clients-*.jar"))
    blocks = []
    for message, kinds in extract(jar).items():
        parts = []
        for kind, classes in kinds.items():
            lines = [
                f"   {json.dumps(name)}: [\n    " + ",\n    ".join(map(json.dumps, fields)) + "\n   ]"
                for name, fields in classes.items()
            ]
            parts.append(f"  {json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n  }")
        blocks.append(f" {json.dumps(message)}: {{\n" + ",\n".join(parts) + "\n }")
    FACTS.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    main()
