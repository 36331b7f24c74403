"""Writes the options of a tree, including custom ones, into its FileDescriptorProto.

A message class of the pool knows the extensions: it parses an option in text format, and serializes it to bytes for the
FileDescriptorProto.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_encoding import CEscape

from barnabas.registry.formats.protobuf.builtins import META_PATH, builtin_file, builtin_paths
from barnabas.registry.formats.protobuf.names import Names
from barnabas.registry.formats.protobuf.tree import Aggregate, Enum, Field, File, Message, Option, Text, Value, Word

_Owner = tuple[Any, str, tuple[Option, ...]]  # descriptor, scope, options


def with_options(file: File, made: FileDescriptorProto, pool: DescriptorPool, names: Names) -> FileDescriptorProto:
    """`made` with the options of `file`; options without a declaration are left out.

    A schema may use Confluent's own options without an import, because the registry writes tags like that.
    """
    for path in builtin_paths(META_PATH):
        _add(pool, path)
    for owner, scope, options in _owners(file, made):
        kept = [option for option in options if option.custom or option.name not in ("default", "json_name")]
        if kept:
            kind = GetMessageClass(pool.FindMessageTypeByName(owner.options.DESCRIPTOR.full_name))
            for option in kept:
                read = kind()
                try:
                    text_format.Parse(_text(option, scope, names), read, descriptor_pool=pool)
                except (text_format.ParseError, KeyError):
                    continue
                owner.options.MergeFromString(read.SerializeToString(deterministic=True))
    return made


def _add(pool: DescriptorPool, path: str) -> None:
    """Add a built-in file to the pool, unless the schema or its references have it or define the same names."""
    built = builtin_file(path)
    assert built is not None
    try:
        pool.FindFileByName(path)
    except KeyError:
        with contextlib.suppress(TypeError):
            pool.AddSerializedFile(built.SerializeToString())


def _owners(file: File, made: Any) -> Iterator[_Owner]:
    yield made, file.package, file.options
    for message, one in zip(file.messages, made.message_type, strict=True):
        yield from _message(message, one, file.package)
    for enum, one in zip(file.enums, made.enum_type, strict=True):
        yield from _enum(enum, one, file.package)
    extensions = [field for extend in file.extends for field in extend.fields]
    yield from _fields(extensions, made.extension, file.package)
    for service, one in zip(file.services, made.service, strict=True):
        yield one, file.package, service.options
        for rpc, method in zip(service.rpcs, one.method, strict=True):
            yield method, file.package, rpc.options


def _message(message: Message, made: Any, outer: str) -> Iterator[_Owner]:
    scope = f"{outer}.{message.name}" if outer else message.name
    yield made, scope, message.options
    fields = [*message.fields, *(field for oneof in message.oneofs for field in oneof.fields)]
    yield from _fields(fields, made.field, scope)
    yield from _fields([field for extend in message.extends for field in extend.fields], made.extension, scope)
    # the synthetic oneofs of optional fields come after these
    for oneof, one in zip(message.oneofs, made.oneof_decl, strict=False):
        yield one, scope, oneof.options
    nested = {one.name: one for one in made.nested_type}
    for inner in message.messages:
        yield from _message(inner, nested[inner.name], scope)
    for enum, one in zip(message.enums, made.enum_type, strict=True):
        yield from _enum(enum, one, scope)


def _fields(fields: list[Field], made: Any, scope: str) -> Iterator[_Owner]:
    by_name = {one.name: one for one in made}
    return ((by_name[field.name], scope, field.options) for field in fields)


def _enum(enum: Enum, made: Any, scope: str) -> Iterator[_Owner]:
    yield made, scope, enum.options
    for value, one in zip(enum.values, made.value, strict=True):
        yield one, scope, value.options


def _text(option: Option, scope: str, names: Names) -> str:
    name = option.name
    if option.custom:
        name = f"[{names.resolve_extension(name, scope) or name}]"
    path = [part.strip(".") for part in option.path.split(".") if part] if "(" not in option.path else []
    text = _entry([name, *path][-1], option.value)
    for part in reversed([name, *path][:-1]):
        text = f"{part} {{ {text} }}"
    return text


def _entry(name: str, value: Value) -> str:
    return f"{name}: {_value(value)}"


def _value(value: Value) -> str:
    if isinstance(value, Text):
        return f'"{CEscape(value.value, as_utf8=True)}"'
    if isinstance(value, Word):
        return value.value
    if isinstance(value, Aggregate):
        return "{ " + " ".join(_entry(key, item) for key, item in value.entries) + " }"
    return "[" + ", ".join(_value(item) for item in value.items) + "]"
