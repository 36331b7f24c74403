"""Sums of floating-point numbers depend on the order of the rows. A row that goes must still be the row that came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from barnabas.incremental.interface import DELETED, KEY
from barnabas.incremental.plan import Column, Groups, Input, Named, Node, Plan, Sum, Sums
from tests.incremental.flows import opened, stepped

GROUPS, STEPS = 7, 6
TABLE = Input("t", (Column("k", "INTEGER"), Column("x", "DOUBLE")), is_keyed=True)
MEAN = Groups((0,), (("k",),), "SELECT k, avg(x) FROM input_0 GROUP BY k", TABLE.columns)
SUM = Sums(
    0,
    (Named("k", "INTEGER", "k"),),
    (Sum("s", "DOUBLE", "sum", "x"),),
    (Named("k", "INTEGER", "k"), Named("x", "DOUBLE", "s")),
)


def rows(numbers: Any, chance: Any) -> dict[str, pa.Table]:
    columns: Any = {
        "k": (numbers % GROUPS).astype("int32"),
        "x": chance.random(len(numbers)) * 1_000,
        KEY: pa.array([b"%d" % number for number in numbers]),
        DELETED: np.zeros(len(numbers), bool),
    }
    return {"t": pa.table(columns)}


@pytest.mark.parametrize("node", [MEAN, SUM], ids=["groups", "sums"])
@pytest.mark.parametrize("total", [20_000, 200_000])
def test_every_group_keeps_one_row(node: Node, total: int) -> None:
    above = Groups((1,), (("k",),), "SELECT DISTINCT k, x FROM input_0", TABLE.columns)
    chance = np.random.default_rng(total)
    flow = opened(Plan((TABLE, node, above)))
    stepped(flow, rows(np.arange(total), chance))
    for _ in range(STEPS):
        stepped(flow, rows(chance.integers(0, total, 100), chance))
        assert flow.result().num_rows == GROUPS
        assert flow._database.one("SELECT count(*), min(_w), max(_w) FROM state.rows_1") == (GROUPS, 1, 1)
    flow.close()
