"""The rules for objects.

The content model of an object is open if it allows every further property, partially open if further properties must fit a
schema, and closed if it allows none.
"""

from __future__ import annotations

from collections.abc import Set

from barnabas.registry.formats.json_schema import patterns
from barnabas.registry.formats.json_schema.bounds import bound
from barnabas.registry.formats.json_schema.contents import Content, compare_additional, compare_unevaluated
from barnabas.registry.formats.json_schema.differences import Difference
from barnabas.registry.formats.json_schema.model import ANYTHING, Kind, Node
from barnabas.registry.formats.json_schema.steps import Report, Steps


class _Object:
    """The interface of an object schema for the rules."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.properties = node.children("properties")
        required = node.raw.get("required")
        self.required = (
            frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()
        )
        self.patterns = node.children("patternProperties")
        self.content = Content(node, "additionalProperties", "unevaluatedProperties")

    @property
    def is_open(self) -> bool:
        return not self.patterns and self.content.is_open

    def schema_of(self, report: Report, name: str) -> Node | None:
        """The schema of a property that a partially open model covers."""
        report.spend(len(self.patterns))
        for pattern, node in self.patterns.items():
            if patterns.matcher(pattern)(name):
                return node
        return self.content.schema

    def has_default(self, name: str) -> bool:
        return "default" in self.properties[name].raw


def compare(report: Report, original: Node, update: Node) -> Steps:
    """The differences of two object schemas."""
    before, after = _Object(original), _Object(update)
    report.spend(len(before.properties) + len(after.properties))
    found = _required(before, after)
    for name in {**before.properties, **after.properties}:
        if name not in after.properties:
            part = yield from _removed(report, before.properties[name], after, name)
        elif name not in before.properties:
            part = yield from _added(report, before, after, name)
        else:
            part = yield before.properties[name], after.properties[name]
        found += report.under(("properties", name), part)
    found += yield from _dependencies(report, original, update)
    found += yield from compare_additional(report, before.content, after.content, "ADDITIONAL_PROPERTIES")
    found += yield from compare_unevaluated(report, before.content, after.content, "UNEVALUATED_PROPERTIES")
    found += bound(original, update, "maxProperties", "MAX_PROPERTIES")
    found += bound(original, update, "minProperties", "MIN_PROPERTIES")
    return found


def _required(before: _Object, after: _Object) -> list[Difference]:
    found = []
    for name in before.properties:
        if name in after.properties and (name in before.required) != (name in after.required):
            if name in before.required:
                kind = "REQUIRED_ATTRIBUTE_REMOVED"
            else:
                kind = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if after.has_default(name) else "REQUIRED_ATTRIBUTE_ADDED"
            found.append(Difference(kind, ("required", name)))
    return found


def _removed(report: Report, node: Node, after: _Object, name: str) -> Steps:
    if after.is_open:
        return [Difference("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL")]
    covering = after.schema_of(report, name)
    if covering is not None:
        part = yield node, covering
        covered = "IS" if report.allows(part) else "NOT"
        return [*part, Difference(f"PROPERTY_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")]
    if node.kind is Kind.FALSE:
        return [Difference("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")]
    return [Difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL")]


def _added(report: Report, before: _Object, after: _Object, name: str) -> Steps:
    node = after.properties[name]
    if name not in after.required:
        need = "OPTIONAL_PROPERTY"
    else:
        need = "REQUIRED_PROPERTY_WITH_DEFAULT" if after.has_default(name) else "REQUIRED_PROPERTY"
    if before.is_open:
        kind = "PROPERTY_WITH_EMPTY_SCHEMA" if node.kind in ANYTHING else need
        return [Difference(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL")]
    found: list[Difference] = []
    covering = before.schema_of(report, name)
    if covering is not None:
        part = yield covering, node
        covered = "IS" if report.allows(part) else "NOT"
        found = [*part, Difference(f"PROPERTY_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")]
    return [*found, Difference(f"{need}_ADDED_TO_UNOPEN_CONTENT_MODEL")]


def _dependencies(report: Report, original: Node, update: Node) -> Steps:
    before, after = _names(original), _names(update)
    found = []
    for name in {**before, **after}:
        change = _names_changed(before.get(name), after.get(name))
        if change:
            found.append(Difference(f"DEPENDENCY_ARRAY_{change}", ("dependencies", name)))
    old, new = ({**node.children("dependencies"), **node.children("dependentSchemas")} for node in (original, update))
    for name in {**old, **new}:
        if name not in new:
            found.append(Difference("DEPENDENCY_SCHEMA_REMOVED", ("dependencies", name)))
        elif name not in old:
            found.append(Difference("DEPENDENCY_SCHEMA_ADDED", ("dependencies", name)))
        else:
            part = yield old[name], new[name]
            found += report.under(("dependencies", name), part)
    return found


def _names(node: Node) -> dict[str, Set[object]]:
    return {
        name: {value for value in names if isinstance(value, str)}
        for keyword in ("dependencies", "dependentRequired")
        for name, names in node.mapping(keyword).items()
        if isinstance(names, list)
    }


def _names_changed(before: Set[object] | None, after: Set[object] | None) -> str:
    if before == after:
        return ""
    if before is None or after is None:
        return "ADDED" if before is None else "REMOVED"
    return "EXTENDED" if before < after else "NARROWED" if after < before else "CHANGED"
