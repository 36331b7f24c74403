"""The rules for arrays. Draft 2020-12 renamed their keywords; differences have the older names, as in Confluent's registry."""

from __future__ import annotations

from barnabas.registry.formats.json_schema.bounds import bound
from barnabas.registry.formats.json_schema.contents import Content, compare_additional, compare_unevaluated
from barnabas.registry.formats.json_schema.differences import Difference
from barnabas.registry.formats.json_schema.drafts import Draft
from barnabas.registry.formats.json_schema.model import ANYTHING, Kind, Node
from barnabas.registry.formats.json_schema.steps import Report, Steps
from barnabas.registry.formats.json_schema.text import Json


class _Array:
    """The interface of an array schema for the rules."""

    def __init__(self, node: Node) -> None:
        self.all_items: Node | None = None
        items = node.raw.get("items")
        late = node.draft >= Draft.DRAFT_2020_12
        first: Json = node.raw.get("prefixItems") if late else items
        self.items = [node.child(item) for item in first] if isinstance(first, list) else []
        rest = "items" if late and (self.items or items is False) else "" if late else "additionalItems"
        self.content = Content(node, rest, "unevaluatedItems")
        if rest != "items" and isinstance(items, dict | bool) and not (late and items is True):
            self.all_items = node.child(items)


def compare(report: Report, original: Node, update: Node) -> Steps:
    """The differences of two array schemas."""
    before, after = _Array(original), _Array(update)
    report.spend(len(before.items) + len(after.items))
    found: list[Difference] = []
    if before.all_items is not None and after.all_items is not None:
        part = yield before.all_items, after.all_items
        found += report.under(("items",), part)
    elif before.all_items is not after.all_items:
        found.append(Difference("SCHEMA_ADDED" if before.all_items is None else "SCHEMA_REMOVED", ("items",)))
    for index in range(max(len(before.items), len(after.items))):
        if index >= len(after.items):
            part = yield from _removed(report, before.items[index], after)
        elif index >= len(before.items):
            part = yield from _added(report, before, after.items[index])
        else:
            part = yield before.items[index], after.items[index]
        found += report.under(("items", str(index)), part)
    found += yield from compare_additional(report, before.content, after.content, "ADDITIONAL_ITEMS")
    found += yield from compare_unevaluated(report, before.content, after.content, "UNEVALUATED_ITEMS")
    found += bound(original, update, "maxItems", "MAX_ITEMS")
    found += bound(original, update, "minItems", "MIN_ITEMS")
    unique = (original.raw.get("uniqueItems") is True, update.raw.get("uniqueItems") is True)
    if unique[0] != unique[1]:
        found.append(Difference("UNIQUE_ITEMS_REMOVED" if unique[0] else "UNIQUE_ITEMS_ADDED", ("uniqueItems",)))
    if original.draft > Draft.DRAFT_7 and update.draft > Draft.DRAFT_7:
        found += bound(original, update, "maxContains", "MAX_CONTAINS")
        found += bound(original, update, "minContains", "MIN_CONTAINS")
    return found


def _removed(report: Report, node: Node, after: _Array) -> Steps:
    if after.content.is_open:
        return [Difference("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL")]
    if after.content.schema is not None:
        part = yield node, after.content.schema
        covered = "IS" if report.allows(part) else "NOT"
        return [*part, Difference(f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")]
    if node.kind is Kind.FALSE:
        return [Difference("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")]
    return [Difference("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL")]


def _added(report: Report, before: _Array, node: Node) -> Steps:
    if before.content.is_open:
        empty = "WITH_EMPTY_SCHEMA_" if node.kind in ANYTHING else ""
        return [Difference(f"ITEM_{empty}ADDED_TO_OPEN_CONTENT_MODEL")]
    if before.content.schema is None:
        return [Difference("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")]
    part = yield before.content.schema, node
    covered = "IS" if report.allows(part) else "NOT"
    return [*part, Difference(f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")]
