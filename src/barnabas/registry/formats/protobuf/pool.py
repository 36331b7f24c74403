"""Checks a file with google.protobuf: names, numbers and types, with the files that it imports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from barnabas.limits import MAX_PROTOBUF_FILES
from barnabas.registry.formats.interface import InvalidSchema
from barnabas.registry.formats.protobuf.builtins import builtin_file, builtin_paths


def needed_files(file: FileDescriptorProto, references: Mapping[str, FileDescriptorProto]) -> list[str]:
    """The paths of the files that a file imports, directly or indirectly, each after those that it needs.

    Args:
        file: the file that imports others.
        references: the referenced files by path, each after those that it needs.
    """
    if len(references) > MAX_PROTOBUF_FILES:
        raise InvalidSchema(f"the schema needs {len(references)} others; at most {MAX_PROTOBUF_FILES} are allowed")
    wanted = set(file.dependency)
    ordered = []
    for path in reversed(list(references)):
        if path in wanted:
            ordered.append(path)
            wanted.update(references[path].dependency)
    builtin: dict[str, None] = {}
    for path in sorted(wanted.difference(references)):
        if builtin_file(path) is None:
            raise InvalidSchema(f'the import "{path}" has no reference, and no built-in file has this name')
        builtin.update(dict.fromkeys(builtin_paths(path)))
    return [path for path in builtin if path not in references] + ordered[::-1]


def build(file: FileDescriptorProto, references: Mapping[str, FileDescriptorProto]) -> tuple[DescriptorPool, Any]:
    """A pool with the file and all that it needs, and the file's descriptor. Raises InvalidSchema if the file is not valid."""
    pool = DescriptorPool()
    for path in needed_files(file, references):
        needed = references.get(path) or builtin_file(path)
        assert needed is not None
        try:
            pool.AddSerializedFile(needed.SerializeToString())
        except TypeError as error:
            raise InvalidSchema(f'the import "{path}" is not valid: {_reason(error)}') from None
    try:
        return pool, pool.AddSerializedFile(file.SerializeToString())
    except TypeError as error:
        raise InvalidSchema(_reason(error)) from None


def _reason(error: TypeError) -> str:
    return str(error).removeprefix("Couldn't build proto file into descriptor pool: ").removeprefix("couldn't build proto file: ")
