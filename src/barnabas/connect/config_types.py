"""The types of config values, as Kafka's ConfigDef has them: from text to a value, from a value to text, and the text of errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from barnabas.connect import catalog
from barnabas.errors import BarnabasError

HIDDEN = "[hidden]"
_COMMA = re.compile(r"\s*,\s*")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_KEY = re.compile(r"""(?: for configuration |^Missing required configuration ")([\w.-]+)""")
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[dDfF]?")


class ConfigError(BarnabasError):
    """A config that is refused. The text is Kafka's."""


class Type(StrEnum):
    """The type of a value."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class Importance(StrEnum):
    """How much a key matters to a user."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(StrEnum):
    """How wide the field for a value is on a page."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class Password:
    """A secret. Its text forms hide it; `value` has it."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return HIDDEN


def invalid(name: str, value: object, message: str | None = None) -> ConfigError:
    """The error about the value of a key."""
    behind = "" if message is None else f": {message}"
    return ConfigError(f"Invalid value {shown(value)} for configuration {name}{behind}")


def missing(name: str) -> str:
    """The text about a key that has no value and needs one."""
    return f'Missing required configuration "{name}" which has no default value.'


def key_of(error: BaseException) -> str | None:
    """The key that the text of an error names; None if it names none in the usual place."""
    found = _KEY.search(str(error))
    return None if found is None else found[1]


def shown(value: object) -> str:
    """A value as Java prints it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    return str(value)


def parse(name: str, value: Any, kind: Type) -> Any:
    """A value of this type; None stays None. Raises ConfigError."""
    if value is None:
        return None
    if isinstance(value, str):
        return _FROM_TEXT[kind](name, value)
    expected, says = _ALREADY[kind]
    if kind is Type.DOUBLE and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, expected) and (kind is Type.BOOLEAN or not isinstance(value, bool)):
        return value
    raise invalid(name, value, says)


def as_text(value: Any, kind: Type) -> str | None:
    """A parsed value as configs have it; None stays None."""
    if value is None:
        return None
    return ",".join(map(shown, value)) if kind is Type.LIST else shown(value)


def _boolean(name: str, text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise invalid(name, text, "Expected value to be either true or false")


def _integer(kind: Type, bits: int) -> Callable[[str, str], int]:
    most = 1 << (bits - 1)

    def parsed(name: str, text: str) -> int:
        trimmed = text.strip()
        if len(trimmed) > 40 or not _INTEGER.fullmatch(trimmed) or not -most <= int(trimmed) < most:
            raise invalid(name, text, f"Not a number of type {kind}")
        return int(trimmed)

    return parsed


def _double(name: str, text: str) -> float:
    trimmed = text.strip()
    if not _DOUBLE.fullmatch(trimmed):
        raise invalid(name, text, f"Not a number of type {Type.DOUBLE}")
    return float(trimmed.rstrip("dDfF"))


def _list(_name: str, text: str) -> list[str]:
    trimmed = text.strip()
    return _COMMA.split(trimmed) if trimmed else []


def _class(name: str, text: str) -> str:
    try:
        return catalog.find(text.strip()).name
    except catalog.UnknownPlugin as error:
        raise invalid(name, text, str(error)) from None


_FROM_TEXT: Mapping[Type, Callable[[str, str], Any]] = {
    Type.BOOLEAN: _boolean,
    Type.STRING: lambda _name, text: text.strip(),
    Type.INT: _integer(Type.INT, 32),
    Type.SHORT: _integer(Type.SHORT, 16),
    Type.LONG: _integer(Type.LONG, 64),
    Type.DOUBLE: _double,
    Type.LIST: _list,
    Type.CLASS: _class,
    Type.PASSWORD: lambda _name, text: Password(text.strip()),
}
_ALREADY: Mapping[Type, tuple[type | tuple[type, ...], str]] = {
    Type.BOOLEAN: (bool, "Expected value to be either true or false"),
    Type.STRING: (str, "Expected value to be a string"),
    Type.INT: (int, "Expected value to be a 32-bit integer"),
    Type.SHORT: (int, "Expected value to be a 16-bit integer (short)"),
    Type.LONG: (int, "Expected value to be a 64-bit integer (long)"),
    Type.DOUBLE: ((int, float), "Expected value to be a double"),
    Type.LIST: ((list, tuple), "Expected a comma separated list."),
    Type.CLASS: (type, "Expected a Class instance or class name."),
    Type.PASSWORD: (Password, "Expected value to be a string"),
}
