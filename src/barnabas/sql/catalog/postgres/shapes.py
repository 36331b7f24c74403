"""The columns of the catalogue's tables."""

from __future__ import annotations

from functools import cache
from importlib import resources

import pyarrow as pa

_LETTERS: dict[str, pa.DataType] = {
    "o": pa.uint32(),
    "n": pa.string(),
    "t": pa.string(),
    "c": pa.string(),
    "b": pa.bool_(),
    "s": pa.int16(),
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "z": pa.timestamp("us", tz="UTC"),
    "S": pa.list_(pa.int16()),
    "O": pa.list_(pa.uint32()),
    "N": pa.list_(pa.string()),
    "T": pa.list_(pa.string()),
}


@cache
def shapes() -> dict[tuple[str, str], pa.Schema]:
    """The columns of each table, by schema and name."""
    found: dict[tuple[str, str], pa.Schema] = {}
    text = resources.files(__package__).joinpath("shapes.txt").read_text()
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        name, *columns = line.split()
        schema, _, table = name.partition(".")
        pairs = (column.rpartition(":") for column in columns)
        found[schema, table] = pa.schema([pa.field(column, _LETTERS[letter]) for column, _, letter in pairs])
    return found
