"""A table is freed with its last reference: it holds the files or connections of its source."""

from __future__ import annotations

import gc
import weakref

import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

from barnabas.tables import Table, TableError
from barnabas.tables.formats import Raw
from barnabas.tables.scan import Columns
from tests.tables.memory_source import MemorySource


def test_a_table_is_freed_with_its_source() -> None:
    source = MemorySource("t")
    source.append(0, [(None, b"a")])
    table = Table(source, Columns(Raw("_key"), Raw("value"))).snapshot()
    assert table.count() == table.scan(["value"], pc.field("_offset") == 0).to_table().num_rows == 1
    with pytest.raises(TableError, match="cannot read a topic by this function"):
        pads.Scanner.from_dataset(table).to_table()
    freed = weakref.ref(source)
    del source, table
    gc.collect()
    assert freed() is None
