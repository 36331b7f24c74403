"""The normal form of a tree, and the form without extensions, as in Confluent's registry."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from barnabas.registry.formats.protobuf.names import Names
from barnabas.registry.formats.protobuf.rewrite import Rewrite
from barnabas.registry.formats.protobuf.tree import (
    SCALARS,
    Aggregate,
    Enum,
    Extend,
    Field,
    File,
    Group,
    Import,
    OneOf,
    Option,
    Range,
    Ranges,
    Rpc,
    Text,
    Value,
    ValueList,
    Word,
)

_NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+|[0-9]*\.?[0-9]+\.?(?:[eE][+-]?[0-9]+)?[fF]?)")
_OCTAL = re.compile(r"0[0-7]+")
_OWN_PREFIX = "confluent."
_MAX_EXPONENT = 30  # numbers with a larger exponent, such as 1e999999, are not written out


def normalize(file: File, names: Names) -> File:
    """The normal form, the same for all texts of the same meaning: sorted parts, full names of types, merged options."""
    return _Normal(names).file(file)


def without_extensions(file: File) -> File:
    """The file without custom options, extension ranges and extensions; Confluent's own options stay."""
    return _Plain().file(file)


class _Plain(Rewrite):
    def options(self, options: tuple[Option, ...], scope: str) -> tuple[Option, ...]:
        return tuple(one for one in options if not one.custom or one.name.startswith(_OWN_PREFIX))

    def extensions(self, ranges: tuple[Ranges, ...]) -> tuple[Ranges, ...]:
        return ()

    def extends(self, extends: tuple[Extend, ...], scope: str) -> tuple[Extend, ...]:
        return ()


class _Normal(Rewrite):
    def __init__(self, names: Names) -> None:
        self._names = names

    def file(self, file: File) -> File:
        made = super().file(file)
        return made._replace(syntax="" if file.syntax == "proto2" else file.syntax, imports=_imports(file.imports))

    def type_name(self, name: str, scope: str) -> str:
        if name in SCALARS:
            return name
        full_name = self._names.resolve(name, scope)
        return name if full_name is None else "." + full_name

    def fields(self, fields: tuple[Field, ...], scope: str) -> tuple[Field, ...]:
        return tuple(sorted(super().fields(fields, scope), key=lambda one: one.number))

    def groups(self, groups: tuple[Group, ...], scope: str) -> tuple[Group, ...]:
        return tuple(sorted(super().groups(groups, scope), key=lambda one: one.number))

    def oneofs(self, oneofs: tuple[OneOf, ...], scope: str) -> tuple[OneOf, ...]:
        made = [one for one in super().oneofs(oneofs, scope) if one.fields or one.groups]
        return tuple(sorted(made, key=lambda one: min(member.number for member in (*one.fields, *one.groups))))

    def enum(self, enum: Enum, scope: str) -> Enum:
        made = super().enum(enum, scope)
        return made._replace(values=tuple(sorted(made.values, key=lambda one: (one.number, one.name))))

    def rpc(self, rpc: Rpc, scope: str) -> Rpc:
        made = super().rpc(rpc, scope)
        return made._replace(request=self.type_name(rpc.request, scope), response=self.type_name(rpc.response, scope))

    def reserved(self, ranges: tuple[Ranges, ...]) -> tuple[Ranges, ...]:
        return _split(ranges)

    def extensions(self, ranges: tuple[Ranges, ...]) -> tuple[Ranges, ...]:
        return _split(ranges)

    def extends(self, extends: tuple[Extend, ...], scope: str) -> tuple[Extend, ...]:
        by_name: dict[str, list[Field]] = {}
        for extend in super().extends(extends, scope):
            by_name.setdefault(self.type_name(extend.name, scope), []).extend(extend.fields)
        return tuple(Extend(name, tuple(sorted(fields, key=lambda one: one.number))) for name, fields in by_name.items())

    def options(self, options: tuple[Option, ...], scope: str) -> tuple[Option, ...]:
        merged: dict[tuple[str, bool, str], list[Option]] = {}
        for option in options:
            one = self._option(option, scope)
            merged.setdefault((one.name, one.custom, one.path), []).append(one)
        made = []
        for key in sorted(merged):
            same = merged[key]
            extension = self._names.extensions.get(key[0])
            if len(same) > 1 and extension is not None and extension.label != "repeated":
                values = [one.value for one in same]
                same = [same[-1]._replace(value=_merge(values))]
            made += same
        return tuple(one._replace(value=self._value(one.value, scope)) for one in made)

    def _option(self, option: Option, scope: str) -> Option:
        """An option with a path becomes an option with a message in braces."""
        if not option.custom:
            return option
        full_name = self._names.resolve_extension(option.name, scope)
        if full_name is None:
            return option
        if "(" in option.path:
            return option._replace(name=full_name)
        value = option.value
        for part in reversed(option.path.split(".")[1:]):
            value = Aggregate(((part, value),))
        return Option(full_name, value, custom=True)

    def _value(self, value: Value, scope: str) -> Value:
        if isinstance(value, Word):
            return Word(_number(value.value))
        if isinstance(value, Aggregate):
            made: dict[str, Value] = {}
            for key, item in value.entries:
                full_name = self._names.resolve_extension(key[1:-1], scope) if key[0] == "[" else None
                if not (isinstance(item, ValueList) and not item.items):
                    made.setdefault(f"[{full_name}]" if full_name else key, self._item(item, scope))
            return Aggregate(tuple(sorted(made.items())))
        if isinstance(value, ValueList):
            return ValueList(tuple(self._item(item, scope) for item in value.items))
        return value

    def _item(self, value: Value, scope: str) -> Value:
        """The normal form of a value: inside a message in braces, a list of one value becomes this value."""
        made = self._value(value, scope)
        return made.items[0] if isinstance(made, ValueList) and len(made.items) == 1 else made


