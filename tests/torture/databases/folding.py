"""Tables made of the records of change capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from barnabas.protocol.records.batch import Record

PLACEHOLDER = "__debezium_unavailable_value"
NOT_COMPARED = ("at", "touched")  # a time, and a number that only makes a row differ
Row = Mapping[str, Any]


def folded(records: Iterable[Record]) -> Counter[str]:
    """The rows of a table, as canonical JSON with their number. Raises AssertionError for an event that comes twice or does not fit."""
    keyed: dict[Any, Row] = {}
    loose: Counter[str] = Counter()
    seen: set[tuple[Any, ...]] = set()
    for record in records:
        key = None if record.key is None else tuple(_payload(record.key).values())  # the names may change
        if record.value is None:
            assert key is None or key not in keyed, "a tombstone of a row that is there"
            continue
        event = _payload(record.value)
        op, before, after, source = event["op"], event["before"], event["after"], event["source"]
        if source["snapshot"] == "false":
            where = source["lsn"] if "lsn" in source else (source["file"], source["pos"], source["row"])
            place = (where, op, key, str(after))
            assert op == "t" or place not in seen or key is None, f"twice: {place}"
            seen.add(place)
        if op == "t":
            keyed, loose = {}, Counter()
        elif key is None:
            _loose(loose, op, before, after)
        elif op == "d":
            keyed.pop(key, None)
        else:
            keyed[key] = _merged(keyed.get(key), after)
    return loose + Counter(canonical(each) for each in keyed.values())


def _payload(data: bytes | memoryview) -> Any:
    """The fields of a record, which may have a schema beside them."""
    found = msgspec.json.decode(data)
    return found["payload"] if found.keys() == {"schema", "payload"} else found


def _loose(rows: Counter[str], op: str, before: Row | None, after: Row | None) -> None:
    if before is not None:
        rows[canonical(before)] -= 1
        assert rows[canonical(before)] >= 0, f"{op} of a row that is not there: {before}"
    if after is not None:
        rows[canonical(after)] += 1


def _merged(old: Row | None, new: Row) -> Row:
    """The row, with the large values that it kept."""
    if PLACEHOLDER not in new.values():
        return new
    assert old is not None, f"a value is not there, and no earlier row has it: {new}"
    return {name: old[name] if value == PLACEHOLDER else value for name, value in new.items()}


def canonical(row: Row) -> str:
    """A row without its nulls, so that a column that was added later makes no difference."""
    return msgspec.json.encode(
        {name: row[name] for name in sorted(row) if row[name] is not None and name not in NOT_COMPARED}
    ).decode()  # fmt: skip
