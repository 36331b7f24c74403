"""The rules for `allOf`, `anyOf` and `oneOf`.

Their parts have no names. So the comparison pairs as many parts of the original as possible with parts of the update that can
read them.
"""

from __future__ import annotations

from collections.abc import Generator

from barnabas.registry.formats.json_schema.differences import Difference
from barnabas.registry.formats.json_schema.matching import maximum_matching
from barnabas.registry.formats.json_schema.model import Kind, Node
from barnabas.registry.formats.json_schema.steps import Report, Steps


def compare_with_single(
    report: Report, original: Node, update: Node
) -> Generator[tuple[Node, Node], list[Difference], list[Difference] | None]:
    """The differences of a combined schema and a schema that is not combined; None if the general rules decide."""
    if (original.kind is Kind.COMBINED) == (update.kind is Kind.COMBINED):
        return None
    combined = update if update.kind is Kind.COMBINED else original
    is_sum = combined.criterion != "allOf"
    if len(combined.parts) > 1 and is_sum != (combined is update):
        return None
    kind = "SUM_TYPE_EXTENDED" if is_sum else "PRODUCT_TYPE_NARROWED"
    for part in combined.parts:
        found = yield (original, part) if combined is update else (part, update)
        if report.allows(found):
            report.spend(len(found))
            return [*found, Difference(kind)] if len(combined.parts) > 1 else found
    return None


def compare(report: Report, original: Node, update: Node) -> Steps:
    """The differences of two combined schemas."""
    found = _criteria(original, update)
    if found and not found[0].compatible:
        return found
    before, after = _distinct(original), _distinct(update)
    is_product = update.criterion == "allOf"
    if len(before) != len(after):
        change = "EXTENDED" if len(before) < len(after) else "NARROWED"
        found.append(Difference(f"{'PRODUCT' if is_product else 'SUM'}_TYPE_{change}"))
    readers: list[list[int]] = []
    edges: dict[tuple[int, int], list[Difference]] = {}
    for row, old in enumerate(before):
        readers.append([])
        for column, new in enumerate(after):
            report.spend(1)
            part = yield old, new
            if report.allows(part):
                readers[row].append(column)
                edges[row, column] = part
    matching = maximum_matching(readers, len(after))
    for row, column in matching.items():
        found += report.under((original.criterion, str(row)), edges[row, column])
    if len(matching) < min(len(before), len(after)):
        found.append(Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED"))
    return found


def _criteria(original: Node, update: Node) -> list[Difference]:
    if original.criterion == update.criterion:
        return []
    singles = (len(original.parts) == 1, len(update.parts) == 1)
    extended = {"anyOf": True, "oneOf": singles[0], "allOf": all(singles)}[update.criterion]
    return [Difference("COMBINED_TYPE_EXTENDED" if extended else "COMBINED_TYPE_CHANGED")]


def _distinct(node: Node) -> list[Node]:
    return list({part.identity: part for part in reversed(node.parts)}.values())[::-1]
