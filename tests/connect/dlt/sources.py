"""Sources of dlt for tests. `ROWS` is what the source of changes has."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterator
from typing import Any

import dlt

ROWS: list[dict[str, Any]] = []
CALLS: list[Any] = []  # the last value with which each round began


@dlt.resource(primary_key="id", write_disposition="merge", columns={"deleted": {"hard_delete": True}})
def users(
    first: int = 0,
    changed: Any = dlt.sources.incremental("changed", initial_value=datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)),  # noqa: B008 - dlt's form
) -> Iterator[dict[str, Any]]:
    CALLS.append(changed.last_value)
    yield from (row for row in ROWS if row["id"] >= first)


@dlt.source
def shop(first: int = 0) -> Any:
    """Two resources, one of them with values of many types."""
    items = dlt.resource(
        [
            {"n": 1, "id": uuid.UUID(int=1), "price": decimal.Decimal("1.50"), "tags": [{"name": "a"}], "any": 1},
            {"n": 2, "more": {"deep": [1, 2]}, "any": {"x": 1}},
        ],
        name="items",
    )
    return users(first), items


@dlt.resource(primary_key=("a", "b"), table_name=lambda row: row["kind"])
def mixed() -> Iterator[list[dict[str, Any]]]:
    yield [{"kind": "cats", "a": 1, "b": 2}, {"kind": "dogs", "a": 3, "b": 4}]


@dlt.resource
def broken() -> Iterator[dict[str, Any]]:
    yield {"a": 1}
    raise OSError("the service is away")


def nothing() -> int:
    return 1
