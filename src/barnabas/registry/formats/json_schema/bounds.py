"""The rule for keywords that set a bound for a number: a length, a count, a value."""

from __future__ import annotations

from decimal import Decimal

from barnabas.registry.formats.json_schema.differences import Difference
from barnabas.registry.formats.json_schema.model import Node


def _value(node: Node, keyword: str) -> int | Decimal | None:
    value = node.raw.get(keyword)
    exclusive = "exclusiveM" + keyword.removeprefix("m")
    if keyword in ("maximum", "minimum") and node.raw.get(exclusive) is True:
        return None  # in draft 4 this flag makes the bound exclusive, so the keyword sets no inclusive bound
    if value is True:
        value = node.raw.get("m" + keyword.removeprefix("exclusiveM"))
    return value if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def bound(original: Node, update: Node, keyword: str, kind: str) -> list[Difference]:
    """The difference of a bound; empty if it has not changed."""
    before, after = _value(original, keyword), _value(update, keyword)
    if before == after:
        return []
    if before is None or after is None:
        change = "ADDED" if before is None else "REMOVED"
    else:
        change = "INCREASED" if before < after else "DECREASED"
    return [Difference(f"{kind}_{change}", (keyword,))]
