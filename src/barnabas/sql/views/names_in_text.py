"""The names of tables in the text of a query, as other names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from barnabas.sql.dialect import Statement, parse_tokens, tokens_of
from barnabas.sql.planning.names import parts_of, tables_of
from barnabas.sql.planning.time_windows import is_stream, tables_in_windows
from barnabas.sql.statements.emit import without_emit
from barnabas.sql.states import not_supported

Rename = Callable[[Sequence[str]], Sequence[str] | None]


def with_other_names(text: str, rename: Rename) -> str:
    """The text of a query that reads tables under other names; the old ones stay as aliases. Raises SqlError.

    Args:
        rename: the parts of the other name, for the parts of a name; None where it stays.
    """
    cuts = []
    tree = parse_tokens(text, without_emit(Statement(text, tokens_of(text))).tokens)
    for each in tables_in_windows(tree):
        named = each.expressions[0] if is_stream(each) else each
        made = rename([part.name for part in named.parts]) if isinstance(named, exp.Column) else None
        if made is not None:
            cuts.append((named.parts[0].meta["start"], named.parts[-1].meta["end"] + 1, _written(made)))
    for table in tables_of(tree):
        made = rename(parts_of(table)) if isinstance(table.this, exp.Identifier) else None
        if made is None:
            continue
        start, end = table.parts[0].meta.get("start"), table.this.meta.get("end")
        if start is None or end is None:
            raise not_supported(f'"{table.name}" is named in a way that cannot be rewritten', hint="DROP the view first")
        name = _written(made)
        own = text[table.this.meta["start"] : end + 1]
        cuts.append((start, end + 1, name if table.args.get("alias") is not None else f"{name} AS {own}"))
    for start, end, written in sorted(cuts, reverse=True):
        text = text[:start] + written + text[end:]
    return text


def _written(parts: Sequence[str]) -> str:
    return ".".join('"' + each.replace('"', '""') + '"' for each in parts)
