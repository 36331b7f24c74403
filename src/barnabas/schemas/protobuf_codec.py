"""Protobuf data with google.protobuf, and classes from the file descriptor that the registry returns."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from barnabas.schemas.errors import CannotDecode, CannotEncode
from barnabas.schemas.registered import RegisteredSchema

_UNSIGNED = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)  # columns have decimals for them
_DATES = {  # of googleapis-common-protos, which may not be installed; 5 is the number of int32
    "google/type/date.proto": ("Date", (("year", 5), ("month", 5), ("day", 5))),
    "google/type/timeofday.proto": ("TimeOfDay", (("hours", 5), ("minutes", 5), ("seconds", 5), ("nanos", 5))),
}
_FILE = "default"  # name of the file with the schema itself


class ProtobufCodec:
    """Values are messages; `encode` also accepts a dict with the names of the fields."""

    def __init__(self, pool: DescriptorPool, file: Any, reader: Any = None, message: str | None = None) -> None:
        self.pool = pool
        self._file = file
        self._reader = reader
        self._messages = dict(_messages(file))
        if not self._messages:
            raise CannotDecode("the Protobuf schema has no message")
        found = next(iter(self._messages)) if message is None else self._path_of(message)
        self.path: Sequence[int] | None = found
        self.descriptor = self._messages[found]
        self._class = GetMessageClass(self.descriptor)
        self.record_name: str | None = self.descriptor.full_name

    def _path_of(self, name: str) -> tuple[int, ...]:
        for path, descriptor in self._messages.items():
            if name in (descriptor.full_name, descriptor.name):
                return path
        names = ", ".join(each.full_name for each in self._messages.values())
        raise CannotEncode(f"the Protobuf schema has no message {name}; there are {names}"[:500])

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, Message):
            value = self.from_json(value)
        elif value.DESCRIPTOR.full_name != self.record_name:
            raise CannotEncode(f"the message is a {value.DESCRIPTOR.full_name}, and the schema wants a {self.record_name}")
        try:
            return bytes(value.SerializeToString())
        except (EncodeError, ValueError) as error:
            raise CannotEncode(f"the message cannot be written: {error}") from error

    def decode(self, data: bytes, path: Sequence[int] | None = None) -> Any:
        descriptor = self.descriptor if path is None else self._messages.get(tuple(path))
        if descriptor is None:
            raise CannotDecode(f"the Protobuf schema has no message at {list(path or ())}")
        if self._reader is not None:
            descriptor = next((d for _, d in _messages(self._reader) if d.full_name == descriptor.full_name), None)
            if descriptor is None:
                raise CannotDecode("the reader's Protobuf schema has no message of this name")
        made = GetMessageClass(descriptor)()
        try:
            made.ParseFromString(data)
        except (DecodeError, RuntimeError) as error:
            raise CannotDecode(f"the data is no {descriptor.full_name}: {error}") from error
        return made

    def from_json(self, value: Any) -> Any:
        if not isinstance(value, dict) and self.descriptor.file.package != "google.protobuf":
            raise CannotEncode(f"the value does not fit {self.record_name}: it is not an object")
        try:
            return json_format.ParseDict(value, self._class(), descriptor_pool=self.pool)
        except (json_format.Error, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise CannotEncode(f"the value does not fit {self.record_name}: {str(error).splitlines()[0]}") from error

    def of_row(self, row: Mapping[str, Any]) -> Any:
        """A message of a row whose values have the types of the fields, where `takes_rows` says so. Raises ValueError, TypeError."""
        return self._class(**row)

    @cached_property
    def takes_rows(self) -> bool:
        """Whether the library makes of a row what `from_json` makes: it is so for plain values and messages of them."""
        return _is_plain(self.descriptor, ())

    def to_json(self, value: Any) -> Any:
        return json_format.MessageToDict(
            value, preserving_proto_field_name=True, always_print_fields_with_no_presence=True, descriptor_pool=self.pool
        )


def _is_plain(descriptor: Any, inside: tuple[str, ...]) -> bool:
    name = descriptor.full_name
    if name == "google.protobuf.Timestamp" and inside:  # the library takes moments of Python for its fields
        return True
    if name in inside or descriptor.file.package == "google.protobuf" or descriptor.GetOptions().map_entry:
        return False
    if any(len(each.fields) > 1 for each in descriptor.oneofs):  # only one of its fields may be set
        return False
    return all(
        field.type not in _UNSIGNED and (field.message_type is None or _is_plain(field.message_type, (*inside, name)))
        for field in descriptor.fields
    )


def build(schema: RegisteredSchema) -> tuple[DescriptorPool, Any]:
    """A pool, and the file of a schema in it. Raises CannotDecode."""
    try:
        file = _file_of(schema.text, _FILE)
        others = {each.name: _file_of(each.text, each.name) for each in schema.needed}
        pool, added = DescriptorPool(), set[str]()

        def add(one: FileDescriptorProto) -> None:
            if one.name in added:
                return
            added.add(one.name)
            for name in one.dependency:
                add(others.get(name) or _known_file(name))
            pool.AddSerializedFile(one.SerializeToString())

        add(file)
        return pool, pool.FindFileByName(_FILE)
    except (binascii.Error, DecodeError, TypeError, KeyError, ValueError, RecursionError) as error:
        raise CannotDecode(f"the Protobuf schema cannot be used: {str(error).splitlines()[0]}") from error


def make(schema: RegisteredSchema, reader: RegisteredSchema | None, message: str | None) -> ProtobufCodec:
    pool, file = build(schema)
    return ProtobufCodec(pool, file, None if reader is None or reader.is_same(schema) else build(reader)[1], message)


def _file_of(text: str, name: str) -> FileDescriptorProto:
    made = FileDescriptorProto()
    made.ParseFromString(b64decode(text, validate=True))
    made.name = name
    return made


def _messages(file: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every message with its path, in the order of the text."""

    def inside(path: tuple[int, ...], descriptor: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
        yield path, descriptor
        for number, each in enumerate(descriptor.nested_types):
            yield from inside((*path, number), each)

    names = file.message_types_by_name
    for number, descriptor in enumerate(names.values()):
        yield from inside((number,), descriptor)


def _known_file(name: str) -> FileDescriptorProto:
    """A file that schemas may import without a reference. Raises ValueError."""
    made = FileDescriptorProto()
    if name == "confluent/meta.proto":
        made.ParseFromString(_meta())
    elif name == "confluent/type/decimal.proto":
        made.ParseFromString(_messages_of(name, "confluent.type", "Decimal", (("value", 12), ("precision", 13), ("scale", 5))))
    elif name.startswith(("google/protobuf/", "google/type/")) and name.endswith(".proto"):
        module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
        try:
            import_module(module).DESCRIPTOR.CopyToProto(made)
        except ModuleNotFoundError:
            if name in _DATES:
                made.ParseFromString(_messages_of(name, "google.type", *_DATES[name]))
                return made
            raise ValueError(f"the schema imports {name}, which is not installed") from None
    else:
        raise ValueError(f"the schema imports {name} and has no reference to it")
    return made


def _meta() -> bytes:
    """Confluent's options. Their values stay unknown fields, since this module does not read them."""
    return bytes(FileDescriptorProto(name="confluent/meta.proto", package="confluent", syntax="proto3").SerializeToString())


def _messages_of(name: str, package: str, message: str, fields: Sequence[tuple[str, int]]) -> bytes:
    """The file of one message, whose fields have numbers from 1 on.

    Args:
        fields: names, and numbers of types.
    """
    file = FileDescriptorProto(name=name, package=package, syntax="proto3")
    made = file.message_type.add(name=message)
    for number, (field, kind) in enumerate(fields, 1):
        made.field.add(name=field, number=number, type=kind, label=1)
    return bytes(file.SerializeToString())
