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


def table_of_defaults(name: str, defaults: Mapping[str, Sequence[str]], others: str) -> str:
    """The statement that makes a table with defaults.

    Args:
        defaults: by type. Each one has a column that may be null, and one that may not; NULL has the first one alone.
        others: columns.
    """
    columns = list(enumerate((kind, value) for kind, values in defaults.items() for value in values))
    optional = [f"o{at} {kind} NULL DEFAULT {value}" for at, (kind, value) in columns]
    required = [f"n{at} {kind} NOT NULL DEFAULT {value}" for at, (kind, value) in columns if value != "NULL"]
    return f"CREATE TABLE {name} ({', '.join([*optional, *required, others])})"
