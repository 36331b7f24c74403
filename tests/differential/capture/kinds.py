"""The statements of the table `kinds`, which has a column for each value of each type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def table_of(kinds: Mapping[str, Sequence[str]]) -> tuple[str, tuple[str, str]]:
    """The statement that makes the table, and those that insert its rows: all values, and nulls.

    Args:
        kinds: values by type.
    """
    columns = [(kind, value) for kind, values in kinds.items() for value in values]
    declared = ", ".join(f"c{at} {kind}" for at, (kind, _) in enumerate(columns))
    return f"CREATE TABLE kinds (id int PRIMARY KEY, {declared})", (
        f"INSERT INTO kinds VALUES (1, {', '.join(value for _, value in columns)})",
        f"INSERT INTO kinds VALUES (2, {', '.join('NULL' for _ in columns)})",
    )
