"""The types of a parsed Avro schema.

A schema is a graph: a named type has one object, and every use of its name points to that object, also inside itself.
So types compare by identity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class Place(NamedTuple):
    """A place in the text of a schema: a JSON pointer. It is a chain until an error needs its text."""

    above: Place | None
    token: str | int

    def __str__(self) -> str:
        tokens: list[str] = []
        place: Place | None = self
        while place is not None:
            tokens.append(str(place.token))
            place = place.above
        return "/" + "/".join(reversed(tokens))


class Primitive(msgspec.Struct, eq=False):
    """`kind` is one of `PRIMITIVES`. `properties` are the attributes that Avro does not reserve, including logical types."""

    kind: str
    properties: dict[str, Any] | None = None


class Collected(msgspec.Struct, eq=False):
    """An array or a map. `content` is the type of its items or values, or an unresolved name while the text is parsed."""

    kind: str
    content: Type | None
    properties: dict[str, Any] | None = None


class Union(msgspec.Struct, eq=False):
    branches: list[Type]
    kind: str = "union"
    properties: dict[str, Any] | None = None


class Field(msgspec.Struct, eq=False):
    """A field of a record. `default` is a JSON value, or UNSET without a default. `order` is in lower case."""

    name: str
    type: Type
    doc: str | None
    default: Any
    order: str
    aliases: list[str]
    properties: dict[str, Any] | None


class Named(msgspec.Struct, eq=False):
    """A record, an enum or a fixed. `name` and `aliases` are full names."""

    kind: str
    name: str
    doc: str | None
    aliases: list[str]
    properties: dict[str, Any] | None


class Record(Named, eq=False):
    """`is_error` means that the type in the text is `error`, a record of Avro's protocols."""

    is_error: bool = False
    fields: list[Field] = []
    by_name: dict[str, Field] = {}


class Enum(Named, eq=False):
    symbols: list[str] = []
    default: str | None = None


class Fixed(Named, eq=False):
    size: int = 0


Type = Primitive | Collected | Union | Record | Enum | Fixed

PLAIN = {kind: Primitive(kind) for kind in PRIMITIVES}  # primitive types without further properties


def branch_name(branch: Type) -> str:
    """The name that distinguishes a branch from the others in a union."""
    return branch.name if isinstance(branch, Named) else branch.kind
