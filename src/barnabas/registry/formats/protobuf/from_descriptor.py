"""Turns a FileDescriptorProto into a syntax tree: the inverse of `descriptors.py` and `serialized.py`."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_encoding import CUnescape

from barnabas.registry.formats.interface import InvalidSchema
from barnabas.registry.formats.protobuf.tree import (
    Aggregate,
    Enum,
    EnumValue,
    Extend,
    Field,
    File,
    Group,
    Import,
    Message,
    OneOf,
    Option,
    Range,
    Ranges,
    Rpc,
    Service,
    Text,
    Value,
    ValueList,
    Word,
)

_META = "confluent/meta.proto"
_GROUP, _STRING, _BYTES = 10, 9, 12
_LABELS = {1: "optional", 2: "required", 3: "repeated"}


def from_descriptor(made: pb.FileDescriptorProto) -> File:
    """The tree of a file. Raises InvalidSchema if its parts do not fit together."""
    try:
        return _file(made)
    except (IndexError, KeyError, ValueError) as error:
        raise InvalidSchema(f"the FileDescriptorProto is not valid: {error}") from None


def _file(made: Any) -> File:
    syntax = pb.Edition.Name(made.edition).removeprefix("EDITION_") if made.syntax == "editions" else made.syntax or "proto2"
    kinds = dict.fromkeys(made.public_dependency, "public") | dict.fromkeys(made.weak_dependency, "weak")
    return File(
        syntax,
        made.package,
        tuple(Import(path, kinds.get(index, "")) for index, path in enumerate(made.dependency)),
        _options(made.options),
        tuple(_message(one, syntax) for one in made.message_type),
        tuple(_enum(one) for one in made.enum_type),
        _extends(made.extension, syntax),
        tuple(_service(one) for one in made.service),
    )


def _message(made: Any, syntax: str) -> Message:
    entries = {one.name: one for one in made.nested_type if one.options.map_entry}
    groups = {one.type_name.rpartition(".")[2] for one in made.field if one.type == _GROUP}
    nested = {one.name: one for one in made.nested_type}
    fields: list[Field] = []
    members: dict[int, tuple[list[Field], list[Group]]] = {index: ([], []) for index in range(len(made.oneof_decl))}
    plain_groups: list[Group] = []
    for one in made.field:
        in_oneof = one.HasField("oneof_index") and not one.proto3_optional
        if one.type == _GROUP:
            body = _message(nested[one.type_name.rpartition(".")[2]], syntax)
            group = Group("" if in_oneof else _LABELS[one.label], one.number, body, _options(one.options))
            (members[one.oneof_index][1] if in_oneof else plain_groups).append(group)
        else:
            field = _field(one, syntax, entries, in_oneof)
            (members[one.oneof_index][0] if in_oneof else fields).append(field)
    return Message(
        made.name,
        tuple(fields),
        tuple(
            OneOf(oneof.name, tuple(members[index][0]), tuple(members[index][1]), _options(oneof.options))
            for index, oneof in enumerate(made.oneof_decl)
            if any(members[index])
        ),
        tuple(plain_groups),
        tuple(_message(one, syntax) for one in made.nested_type if one.name not in entries and one.name not in groups),
        tuple(_enum(one) for one in made.enum_type),
        _options(made.options),
        _ranges(made.reserved_range, made.reserved_name, 1),
        _ranges(made.extension_range, (), 1),
        _extends(made.extension, syntax),
    )


def _field(made: Any, syntax: str, entries: dict[str, Any], in_oneof: bool) -> Field:
    entry = entries.get(made.type_name.rpartition(".")[2]) if made.type_name else None
    options = list(_options(made.options))
    if made.HasField("default_value"):
        options.append(Option("default", _default(made)))
    if made.json_name and made.json_name != _json_name(made.name):
        options.append(Option("json_name", Text(made.json_name)))
    if entry is not None:
        key, value = sorted(entry.field, key=lambda one: one.number)
        return Field("", _type(value), made.name, made.number, tuple(options), _type(key))
    label = _LABELS[made.label]
    if in_oneof or (label == "optional" and syntax != "proto2" and not made.proto3_optional):
        label = ""
    return Field(label, _type(made), made.name, made.number, tuple(options))


def _default(made: Any) -> Value:
    if made.type == _STRING:
        return Text(made.default_value)
    if made.type == _BYTES:
        return Text(CUnescape(made.default_value).decode("latin-1"))
    return Word(made.default_value)


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _type(made: Any) -> str:
    if made.type_name:
        return str(made.type_name)
    return str(pb.FieldDescriptorProto.Type.Name(made.type)).removeprefix("TYPE_").lower()


def _ranges(ranges: Any, names: Any, beyond: int) -> tuple[Ranges, ...]:
    values = [Range(one.start, one.end - beyond) for one in ranges]
    numbers = tuple(one.first if one.first == one.last else one for one in values)
    return tuple(Ranges(one) for one in (numbers, tuple(names)) if one)


def _enum(made: Any) -> Enum:
    values = tuple(EnumValue(one.name, one.number, _options(one.options)) for one in made.value)
    return Enum(made.name, values, _options(made.options), _ranges(made.reserved_range, made.reserved_name, 0))


def _extends(made: Any, syntax: str) -> tuple[Extend, ...]:
    by_name: dict[str, list[Field]] = {}
    for one in made:
        by_name.setdefault(one.extendee, []).append(_field(one, syntax, {}, False))
    return tuple(Extend(name, tuple(fields)) for name, fields in by_name.items())


def _service(made: Any) -> Service:
    rpcs = [
        Rpc(one.name, one.input_type, one.output_type, one.client_streaming, one.server_streaming, _options(one.options))
        for one in made.method
    ]
    return Service(made.name, tuple(rpcs), _options(made.options))


@cache
def _known_options() -> DescriptorPool:
    """A pool with the options of Google and Confluent. Other custom options have no names in a FileDescriptorProto."""
    from barnabas.registry.formats.protobuf.builtins import builtin_file, builtin_paths

    pool = DescriptorPool()
    for path in builtin_paths(_META):
        file = builtin_file(path)
        assert file is not None
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _options(options: Any) -> tuple[Option, ...]:
    data = options.SerializeToString()
    if not data:
        return ()
    read = GetMessageClass(_known_options().FindMessageTypeByName(options.DESCRIPTOR.full_name)).FromString(data)
    return tuple(
        Option(field.full_name if field.is_extension else field.name, _value(field, value), field.is_extension)
        for field, value in read.ListFields()
        if field.name not in ("map_entry", "uninterpreted_option")
    )


def _value(field: Any, value: Any) -> Value:
    if field.is_repeated:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, item = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            pairs = [(("key", _single(key, one)), ("value", _single(item, value[one]))) for one in sorted(value)]
            return ValueList(tuple(Aggregate(pair) for pair in pairs))
        return ValueList(tuple(_single(field, one) for one in value))
    return _single(field, value)


def _single(field: Any, value: Any) -> Value:
    if field.message_type is not None:
        return Aggregate(tuple((one.name, _value(one, item)) for one, item in value.ListFields()))
    if field.enum_type is not None:
        return Word(field.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return Word("true" if value else "false")
    if isinstance(value, bytes):
        return Text(value.decode("latin-1"))
    return Text(value) if isinstance(value, str) else Word(str(value))
