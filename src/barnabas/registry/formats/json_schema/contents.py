"""The rules for the properties of an object, or the items of an array, that have no name in its schema."""

from __future__ import annotations

from barnabas.registry.formats.json_schema.differences import Difference
from barnabas.registry.formats.json_schema.drafts import Draft
from barnabas.registry.formats.json_schema.model import ANYTHING, Kind, Node
from barnabas.registry.formats.json_schema.steps import Report, Steps


class Content:
    """The further properties or items that a schema allows.

    Args:
        node: the object or array.
        additional: the keyword for all properties or items without a name; "" if there is none.
        unevaluated: the keyword for those that no other keyword has evaluated.
    """

    def __init__(self, node: Node, additional: str, unevaluated: str) -> None:
        value = node.raw.get(additional)
        self.permitted = value is not False
        self.additional = node.child(value) if isinstance(value, dict) else None
        self._stated = value is not None
        self.keyword = additional
        self.unevaluated_keyword = unevaluated
        modern = node.draft > Draft.DRAFT_7 and unevaluated in node.raw
        self.unevaluated = node.child(node.raw[unevaluated]) if modern else None

    @property
    def is_open(self) -> bool:
        """Whether everything is allowed."""
        if not self.permitted or self.additional is not None:
            return False
        return self._stated or self.unevaluated is None or self.unevaluated.kind in ANYTHING

    @property
    def schema(self) -> Node | None:
        """The schema of the further properties or items; None if all or none are allowed."""
        if self._stated or self.unevaluated is None or self.unevaluated.kind in {*ANYTHING, Kind.FALSE}:
            return self.additional
        return self.unevaluated


def compare_additional(report: Report, before: Content, after: Content, kind: str) -> Steps:
    """The differences of `additionalProperties` or `additionalItems`."""
    path = ("additionalProperties" if "PROPERTIES" in kind else "additionalItems",)
    if before.permitted != after.permitted:
        return [Difference(f"{kind}_{'ADDED' if after.permitted else 'REMOVED'}", path)]
    if before.additional is None or after.additional is None:
        if before.additional is after.additional:
            return []
        return [Difference(f"{kind}_{'NARROWED' if before.additional is None else 'EXTENDED'}", path)]
    part = yield before.additional, after.additional
    return report.under(path, part)


def compare_unevaluated(report: Report, before: Content, after: Content, kind: str) -> Steps:
    """The differences of `unevaluatedProperties` or `unevaluatedItems`; if the keyword is absent, everything is allowed."""
    old, new = before.unevaluated, after.unevaluated
    if old is None and new is None:
        return []
    path = (after.unevaluated_keyword,)
    allowed = [_allowed(old), _allowed(new)]
    if allowed == ["some", "some"] and old is not None and new is not None:
        part = yield old, new
        return report.under(path, part)
    if allowed[0] == allowed[1]:
        return []
    if "none" in allowed:
        return [Difference(f"{kind}_{'ADDED' if allowed[0] == 'none' else 'REMOVED'}", path)]
    return [Difference(f"{kind}_{'NARROWED' if allowed[0] == 'all' else 'EXTENDED'}", path)]


def _allowed(node: Node | None) -> str:
    if node is None or node.kind in ANYTHING:
        return "all"
    return "none" if node.kind is Kind.FALSE else "some"
