"""JSON Schemas in Arrow.

An object with properties becomes a struct, and an object with only `additionalProperties` a map. `integer` becomes `long` and
`number` becomes `double`. Some parts become a string with the JSON text. They have no single type (`oneOf` with several types,
an object with any content), or they contain themselves.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from barnabas.schemas.arrow.shapes import Shape, list_of, map_of, struct_of
from barnabas.schemas.json_codec import JsonCodec
from barnabas.schemas.plain import plain

_PLAIN: dict[str | None, pa.DataType] = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
}
_SEVERAL = ("oneOf", "anyOf")


def shape_of(codec: JsonCodec) -> Shape:
    return _Shapes(codec.schema, dict(codec.needed)).shape(codec.schema, codec.schema, ())


def _text() -> Shape:
    return Shape(pa.string(), lambda value: json.dumps(value, ensure_ascii=False), _parsed, mark="json")


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else plain(value)


class _Shapes:
    def __init__(self, whole: Any, needed: dict[str, Any]) -> None:
        self._whole = whole
        self._needed = needed

    def shape(self, schema: Any, root: Any, inside: tuple[int, ...]) -> Shape:
        """The shape of `schema` in the document `root`; `inside` has the identities of the schemas around it."""
        if not isinstance(schema, dict) or id(schema) in inside:
            return _text()
        inside = (*inside, id(schema))
        if "$ref" in schema:
            found, document = self._resolved(schema["$ref"], root)
            return _text() if found is None else self.shape(found, document, inside)
        several = next((schema[name] for name in _SEVERAL if name in schema), None)
        if several is not None:
            others = [each for each in several if each != {"type": "null"}]
            if len(others) != 1 or "properties" in schema:
                return _text()
            return self.shape(others[0], root, inside)._replace(is_null=len(others) < len(several))
        all_of = schema.get("allOf")
        if all_of is not None:
            return self.shape(all_of[0], root, inside) if len(all_of) == 1 and "properties" not in schema else _text()
        kinds = schema.get("type")
        named = [each for each in (kinds if isinstance(kinds, list) else [kinds]) if each not in (None, "null")]
        is_null = kinds == "null" or (isinstance(kinds, list) and "null" in kinds)
        return self._of_type(named[0] if len(named) == 1 else None, schema, root, inside)._replace(is_null=is_null)

    def _of_type(self, kind: str | None, schema: Any, root: Any, inside: tuple[int, ...]) -> Shape:
        if kind in _PLAIN:
            return Shape(_PLAIN[kind], from_arrow=plain)
        if kind == "array" and isinstance(schema.get("items"), dict) and "prefixItems" not in schema:
            return list_of(self.shape(schema["items"], root, inside))
        if kind == "object" or (kind is None and "properties" in schema):
            fields = {name: self.shape(each, root, inside) for name, each in schema.get("properties", {}).items()}
            if fields:
                return struct_of(fields, keeps_nulls=False)
            if isinstance(schema.get("additionalProperties"), dict) and "patternProperties" not in schema:
                return map_of(self.shape(schema["additionalProperties"], root, inside))
        values = schema.get("enum", [schema["const"]] if "const" in schema else [None])
        if kind is None and all(isinstance(each, str) for each in values):
            return Shape(pa.string(), from_arrow=plain)
        return _text()

    def _resolved(self, reference: Any, root: Any) -> tuple[Any, Any]:
        """The schema behind a reference and its document; None for a reference by an id or an anchor, because this does not
        follow them."""
        name, _, pointer = str(reference).partition("#")
        document = root if not name else self._needed.get(name)
        found = document
        for step in pointer.split("/")[1:]:
            if not isinstance(found, dict):
                return None, None
            found = found.get(unquote(step).replace("~1", "/").replace("~0", "~"))
        return (None, None) if pointer and not pointer.startswith("/") else (found, document)
