"""Names of tables: parts with dots between them, each quoted if the user wants so."""

from __future__ import annotations

import re
from typing import NamedTuple

OFFSETS = "_barnabas_offsets"  # where SQL sinks have their offsets, unless a config names another table
_PART = re.compile(r'"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|([^."`]+)')


class TableName(NamedTuple):
    """A name of a table with the schema or the database that it is in."""

    parts: tuple[str, ...]

    @property
    def table(self) -> str:
        """The name alone."""
        return self.parts[-1]

    @property
    def schema(self) -> str | None:
        """The part before the name."""
        return self.parts[-2] if len(self.parts) > 1 else None

    def __str__(self) -> str:
        return ".".join(self.parts)


def table_name(text: str) -> TableName:
    """The name that a text has: `table`, `schema.table`; quotes hold dots together."""
    parts = []
    for quoted, ticked, plain in _PART.findall(text):
        parts.append(quoted.replace('""', '"') or ticked.replace("``", "`") or plain)
    return TableName(tuple(parts) or (text,))
