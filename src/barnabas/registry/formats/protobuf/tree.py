"""The syntax tree of a `.proto` file: the content of its text, without comments and layout. A tree never changes.

Types are names as in the text, so they may be relative (`names.py` resolves them).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

MAX_FIELD_NUMBER = 536_870_911  # 2^29 - 1
MAX_ENUM_NUMBER = 2_147_483_647

SCALARS = frozenset(
    [
        "double",
        "float",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "sint32",
        "sint64",
        "fixed32",
        "fixed64",
        "sfixed32",
        "sfixed64",
        "bool",
        "string",
        "bytes",
    ]
)


class Text(NamedTuple):
    """A string literal, with its escapes replaced by the characters that they mean."""

    value: str


class Word(NamedTuple):
    """A number, `true`, `false` or the name of an enum's value, as written."""

    value: str


class Aggregate(NamedTuple):
    """A message in braces: pairs of a field's name (an extension's in brackets) and a value."""

    entries: tuple[tuple[str, Value], ...]


class ValueList(NamedTuple):
    """Values in brackets."""

    items: tuple[Value, ...]


Value: TypeAlias = Text | Word | Aggregate | ValueList


class Option(NamedTuple):
    """An option, such as `(acme.note).text = "x"`: the name `acme.note`, custom, with the path `.text`."""

    name: str
    value: Value
    custom: bool = False
    path: str = ""

    @property
    def full_name(self) -> str:
        """The name as text."""
        return (f"({self.name})" if self.custom else self.name) + self.path


class Range(NamedTuple):
    """Numbers from `first` to `last`, both included."""

    first: int
    last: int


class Ranges(NamedTuple):
    """One statement `reserved` or `extensions`: numbers, ranges, names."""

    values: tuple[int | Range | str, ...]


class Field(NamedTuple):
    """A field. A map field has the type of its keys in `map_key`, and the type of its values in `type`."""

    label: str  # "", "optional", "required" or "repeated"
    type: str
    name: str
    number: int
    options: tuple[Option, ...] = ()
    map_key: str = ""


class OneOf(NamedTuple):
    """A oneof: at most one of its fields is set."""

    name: str
    fields: tuple[Field, ...]
    groups: tuple[Group, ...] = ()
    options: tuple[Option, ...] = ()


class EnumValue(NamedTuple):
    """A named number."""

    name: str
    number: int
    options: tuple[Option, ...] = ()


class Enum(NamedTuple):
    """An enum."""

    name: str
    values: tuple[EnumValue, ...] = ()
    options: tuple[Option, ...] = ()
    reserved: tuple[Ranges, ...] = ()


class Extend(NamedTuple):
    """Fields that are added to the message `name`."""

    name: str
    fields: tuple[Field, ...] = ()


class Message(NamedTuple):
    """A message."""

    name: str
    fields: tuple[Field, ...] = ()
    oneofs: tuple[OneOf, ...] = ()
    groups: tuple[Group, ...] = ()
    messages: tuple[Message, ...] = ()
    enums: tuple[Enum, ...] = ()
    options: tuple[Option, ...] = ()
    reserved: tuple[Ranges, ...] = ()
    extensions: tuple[Ranges, ...] = ()
    extends: tuple[Extend, ...] = ()


class Group(NamedTuple):
    """A group of proto2: a field together with its message."""

    label: str
    number: int
    message: Message
    options: tuple[Option, ...] = ()


class Rpc(NamedTuple):
    """A method of a service."""

    name: str
    request: str
    response: str
    request_streams: bool = False
    response_streams: bool = False
    options: tuple[Option, ...] = ()


class Service(NamedTuple):
    """A service."""

    name: str
    rpcs: tuple[Rpc, ...] = ()
    options: tuple[Option, ...] = ()


class Import(NamedTuple):
    """An import; `kind` is "", "public" or "weak"."""

    path: str
    kind: str = ""


class File(NamedTuple):
    """A whole file. `syntax` is "" (that is proto2), "proto2", "proto3", or the year of an edition."""

    syntax: str = ""
    package: str = ""
    imports: tuple[Import, ...] = ()
    options: tuple[Option, ...] = ()
    messages: tuple[Message, ...] = ()
    enums: tuple[Enum, ...] = ()
    extends: tuple[Extend, ...] = ()
    services: tuple[Service, ...] = ()
