"""The differences between the events of two captures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.differential.capture.captures import Event

KNOWN: Mapping[str, str] = {  # regular expressions of paths, and why the values differ
    r"value\.payload\.ts_(ms|us|ns)": "when the capture worked on the event",
    r"value\.payload\.source\.version": "of the capture",
    r"(key|value)\.schema\..*\.doc": "texts for readers are not built",
}
OF_A_SNAPSHOT: Mapping[str, str] = {  # the same, in records of a snapshot
    r"value\.payload\.source\.(ts_(ms|us|ns)|lsn|txId|sequence)": "each capture has its own snapshot",
}
_KNOWN, _OF_A_SNAPSHOT = (re.compile("|".join(each)) for each in (KNOWN, OF_A_SNAPSHOT))


def differences(theirs: Sequence[Event], mine: Sequence[Event]) -> Iterator[str]:
    """Each difference that is not known, as a path and both values."""
    if len(theirs) != len(mine):
        yield f"count: {len(theirs)} and {len(mine)}"
    for number, (left, right) in enumerate(zip(theirs, mine, strict=False)):
        has_snapshot = left[1] is not None and left[1]["payload"]["op"] == "r"
        for part, one, other in zip(("key", "value"), left, right, strict=True):
            for path, found in _of(part, one, other):
                if not (_KNOWN.fullmatch(path) or (has_snapshot and _OF_A_SNAPSHOT.fullmatch(path))):
                    yield f"{number} {path}: {found}"


def _of(path: str, left: Any, right: Any) -> Iterator[tuple[str, str]]:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for name in sorted(left.keys() | right.keys()):
            yield from _of(f"{path}.{name}", left.get(name, "(none)"), right.get(name, "(none)"))
    elif _is_fields(left) and _is_fields(right):
        yield from _of(path, {each["field"]: each for each in left}, {each["field"]: each for each in right})
        names = [[each["field"] for each in fields] for fields in (left, right)]
        if names[0] != names[1]:
            yield path, f"the order {names[0]} and {names[1]}"
    elif left != right or isinstance(left, bool) is not isinstance(right, bool):
        yield path, f"{left!r} and {right!r}"


def _is_fields(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) and "field" in each for each in value)


def schema_differences(theirs: Event, mine: Event) -> Iterator[str]:
    """Differences of the schemas of keys and rows."""
    for part, one, other in zip(("key", "row"), _schemas(theirs), _schemas(mine), strict=True):
        for path, found in _of(f"{part}.schema", one, other):
            if not _KNOWN.fullmatch(path.replace("row", "value", 1)):
                yield f"{path}: {found}"


def _schemas(event: Event) -> tuple[Any, Any]:
    key, value = (None if each is None else each["schema"] for each in event)
    return key, None if value is None else [each for each in value["fields"] if each["field"] in {"before", "after"}]
