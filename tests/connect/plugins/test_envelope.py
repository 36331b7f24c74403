"""The schemas of Debezium's events: names and versions as Debezium 3.6 wrote them for the same table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.plugins.debezium.envelope import SNAPSHOT, Names, enveloped, struct_of

TOPIC = "shop.public.orders"
SOURCE = "io.debezium.connector.postgresql.Source"


def named(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, tuple[str, int | None]]]:
    if "name" in schema:
        yield path, (schema["name"], schema.get("version"))
    for each in schema.get("fields", ()):
        yield from named(each, f"{path}/{each['field']}")


@pytest.mark.parametrize("is_flat", [False, True])
def test_schemas_have_debeziums_names(is_flat: bool) -> None:
    names = Names(TOPIC, SOURCE)
    row: Any = pa.StructArray.from_arrays([pa.array([1], pa.int32())], fields=[pa.field("id", pa.int32(), nullable=False)])
    source = struct_of({"snapshot": (pa.array(["true"]), True)}, names={"snapshot": SNAPSHOT})
    value = row if is_flat else enveloped(pa.array(["c"]), [False], row, row, source, 5, names)
    records = names.records(value, row, is_flat=is_flat)
    found: dict[str, Any] = {}
    for side in ("key", "value"):
        column: Any = records.column(side).combine_chunks()
        text: Any
        [text] = JsonConverter({}, is_key=False).encode(column, TOPIC, records.schema.field(side).metadata).to_pylist()
        found[side] = json.loads(text)["schema"]
    assert dict(named(found["key"])) == {"": (f"{TOPIC}.Key", None)}
    row_name = (f"{TOPIC}.Value", None)
    if is_flat:
        assert dict(named(found["value"])) == {"": row_name}
        return
    assert dict(named(found["value"])) == {
        "": (f"{TOPIC}.Envelope", 2), "/before": row_name, "/after": row_name, "/source": (SOURCE, 1),
        "/source/snapshot": ("io.debezium.data.Enum", 1), "/transaction": ("event.block", 1),
    }  # fmt: skip
    [snapshot] = next(each["fields"] for each in found["value"]["fields"] if each["field"] == "source")
    assert snapshot["default"] == "false"
    assert snapshot["parameters"] == {
        "allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
    }


def test_a_table_without_a_key_has_no_key() -> None:
    row: Any = pa.array([{"id": 1}])
    assert Names(TOPIC, SOURCE).records(row, None, is_flat=True).column_names == ["value"]