def _imports(imports: tuple[Import, ...]) -> tuple[Import, ...]:
    return tuple(sorted({one._replace(kind="" if one.kind == "weak" else one.kind) for one in imports}))


def _split(ranges: tuple[Ranges, ...]) -> tuple[Ranges, ...]:
    """Split statements: one for each number, range or name, in order."""
    values = {
        value.first if isinstance(value, Range) and value.first == value.last else value for one in ranges for value in one.values
    }
    return tuple(Ranges((value,)) for value in sorted(values, key=_place))


def _place(value: int | Range | str) -> tuple[int, str]:
    if isinstance(value, str):
        return 2**31, value
    return (value.first if isinstance(value, Range) else value), ""


def _merge(values: list[Value]) -> Value:
    """Merge several messages in braces into one; lists of the same field are joined."""
    merged: dict[str, Value] = {}
    for value in values:
        if not isinstance(value, Aggregate):
            return values[-1]
        for key, item in value.entries:
            before = merged.get(key)
            if isinstance(before, Aggregate) and isinstance(item, Aggregate):
                merged[key] = _merge([before, item])
            elif before is None:
                merged[key] = item
            else:
                merged[key] = ValueList((*_items(before), *_items(item)))
    return Aggregate(tuple(merged.items()))


def _items(value: Value) -> tuple[Text | Word | Aggregate | ValueList, ...]:
    return value.items if isinstance(value, ValueList) else (value,)


def _number(text: str) -> str:
    """A number in base 10 without exponent and suffix, with at most three decimals; other words stay unchanged."""
    if not _NUMBER.fullmatch(text):
        return text
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text)
    if digits[:2] in ("0x", "0X"):
        return str(int(text, 16))
    if _OCTAL.fullmatch(digits):
        return f"{sign}{int(digits, 8)}"
    text = text.rstrip("fF")
    try:
        number = Decimal(text)
        if abs(number.adjusted()) > _MAX_EXPONENT:
            return text
        plain = f"{number:.3f}"
    except InvalidOperation:
        return text
    plain = plain.rstrip("0").rstrip(".")
    return "-0" if plain in ("-0", "-") else plain
