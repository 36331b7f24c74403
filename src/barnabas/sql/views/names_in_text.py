"""The names of tables in the text of a query, as other names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from barnabas.sql.dialect import parse_tokens, tokens_of
from barnabas.sql.planning.names import parts_of, tables_of
from barnabas.sql.states import not_supported

Rename = Callable[[Sequence[str]], Sequence[str] | None]


def with_other_names(text: str, rename: Rename) -> str:
    """The text of a query that reads tables under other names; the old ones stay as aliases. Raises SqlError.

    Args:
        rename: the parts of the other name, for the parts of a name; None where it stays.
    """
    cuts = []
    for table in tables_of(parse_tokens(text, tokens_of(text))):
        made = rename(parts_of(table)) if isinstance(table.this, exp.Identifier) else None
        if made is None:
            continue
        start, end = table.parts[0].meta.get("start"), table.this.meta.get("end")
        if start is None or end is None:
            raise not_supported(f'"{table.name}" is named in a way that cannot be rewritten', hint="DROP the view first")
        name = ".".join('"' + each.replace('"', '""') + '"' for each in made)
        own = text[table.this.meta["start"] : end + 1]
        cuts.append((start, end + 1, name if table.args.get("alias") is not None else f"{name} AS {own}"))
    for start, end, written in sorted(cuts, reverse=True):
        text = text[:start] + written + text[end:]
    return text
