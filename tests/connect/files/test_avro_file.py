"""Files of Avro that are written by columns have the bytes of fastavro's writer."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from barnabas.connect.plugins.files import file_formats
from barnabas.connect.plugins.files.file_formats import BLOCK, MARKER, AvroFile

KIND = pa.struct([("id", pa.int64()), ("t", pa.string()), ("l", pa.list_(pa.int32())), ("s", pa.struct([("x", pa.float64())]))])


def rows(count: int) -> Any:
    return pa.array([{"id": at, "t": "x" * (at % 99), "l": [at, None], "s": {"x": at / 3}} for at in range(count)], KIND)


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("count", [0, 1, 2000])
def test_the_bytes_are_those_of_the_library(codec: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = rows(count)
    found = AvroFile(codec).file(values)
    monkeypatch.setattr(file_formats, "plan_of", lambda schema, kind: None)
    assert found == AvroFile(codec).file(values)
    assert list(fastavro.reader(io.BytesIO(found))) == values.to_pylist()
    assert (found.count(MARKER) > 3) == (len(values) * 70 > 3 * BLOCK)  # several blocks
