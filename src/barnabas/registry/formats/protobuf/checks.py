"""Checks for faults that the language forbids, but google.protobuf's Python runtime accepts."""

from __future__ import annotations

from barnabas.registry.formats.interface import InvalidSchema
from barnabas.registry.formats.protobuf.tree import MAX_FIELD_NUMBER, Enum, EnumValue, Field, File, Group, Message, Range, Ranges

_FIRST_INTERNAL, _LAST_INTERNAL = 19_000, 19_999  # field numbers that Protobuf reserves for its implementation


def check(file: File, *, strict: bool) -> None:
    """Raise InvalidSchema for the first fault."""
    for message in file.messages:
        _message(message, file.syntax, strict)
    for enum in file.enums:
        _enum(enum, file.syntax, strict)


def _message(message: Message, syntax: str, strict: bool) -> None:
    oneof_fields = [field for oneof in message.oneofs for field in oneof.fields]
    groups = [*message.groups, *(group for oneof in message.oneofs for group in oneof.groups)]
    seen: dict[int, str] = {}
    fields: list[tuple[str, Field | Group]] = [(one.name, one) for one in (*message.fields, *oneof_fields)]
    for name, field in [*fields, *((group.message.name.lower(), group) for group in groups)]:
        place = f"the field {message.name}.{name}"
        if not 1 <= field.number <= MAX_FIELD_NUMBER or _FIRST_INTERNAL <= field.number <= _LAST_INTERNAL:
            raise InvalidSchema(f"{place} has the number {field.number}, which is not allowed")
        if field.number in seen:
            raise InvalidSchema(f"{place} has the number {field.number} of the field {seen[field.number]}")
        if syntax == "proto3" and (field.label == "required" or isinstance(field, Group)):
            raise InvalidSchema(f"{place} is {'a group' if isinstance(field, Group) else 'required'}, which proto3 forbids")
        seen[field.number] = name
        if strict:
            _reserved(place, name, field.number, message.reserved)
    for nested in (*message.messages, *(group.message for group in groups)):
        _message(nested, syntax, strict)
    for enum in message.enums:
        _enum(enum, syntax, strict)


def _enum(enum: Enum, syntax: str, strict: bool) -> None:
    if not enum.values:
        raise InvalidSchema(f"the enum {enum.name} has no values")
    if syntax == "proto3" and enum.values[0].number != 0:
        raise InvalidSchema(f"the first value of the enum {enum.name} is not 0")
    aliases = any(option.name == "allow_alias" for option in enum.options)
    seen: dict[int, EnumValue] = {}
    for value in enum.values:
        place = f"the value {enum.name}.{value.name}"
        if not -(2**31) <= value.number < 2**31:
            raise InvalidSchema(f"{place} has the number {value.number}, which is not allowed")
        if value.number in seen and not aliases:
            raise InvalidSchema(f"{place} has the number {value.number} of the value {seen[value.number].name}")
        seen[value.number] = value
        if strict:
            _reserved(place, value.name, value.number, enum.reserved)


def _reserved(place: str, name: str, number: int, reserved: tuple[Ranges, ...]) -> None:
    for ranges in reserved:
        for one in ranges.values:
            if one in (name, number) or (isinstance(one, Range) and one.first <= number <= one.last):
                raise InvalidSchema(f"{place} uses a reserved number or name")
