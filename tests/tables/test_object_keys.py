"""Keys that are a JSON object of one column, as views have them: such a key may be null in a row, and the record still has a key."""

from __future__ import annotations

import pyarrow as pa
import pytest

from barnabas.tables.declared import columns_of
from barnabas.tables.errors import TableError


def test_object_of_one_column() -> None:
    key = columns_of("t", format="json", columns="n bigint", key="json (k text)").key
    payloads = key.encode(pa.record_batch({"k": pa.array(["a", None])}))
    assert payloads.to_pylist() == [b'{"k":"a"}', b'{"k":null}']
    assert key.decode(payloads, None, ["k"]).columns[0].to_pylist() == ["a", None]


def test_table_without_values() -> None:
    columns = columns_of("t", format="json", columns="", key="k text")
    rows = pa.record_batch({"k": pa.array(["a", "b"])})
    assert columns.value.encode(rows.select([]), pa.array([False, True])).to_pylist() == [b"{}", None]


def test_declaration_that_cannot_be_read() -> None:
    with pytest.raises(TableError):
        columns_of("t", format="json", columns="n bigint", key="json ()")
