"""Builds the FileDescriptorProto of a syntax tree. It has everything that decides whether the file is valid, without other
options."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2 as pb

from barnabas.registry.formats.protobuf.tree import SCALARS, Enum, Field, File, Group, Message, Option, Range, Text, Word

_TYPES = {name: pb.FieldDescriptorProto.Type.Value("TYPE_" + name.upper()) for name in SCALARS}
_LABELS = {"": 1, "optional": 1, "required": 2, "repeated": 3}
_FLAGS = frozenset(("allow_alias", "packed", "message_set_wire_format", "deprecated", "lazy"))


def to_descriptor(file: File, path: str) -> pb.FileDescriptorProto:
    """The descriptor of a file that is imported as `path`."""
    made = pb.FileDescriptorProto(name=path, package=file.package)
    if file.syntax.isdigit():
        made.syntax = "editions"
        made.edition = pb.Edition.Value(f"EDITION_{file.syntax}")
    elif file.syntax == "proto3":
        made.syntax = "proto3"
    for index, one in enumerate(file.imports):
        made.dependency.append(one.path)
        if one.kind == "public":
            made.public_dependency.append(index)
        elif one.kind == "weak":
            made.weak_dependency.append(index)
    proto3 = file.syntax == "proto3"
    for message in file.messages:
        _message(made.message_type.add(), message, proto3)
    for enum in file.enums:
        _enum(made.enum_type.add(), enum)
    for extend in file.extends:
        for field in extend.fields:
            _field(made.extension.add(), field, made, proto3).extendee = extend.name
    for service in file.services:
        made_service = made.service.add(name=service.name)
        for rpc in service.rpcs:
            made_service.method.add(
                name=rpc.name,
                input_type=rpc.request,
                output_type=rpc.response,
                client_streaming=rpc.request_streams,
                server_streaming=rpc.response_streams,
            )
    _options(made, file.options)
    return made


def _message(made: Any, message: Message, proto3: bool) -> None:
    made.name = message.name
    optional = []
    for field in message.fields:
        made_field = _field(made.field.add(), field, made, proto3)
        if proto3 and field.label == "optional":
            made_field.proto3_optional = True
            optional.append(made_field)
    for index, oneof in enumerate(message.oneofs):
        _options(made.oneof_decl.add(name=oneof.name), oneof.options)
        for field in oneof.fields:
            _field(made.field.add(), field, made, proto3).oneof_index = index
        for group in oneof.groups:
            _group(made, group, proto3).oneof_index = index
    for made_field in optional:  # each optional field has its own synthetic oneof, after all other oneofs
        made_field.oneof_index = len(made.oneof_decl)
        made.oneof_decl.add(name="_" + made_field.name)
    for group in message.groups:
        _group(made, group, proto3)
    for nested in message.messages:
        _message(made.nested_type.add(), nested, proto3)
    for enum in message.enums:
        _enum(made.enum_type.add(), enum)
    _extensions_and_reserved(made, message, proto3)
    _options(made, message.options)


def _extensions_and_reserved(made: Any, message: Message, proto3: bool) -> None:
    for extend in message.extends:
        for field in extend.fields:
            _field(made.extension.add(), field, made, proto3).extendee = extend.name
    for ranges in message.extensions:
        for value in ranges.values:
            if not isinstance(value, str):
                first, last = _bounds(value)
                made.extension_range.add(start=first, end=last + 1)
    for ranges in message.reserved:
        for value in ranges.values:
            if isinstance(value, str):
                made.reserved_name.append(value)
            else:
                first, last = _bounds(value)
                made.reserved_range.add(start=first, end=last + 1)


def _bounds(value: int | Range) -> tuple[int, int]:
    return value if isinstance(value, Range) else (value, value)


def _group(made: Any, group: Group, proto3: bool) -> Any:
    _message(made.nested_type.add(), group.message, proto3)
    made_field = made.field.add(name=group.message.name.lower(), number=group.number, type_name=group.message.name)
    made_field.label = _LABELS[group.label]
    made_field.type = 10
    _options(made_field, group.options)
    return made_field


def _field(made: Any, field: Field, scope: Any, proto3: bool) -> Any:
    made.name = field.name
    made.number = field.number
    if field.map_key:
        name = map_entry_name(field.name)
        made.label = 3
        made.type = 11
        made.type_name = name
        entry = scope.nested_type.add(name=name)
        entry.options.map_entry = True
        _field(entry.field.add(), Field("", field.map_key, "key", 1), entry, proto3)
        _field(entry.field.add(), Field("", field.type, "value", 2), entry, proto3)
    else:
        made.label = _LABELS[field.label]
        kind = _TYPES.get(field.type)
        if kind is None:
            made.type_name = field.type
        else:
            made.type = kind
    if field.options:
        _special_options(made, field)
        _options(made, field.options)
    return made


def _special_options(made: Any, field: Field) -> None:
    for option in field.options:
        if option.custom or not isinstance(option.value, Text | Word):
            continue
        value = option.value.value
        if option.name == "json_name":
            made.json_name = value
        elif option.name == "default":
            if field.type == "bytes":
                value = "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\{byte:03o}" for byte in value.encode())
            made.default_value = value


def map_entry_name(field: str) -> str:
    """The name of the message for an entry of a map."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


def _enum(made: Any, enum: Enum) -> None:
    made.name = enum.name
    for value in enum.values:
        _options(made.value.add(name=value.name, number=value.number), value.options)
    for ranges in enum.reserved:
        for reserved in ranges.values:
            if isinstance(reserved, str):
                made.reserved_name.append(reserved)
            else:
                first, last = _bounds(reserved)
                made.reserved_range.add(start=first, end=last)
    _options(made, enum.options)


def _options(made: Any, options: tuple[Option, ...]) -> None:
    """Set the options that the check of the file needs: flags, and the features of editions."""
    for option in options:
        if option.custom or not isinstance(option.value, Word):
            continue
        value = option.value.value
        if option.name in _FLAGS and not option.path and hasattr(made.options, option.name):
            setattr(made.options, option.name, value == "true")
        elif option.name == "features" and option.path:
            _feature(made.options.features, option.path[1:], value)


def _feature(features: Any, name: str, value: str) -> None:
    field = pb.FeatureSet.DESCRIPTOR.fields_by_name.get(name)
    if field is not None and field.enum_type is not None and value in field.enum_type.values_by_name:
        setattr(features, name, field.enum_type.values_by_name[value].number)
