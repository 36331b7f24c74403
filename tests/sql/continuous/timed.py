"""Views over tables with watermarks, and random rows that come out of order and too late."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from barnabas.incremental.flow import DuckFlow, open_flow
from barnabas.incremental.interface import DELETED, KEY
from barnabas.incremental.macros import MACROS
from barnabas.incremental.plan import Plan
from barnabas.incremental.whole import WholeFlow
from barnabas.sql.catalog.definitions import WatermarkDefinition
from barnabas.sql.catalog.relations import Relation
from barnabas.sql.catalog.topics import TopicRelation, declared
from barnabas.sql.continuous.planned import plan_view
from tests.incremental.flows import Follower
from tests.sql.continuous.harness import CURSOR, MEMORY, queried, table

EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC).replace(tzinfo=None)


def timed(relation: Relation, column: str, delay: str) -> Relation:
    """A relation with a watermark."""
    assert isinstance(relation, TopicRelation)
    assert relation.definition is not None
    return declared(replace(relation.definition, watermark=WatermarkDefinition(column, delay)))


COLUMNS = "at timestamp, k text, x bigint"
TABLES = {
    "a": timed(table("a", COLUMNS), "at", "INTERVAL '10 minutes'"),
    "b": timed(table("b", "at timestamp, k text, y bigint"), "at", "INTERVAL '5 minutes'"),
    "people": table("people", "k text, name text", key="k"),
    "plain": table("plain", COLUMNS),
}


class Stream:
    """Rows whose times go on with each step; some are far behind.

    Args:
        minutes: that a step goes on.
    """

    def __init__(self, seed: int, minutes: int = 6) -> None:
        self.random, self._minutes, self._step = random.Random(seed), minutes, 0

    def step(self, tables: Mapping[str, Any], most: int = 6) -> dict[str, pa.Table]:
        """The rows of a step."""
        self._step += 1
        found = {}
        for name, node in tables.items():
            rows = [self._row(name) for _ in range(self.random.randint(0, most))]
            if rows:
                schema = TABLES[name].columns
                fields = [schema.field(each.name).with_nullable(True) for each in node.columns]
                if node.is_keyed:
                    fields += [pa.field(KEY, pa.binary()), pa.field(DELETED, pa.bool_())]
                made = pa.schema(fields)
                found[name] = pa.Table.from_pylist([{each: row.get(each) for each in made.names} for row in rows], made)
        return found

    def _row(self, name: str) -> dict[str, Any]:
        draw = self.random
        key = draw.choice("uvw")
        if name == "people":
            return {"k": key, "name": draw.choice(["Ann", "Bob", None]), KEY: key.encode(), DELETED: draw.random() < 0.2}
        behind = draw.choice([0, 0, 1, 3, 8, 20, 60])
        at = EPOCH + dt.timedelta(minutes=self._minutes * self._step - behind, seconds=draw.choice([0, 0, 30]))
        return {"at": at if draw.random() < 0.97 else None, "k": key if draw.random() < 0.95 else None, "x": draw.randint(0, 5),
                "y": draw.randint(0, 5)}  # fmt: skip


def plan_of(text: str, *, is_final: bool = False) -> Plan:
    """The plan of a query."""
    return plan_view(queried(text, TABLES), CURSOR.cursor(), is_final=is_final).plan


def opened(plan: Plan, path: Path | None = None) -> DuckFlow:
    """A flow that knows the functions of the dialect."""
    return open_flow(plan, path, MEMORY, 1, [MACROS])


def oracle(plan: Plan) -> WholeFlow:
    """The same query over all rows that are not late."""
    return WholeFlow(plan, [MACROS])


def shown(follower: Follower, plan: Plan) -> Counter[str]:
    """The rows of a reader that knows the changes alone."""
    names = [each.name for each in plan.columns]
    return Counter(repr([row[name] for name in names]) for row in follower.rows.values())


def listed(rows: pa.Table, plan: Plan) -> Counter[str]:
    """Rows in the same form."""
    names = [each.name for each in plan.columns]
    return Counter(repr([row[name] for name in names]) for row in rows.to_pylist())
