"""Columns of every type pass through DuckDB, Polars and files as they are in Arrow."""

from __future__ import annotations

import io
import json

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.tables import Table, rendering
from barnabas.tables.declared import columns_of
from barnabas.tables.export import export
from tests.tables.memory_source import MemorySource

DECLARED = (
    "b boolean, i1 tinyint, i2 smallint, i4 int, i8 bigint, u1 utinyint, u8 ubigint, r real, d double, de decimal(10,2), t text, "
    "j json, u uuid, da date, ti time, tn timestamp_ntz, tz timestamptz, l int[], s struct<x int>, m map<text, int>"
)
CONDITIONS = (
    "b", "not b", "i1 = 2", "i2 > 2", "i4 <> 2", "i8 in (1, 2)", "u1 >= 3", "u8 = 18446744073709551615", "i1 = 1000", "r > 3", "d = 2.5",
    "de > 2", "de in (1.25, 2.25)", "t > 'x1'", "j->>'a' = '2'", "u = '00000000-0000-0000-0000-000000000002'", "da > '2026-01-02'",
    "ti > '10:00:01'", "tn > '2026-01-01 00:00:02'", "tz > '2026-01-01 00:00:02+00'", "l = [2]", "s.x = 2", "m['k'] = 2", "id in (1, 2)",
    "id is null or de < 1",
)  # fmt: skip


def row(number: int) -> dict[str, object]:
    integers = dict.fromkeys(("i1", "i2", "i4", "i8", "u1", "u8"), number)
    return integers | {
        "b": number % 2 == 0, "r": number * 1.5, "d": number * 2.5, "de": f"{number}.25", "t": f"x{number}", "j": {"a": number},
        "u": f"00000000-0000-0000-0000-00000000000{number}", "da": f"2026-01-0{number + 1}", "ti": f"10:00:0{number}",
        "tn": f"2026-01-01T00:00:0{number}", "tz": f"2026-01-01T00:00:0{number}Z", "l": [number], "s": {"x": number}, "m": {"k": number},
    }  # fmt: skip


@pytest.fixture(scope="module")
def things() -> Table:
    source = MemorySource("things")
    for number in range(5):
        source.append(0, [(b"%d" % number, json.dumps(row(number)).encode())])
    source.append(0, [(b"9", None)])
    return Table(source, columns_of("things", format="json", columns=DECLARED, key="id bigint"))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_of_duckdb(things: Table, condition: str) -> None:
    whole = things.arrow()
    assert whole.num_rows == 6
    found = duckdb.execute(f"select id from things where {condition}").fetchall()
    expected = duckdb.execute(f"select id from whole where {condition}").fetchall()
    assert found == expected


def test_frames_of_polars(things: Table) -> None:
    later = things.scan_polars().filter(pl.col("de") > 2, pl.col("ti").is_not_null()).select("id", "u", "j").collect()
    assert later["id"].to_list() == [2, 3, 4]
    assert things.scan_polars().collect().equals(things.to_polars())


def exported(things: Table, form: str) -> bytes:
    file = io.BytesIO()
    assert export(things.batches(), things.schema, file, form) == 6
    return file.getvalue()


def test_maps_are_objects_in_text_also_without_entries() -> None:
    kind = pa.struct([("inner", pa.list_(pa.map_(pa.binary(), pa.int64())))])
    entries: list[dict[str, object] | None] = [{"inner": [[(b"a", 1)], []]}, {"inner": None}, None]
    batch = pa.record_batch({"s": pa.array(entries, kind)})
    assert rendering.json_rows(batch) == [{"s": {"inner": [{"a": 1}, {}]}}, {"s": {"inner": None}}, {"s": None}]
    assert rendering.text_table(batch).to_pydict() == {"s": ['{"inner":[{"a":1},{}]}', '{"inner":null}', None]}


def test_files_of_every_type(things: Table) -> None:
    whole = things.arrow()
    assert pq.read_table(io.BytesIO(exported(things, "parquet"))).equals(whole)
    assert pa.ipc.open_file(exported(things, "arrow")).read_all().equals(whole)
    lines = [json.loads(line) for line in exported(things, "json").splitlines()]
    meta = {"id": 3, "_partition": 0, "_offset": 3, "_timestamp": "1970-01-01T00:00:00Z"}
    assert lines[3] == row(3) | meta  # decimals are text, so that they keep their digits
    csv = exported(things, "csv").decode().splitlines()
    assert csv[4].startswith('false,3,3,3,3,3,3,4.5,7.5,3.25,"x3","{""a"": 3}","00000000-')
    assert csv[4].endswith(',"[3]","{""x"":3}","{""k"":3}",3,0,3,1970-01-01 00:00:00.000000Z')
    assert csv[6] == "," * 20 + "9,0,5,1970-01-01 00:00:00.000000Z"
