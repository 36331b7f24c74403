"""The files that every schema may import without a reference: Google's well-known types and Confluent's own."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.registry.formats.protobuf.descriptors import to_descriptor
from barnabas.registry.formats.protobuf.parser import parse_file

META_PATH = "confluent/meta.proto"
DECIMAL_PATH = "confluent/type/decimal.proto"

# Fixed by Confluent's interface: clients are compiled with these names and numbers.
_META = """syntax = "proto3"; package confluent;
import "google/protobuf/descriptor.proto";
option java_package = "io.confluent.protobuf"; option java_outer_classname = "MetaProto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""
_DECIMAL = """syntax = "proto3"; package confluent.type;
option java_package = "io.confluent.protobuf.type"; option java_outer_classname = "DecimalProto"; option java_multiple_files = true;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
"""
_DATE = """syntax = "proto3"; package google.type; message Date { int32 year = 1; int32 month = 2; int32 day = 3; }"""
_TIME_OF_DAY = """syntax = "proto3"; package google.type;
message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }
"""
_GOOGLE_PROTOBUF = [
    "any",
    "api",
    "descriptor",
    "duration",
    "empty",
    "field_mask",
    "source_context",
    "struct",
    "timestamp",
    "type",
    "wrappers",
]
_GOOGLE_TYPE = [
    "calendar_period",
    "color",
    "date",
    "datetime",
    "dayofweek",
    "decimal",
    "expr",
    "fraction",
    "interval",
    "latlng",
    "money",
    "month",
    "phone_number",
    "postal_address",
    "quaternion",
    "timeofday",
]
_MODULES = {f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2" for name in _GOOGLE_PROTOBUF}
_MODULES |= {f"google/type/{name}.proto": f"google.type.{name}_pb2" for name in _GOOGLE_TYPE}
_TEXTS = {META_PATH: _META, DECIMAL_PATH: _DECIMAL}
_WITHOUT_PACKAGE = {"google/type/date.proto": _DATE, "google/type/timeofday.proto": _TIME_OF_DAY}  # which converters use


@cache
def builtin_file(path: str) -> FileDescriptorProto | None:
    """The file of an import path, or None if no such file is built in.

    Most of `google/type` needs the package googleapis-common-protos.
    """
    if path in _TEXTS:
        return to_descriptor(parse_file(_TEXTS[path]), path)
    if path not in _MODULES:
        return None
    try:
        module = import_module(_MODULES[path])
    except ImportError:
        text = _WITHOUT_PACKAGE.get(path)
        return None if text is None else to_descriptor(parse_file(text), path)
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def builtin_paths(path: str) -> list[str]:
    """A built-in file and the files that it imports, each after those that it needs."""
    found: list[str] = []
    file = builtin_file(path)
    for needed in file.dependency if file is not None else ():
        found += [one for one in builtin_paths(needed) if one not in found]
    return [*found, path]
