"""Names as statements have them."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
# Words that are no names without quotation marks, here or in Postgres.
_RESERVED = frozenset(
    (
        "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "authorization", "both", "case", "cast", "check",
        "collate", "collation", "column", "concurrently", "constraint", "create", "cross", "current_catalog", "current_date",
        "current_role", "current_schema", "current_time", "current_timestamp", "current_user", "default", "deferrable", "desc",
        "distinct", "do", "else", "end", "except", "false", "fetch", "for", "foreign", "freeze", "from", "full", "grant", "group",
        "having", "ilike", "in", "initially", "inner", "intersect", "into", "is", "isnull", "join", "lateral", "leading", "left",
        "like", "limit", "localtime", "localtimestamp", "natural", "not", "notnull", "null", "offset", "on", "only", "or", "order",
        "outer", "overlaps", "placing", "primary", "references", "returning", "right", "select", "session_user", "similar", "some",
        "stream", "symmetric", "table", "tablesample", "then", "to", "trailing", "true", "union", "unique", "user", "using", "variadic",
        "verbose", "watermark", "when", "where", "window", "with",
    )
)  # fmt: skip


def shown_name(name: str) -> str:
    """A name in quotation marks, if it would be read otherwise without them."""
    is_plain = _PLAIN.fullmatch(name) is not None and name not in _RESERVED
    return name if is_plain else '"' + name.replace('"', '""') + '"'
