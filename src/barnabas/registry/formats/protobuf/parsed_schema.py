"""A parsed Protobuf schema, and the format that parses it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Self

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from barnabas.limits import MAX_PROTOBUF_CHARACTERS
from barnabas.registry.formats.interface import Entity, Incompatibility, InvalidSchema, ParsedSchema
from barnabas.registry.formats.protobuf.builtins import builtin_file
from barnabas.registry.formats.protobuf.checks import check
from barnabas.registry.formats.protobuf.compare import Difference, differences
from barnabas.registry.formats.protobuf.descriptors import to_descriptor
from barnabas.registry.formats.protobuf.from_descriptor import from_descriptor
from barnabas.registry.formats.protobuf.messages import COMPATIBLE, OTHER_FORMAT, incompatibilities
from barnabas.registry.formats.protobuf.names import Names
from barnabas.registry.formats.protobuf.normal import normalize, without_extensions
from barnabas.registry.formats.protobuf.parser import parse_file
from barnabas.registry.formats.protobuf.pool import build, needed_files
from barnabas.registry.formats.protobuf.printing import print_file
from barnabas.registry.formats.protobuf.serialized import with_options
from barnabas.registry.formats.protobuf.tags import change_tags, tags_of
from barnabas.registry.formats.protobuf.tree import File

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_PATH = "default"  # name of the schema's own file, as in Confluent's registry


class ProtobufSchema:
    """A schema that google.protobuf accepts."""

    schema_type = "PROTOBUF"

    def __init__(self, file: File, needed: Mapping[str, File]) -> None:
        """`needed` has the referenced files by import path, each after those that it needs."""
        self._file = file
        self._needed = needed

    @cached_property
    def canonical(self) -> str:
        """The text in Confluent's layout."""
        return print_file(self._file)

    def normalized(self) -> Self:
        """The same schema with sorted parts and full names."""
        return type(self)(normalize(self._file, self._names), self._needed)

    def formatted(self, form: str) -> str:
        """The text as `serialized` (a FileDescriptorProto in base64) or `ignore_extensions` (without custom options and extensions)."""
        if form == "serialized":
            return base64.b64encode(self.descriptor().SerializeToString(deterministic=True)).decode()
        if form == "ignore_extensions":
            return print_file(without_extensions(self._file))
        return self.canonical

    def descriptor(self) -> FileDescriptorProto:
        """The descriptor of google.protobuf for the file, with full names of types and with its options."""
        needed = {path: to_descriptor(file, path) for path, file in self._needed.items()}
        pool, file = build(to_descriptor(self._file, _PATH), needed)
        made = FileDescriptorProto()
        file.CopyToProto(made)
        return with_options(self._file, made, pool, self._names)

    def differences(self, written: ProtobufSchema) -> list[Difference]:
        """All changes from `written` to this schema, including those that a reader can read."""
        return differences(written._file, written._names, self._file, self._names, COMPATIBLE)

    def unreadable(self, written: ParsedSchema, *, lenient: bool = False) -> list[Incompatibility]:
        """The reasons why a reader with this schema cannot read data of `written`."""
        if not isinstance(written, ProtobufSchema):
            return [Incompatibility("", OTHER_FORMAT, OTHER_FORMAT)]
        return incompatibilities(self.differences(written))

    def has_top_level_field(self, name: str) -> bool:
        """Whether the first message has this field."""
        if not self._file.messages:
            return False
        message = self._file.messages[0]
        fields = (*message.fields, *(field for oneof in message.oneofs for field in oneof.fields))
        return any(field.name == name for field in fields)

    def tags(self) -> dict[Entity, frozenset[str]]:
        """The tags in `(confluent.message_meta)` and `(confluent.field_meta)`."""
        return tags_of(self._file)

    def with_tags(self, added: Mapping[Entity, Collection[str]], removed: Mapping[Entity, Collection[str]]) -> Self:
        """The schema with changed tags. Raises InvalidSchema if the schema does not have an entity."""
        return type(self)(change_tags(self._file, added, removed), self._needed)

    @cached_property
    def _names(self) -> Names:
        needed = {path: to_descriptor(file, path) for path, file in self._needed.items()}
        files = []
        for path in needed_files(to_descriptor(self._file, _PATH), needed):
            own = self._needed.get(path)
            built = builtin_file(path)
            if own is not None:
                files.append((own, False))
            elif built is not None:
                files.append((from_descriptor(built), True))
        return Names(self._file, files)


class ProtobufFormat:
    """Parses Protobuf schemas: text, or a FileDescriptorProto in base64."""

    schema_type = "PROTOBUF"

    def parse(self, text: str, references: Mapping[str, str], *, strict: bool = False) -> ProtobufSchema:
        """Parse a schema. `strict` also refuses numbers and names that are reserved and used."""
        needed = {path: _read(reference) for path, reference in references.items()}
        file = _read(text)
        check(file, strict=strict)
        build(to_descriptor(file, _PATH), {path: to_descriptor(one, path) for path, one in needed.items()})
        return ProtobufSchema(file, needed)


def _read(text: str) -> File:
    if len(text) <= MAX_PROTOBUF_CHARACTERS and _BASE64.fullmatch(text):
        try:
            return from_descriptor(FileDescriptorProto.FromString(base64.b64decode(text, validate=True)))
        except (binascii.Error, DecodeError):
            raise InvalidSchema("the text is neither a .proto file nor a FileDescriptorProto in base64") from None
    if not text.strip():
        raise InvalidSchema("the schema is empty")
    return parse_file(text)
