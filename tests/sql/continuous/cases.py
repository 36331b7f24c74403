"""The queries of a file: declarations of tables, and statements, each behind what a change costs.

`keys`: the groups that it touches; `rows`: the rows that change; `all`: everything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from barnabas.sql.catalog.relations import Relation
from tests.sql.continuous.harness import table

FOLDER = Path(__file__).parent
FILES = ("views", "nexmark", "tpch")
ALL, KEYS, ROWS = "all", "keys", "rows"
_TABLE = re.compile(r"^-- table (\w+) \((.*?)\): (.*)$", re.MULTILINE)
_QUERY = re.compile(r"^-- a change costs: (\w+)\n(.*?);$", re.MULTILINE | re.DOTALL)


@cache
def tables(name: str) -> Mapping[str, Relation]:
    """The tables of a file."""
    found = _TABLE.findall((FOLDER / f"{name}.sql").read_text())
    return {each: table(each, columns, key) for each, key, columns in found}


def queries(name: str) -> list[tuple[str, str]]:
    """The cost of a change, and the query."""
    return _QUERY.findall((FOLDER / f"{name}.sql").read_text())
