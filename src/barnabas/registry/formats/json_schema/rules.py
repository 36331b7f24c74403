"""The rules for a pair of schemas, and those for `not`, `enum`, `const`, strings and numbers.

Like Confluent's rules, these ignore `format`, `contains`, `propertyNames`, `if`, and changes of a pattern in
`patternProperties`: a change of these keywords is always compatible.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from barnabas.registry.formats.json_schema import array_rules, combined_rules, object_rules
from barnabas.registry.formats.json_schema.bounds import bound
from barnabas.registry.formats.json_schema.differences import Difference
from barnabas.registry.formats.json_schema.model import ANYTHING, Kind, Node
from barnabas.registry.formats.json_schema.steps import Report, Steps
from barnabas.registry.formats.json_schema.text import Json

_COMMON = (("title", "TITLE_CHANGED"), ("description", "DESCRIPTION_CHANGED"), ("default", "DEFAULT_CHANGED"))


def compare(report: Report, original: Node, update: Node) -> Steps:
    """The differences of two schemas that are not references."""
    special = yield from combined_rules.compare_with_single(report, original, update)
    if special is not None:
        return report.bounded(special)
    if original.kind is not update.kind:
        if original.kind is Kind.FALSE or update.kind in ANYTHING or _are_bytes(original, update):
            return []
        return [Difference("TYPE_CHANGED")]
    found = _common(original, update)
    if original.kind is Kind.OBJECT:
        found += yield from object_rules.compare(report, original, update)
    elif original.kind is Kind.ARRAY:
        found += yield from array_rules.compare(report, original, update)
    elif original.kind is Kind.COMBINED:
        found += yield from combined_rules.compare(report, original, update)
    elif original.kind is Kind.NOT:
        reverse = yield update.child(update.raw["not"]), original.child(original.raw["not"])
        found.append(Difference("NOT_TYPE_NARROWED" if report.allows(reverse) else "NOT_TYPE_EXTENDED", ("not",)))
    else:
        found += _values(original, update)
    return report.bounded(found)


def _are_bytes(original: Node, update: Node) -> bool:
    """Whether both schemas are decimals of Connect: it writes a decimal as a string or as a number, and marks both."""
    kinds = {original.kind, update.kind}
    return kinds == {Kind.STRING, Kind.NUMBER} and all(node.common("connect.type") == "bytes" for node in (original, update))


def _common(original: Node, update: Node) -> list[Difference]:
    found = [Difference(kind) for name, kind in _COMMON if original.common(name) != update.common(name)]
    if any(original.common(name) != update.common(name) for name in ("id", "$id")):
        found.insert(0, Difference("ID_CHANGED"))
    return found


def _values(original: Node, update: Node) -> list[Difference]:
    before, after = original.raw, update.raw
    if original.kind is Kind.STRING:
        return [
            *bound(original, update, "maxLength", "MAX_LENGTH"),
            *bound(original, update, "minLength", "MIN_LENGTH"),
            *_changed(before.get("pattern"), after.get("pattern")),
        ]
    if original.kind is Kind.NUMBER:
        return _numbers(original, update)
    if original.kind is Kind.ENUM:
        return _enums(original, update)
    if original.kind is Kind.CONST and original.number(before["const"]) != update.number(after["const"]):
        return [Difference("ENUM_ARRAY_CHANGED", ("const",))]
    return []


def _changed(before: Json, after: Json) -> list[Difference]:
    if before == after:
        return []
    change = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
    return [Difference(f"PATTERN_{change}", ("pattern",))]


def _enums(original: Node, update: Node) -> list[Difference]:
    before, after = (
        {node.number(value) for value in values} if isinstance(values := node.raw["enum"], list) else set()
        for node in (original, update)
    )
    if before == after:
        return []
    change = "EXTENDED" if before < after else "NARROWED" if after < before else "CHANGED"
    return [Difference(f"ENUM_ARRAY_{change}", ("enum",))]


def _numbers(original: Node, update: Node) -> list[Difference]:
    found: list[Difference] = []
    for keyword, kind in (
        ("maximum", "MAXIMUM"),
        ("minimum", "MINIMUM"),
        ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM"),
        ("exclusiveMinimum", "EXCLUSIVE_MINIMUM"),
    ):
        found += bound(original, update, keyword, kind)
    before, after = original.raw.get("multipleOf"), update.raw.get("multipleOf")
    if before != after:
        found.append(Difference(f"MULTIPLE_OF_{_multiple(before, after)}", ("multipleOf",)))
    integers = (original.type_name == "integer", update.type_name == "integer")
    if integers[0] != integers[1]:
        found.append(Difference("TYPE_EXTENDED" if integers[0] else "TYPE_NARROWED"))
    return found


def _multiple(before: Json, after: Json) -> str:
    if not isinstance(before, int | Decimal):
        return "ADDED"
    if not isinstance(after, int | Decimal):
        return "REMOVED"
    try:
        if Decimal(after) % Decimal(before) == 0:
            return "EXPANDED"
        return "REDUCED" if Decimal(before) % Decimal(after) == 0 else "CHANGED"
    except InvalidOperation:  # the quotient has more digits than a Decimal can hold
        return "CHANGED"
