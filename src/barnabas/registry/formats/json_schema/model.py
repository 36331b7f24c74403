"""The kinds of schemas that the rules of compatibility compare.

A schema of one kind of value is one node. If a schema has keywords of several kinds, they are the parts of one `allOf`, as in
the library of Confluent's registry: its rules and the paths in its messages depend on that. Nodes are created on demand.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from barnabas.registry.formats.json_schema.documents import Documents, Place
from barnabas.registry.formats.json_schema.drafts import Draft
from barnabas.registry.formats.json_schema.text import Interner, Json, mapping


class Kind(enum.Enum):
    """The kind of condition that a node sets for a value, in the order of Confluent's names of parts."""

    ARRAY = "array"
    BOOLEAN = "boolean"
    COMBINED = "combined"
    CONDITIONAL = "conditional"
    CONST = "const"
    EMPTY = "empty"
    ENUM = "enum"
    FALSE = "false"
    NOT = "not"
    NULL = "null"
    NUMBER = "number"
    OBJECT = "object"
    REFERENCE = "reference"
    STRING = "string"
    TRUE = "true"


ANYTHING = frozenset({Kind.EMPTY, Kind.TRUE})
RANK = {kind: rank for rank, kind in enumerate(Kind)}
_NUMBER = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_STRING = frozenset({"minLength", "maxLength", "pattern", "format"})
_OBJECT = frozenset(
    {"properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties", "additionalProperties"}
    | {"propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties"}
)
_ARRAY = frozenset(
    {"items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "prefixItems", "unevaluatedItems"}
)
_LATE = {  # keywords that do not exist in a draft
    Draft.DRAFT_4: {"propertyNames", "contains"},
    Draft.DRAFT_2020_12: {"additionalItems"},
}
_MODERN = {"dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "prefixItems"}
_SNIFFED = ((Kind.ARRAY, _ARRAY), (Kind.OBJECT, _OBJECT), (Kind.NUMBER, _NUMBER), (Kind.STRING, _STRING))
_TYPES = {"integer": Kind.NUMBER, **{kind.value: kind for kind in Kind}}
CRITERIA = ("allOf", "anyOf", "oneOf")


class Node:
    """A schema of one kind.

    Args:
        schemas: the object that created the node.
        kind: the kind of its condition.
        raw: the schema in the text; the parts of a schema with several kinds share it.
        place: its place in the text.
        type_name: the type in the text; "" if the schema has none.
        criterion: `allOf`, `anyOf` or `oneOf` if its kind is COMBINED.
        parts: the parts of a COMBINED node that has no list in the text.
    """

    __slots__ = ("_parts", "_schemas", "criterion", "kind", "place", "raw", "type_name", "whole")

    def __init__(
        self,
        schemas: Schemas,
        kind: Kind,
        raw: Mapping[str, Json],
        place: Place,
        *,
        type_name: str = "",
        criterion: str = "",
        parts: list[Node] | None = None,
    ) -> None:
        self._schemas = schemas
        self.kind = kind
        self.raw = raw
        self.place = place
        self.type_name = type_name
        self.criterion = criterion
        self._parts = _combined_first(parts) if parts is not None else None
        self.whole = True  # False if the title and other annotations belong to the allOf around this node

    @property
    def parts(self) -> list[Node]:
        """The schemas that a COMBINED node combines; combined ones come first."""
        if self._parts is None:
            values = self.raw[self.criterion]
            self._parts = _combined_first([self.child(value) for value in values]) if isinstance(values, list) else []
        return self._parts

    @property
    def draft(self) -> Draft:
        return self.place.draft

    def child(self, raw: Json) -> Node:
        """The node of a schema inside this one."""
        return self._schemas.node(raw, self.place)

    def number(self, value: Json) -> int:
        """A number that is the same for equal values, in both schemas of a comparison."""
        return self._schemas.interner.number(value)

    def mapping(self, keyword: str) -> Mapping[str, Json]:
        """The object of a keyword; an empty one if it is absent."""
        return mapping(self.raw.get(keyword))

    def children(self, keyword: str) -> dict[str, Node]:
        """The nodes of the schemas in a map of the text, such as `properties`."""
        return {name: self.child(raw) for name, raw in mapping(self.raw.get(keyword)).items() if isinstance(raw, dict | bool)}

    def common(self, keyword: str) -> Json:
        """A keyword without a condition for values, such as `title`; None if it is absent."""
        return self.raw.get(keyword) if self.whole else None

    def target(self) -> Node:
        """The node itself, or the final target of its reference. A circle of references gives a node without a condition."""
        node, seen = self, set[int]()
        while node.kind is Kind.REFERENCE:
            if id(node) in seen:
                return self._schemas.anything
            seen.add(id(node))
            node = self._schemas.referred(node)
        return node

    @property
    def identity(self) -> object:
        """A key that is equal for parts with the same conditions."""
        return self.kind, self.type_name, self.criterion, self.whole, self.number(self.raw)  # type: ignore[arg-type]  # `number` accepts any JSON


def _combined_first(parts: list[Node]) -> list[Node]:
    return sorted(parts, key=lambda node: node.kind is not Kind.COMBINED)


class Schemas:
    """Creates the nodes of a schema and of its references. Each schema in the text always has the same node."""

    def __init__(self, documents: Documents, interner: Interner) -> None:
        self.interner = interner
        self._documents = documents
        self._nodes: dict[int, Node] = {}
        place = documents.root.place
        self.anything = Node(self, Kind.TRUE, {}, place)
        self._nothing = Node(self, Kind.FALSE, {}, place)

    @property
    def root(self) -> Node:
        return self.node(*self._documents.root)

    def referred(self, node: Node) -> Node:
        """The target node of this node's reference."""
        return self.node(*self._documents.target(node.raw))  # type: ignore[arg-type]  # a reference is an object

    def node(self, raw: Json, around: Place) -> Node:
        """The node of a schema inside `around`."""
        if not isinstance(raw, dict):
            return self._nothing if raw is False else self.anything
        node = self._nodes.get(id(raw))
        if node is None:
            node = self._nodes[id(raw)] = self._made(raw, self._documents.place(raw, around))
        return node

    def _made(self, raw: dict[str, Json], place: Place) -> Node:
        views = self._views(raw, place)
        if len(views) == 1:
            return views[0]
        if not views:
            return Node(self, Kind.EMPTY, raw, place)
        for view in views:
            view.whole = False
        return Node(self, Kind.COMBINED, raw, place, criterion="allOf", parts=views)

    def _views(self, raw: dict[str, Json], place: Place) -> list[Node]:
        modern = place.draft > Draft.DRAFT_7
        views: list[Node] = []
        if isinstance(raw.get("$ref"), str) or (modern and ("$dynamicRef" in raw or "$recursiveRef" in raw)):
            views.append(Node(self, Kind.REFERENCE, raw, place))
            if not modern:
                return views
        if "enum" in raw:
            views.append(Node(self, Kind.ENUM, raw, place))
        views += [Node(self, Kind.COMBINED, raw, place, criterion=name) for name in CRITERIA if isinstance(raw.get(name), list)]
        if "not" in raw:
            views.append(Node(self, Kind.NOT, raw, place))
        if "const" in raw and place.draft > Draft.DRAFT_4:
            views.append(Node(self, Kind.CONST, raw, place))
        return views + self._of_types(raw, place)

    def _of_types(self, raw: dict[str, Json], place: Place) -> list[Node]:
        named = raw.get("type")
        types = named if isinstance(named, list) else [named]
        typed = [Node(self, _TYPES[name], raw, place, type_name=name) for name in types if isinstance(name, str)]
        kinds = {node.kind for node in typed}
        if isinstance(named, list):
            for node in typed:
                node.whole = False
            typed = [Node(self, Kind.COMBINED, raw, place, criterion="anyOf", parts=typed)]
        unknown = _LATE.get(place.draft, set()) | (_MODERN if place.draft <= Draft.DRAFT_7 else set())
        for kind, keywords in _SNIFFED:
            if kind not in kinds and any(name in raw and name not in unknown for name in keywords):
                typed.append(Node(self, kind, raw, place))
        if place.draft >= Draft.DRAFT_7 and any(name in raw for name in ("if", "then", "else")):
            typed.append(Node(self, Kind.CONDITIONAL, raw, place))
        return typed
