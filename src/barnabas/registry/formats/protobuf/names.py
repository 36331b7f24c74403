"""Finds the type or extension for a name in a file: the innermost scope with this name wins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.registry.formats.protobuf.tree import Enum, Extend, Field, File, Message


class Declared(NamedTuple):
    """A type or an extension, and the place of its declaration.

    Args:
        node: the message, enum or extending field.
        package: the package of its file.
        local: whether its file is the schema itself.
        builtin: whether its file is one of Google's or Confluent's.
    """

    node: Message | Enum | Field
    package: str
    local: bool
    builtin: bool


class Names:
    """All names that a schema can use, by their full names."""

    def __init__(self, file: File, needed: Iterable[tuple[File, bool]] = ()) -> None:
        """`needed` gives the imported files, and whether each is built in."""
        self._package = file.package
        self.types: dict[str, Declared] = {}
        self.extensions: dict[str, Field] = {}
        for one, builtin in needed:
            self._add(one, local=False, builtin=builtin)
        self._add(file, local=True, builtin=False)

    def resolve(self, name: str, scope: str) -> str | None:
        """The full name of the type for `name` inside `scope` (a full name); None if no type has this name."""
        return _resolve(name, scope, self.types)

    def resolve_extension(self, name: str, scope: str) -> str | None:
        """The full name of the extension for `name` inside `scope`."""
        return _resolve(name, scope, self.extensions)

    def _add(self, file: File, *, local: bool, builtin: bool) -> None:
        for scope, node in declarations(file):
            full_name = f"{scope}.{node.name}" if scope else node.name
            if isinstance(node, Field):
                self.extensions[full_name] = node
            else:
                self.types[full_name] = Declared(node, file.package, local, builtin)


def _resolve(name: str, scope: str, known: dict[str, Declared] | dict[str, Field]) -> str | None:
    if name.startswith("."):
        return name[1:] if name[1:] in known else None
    while scope:
        full_name = f"{scope}.{name}"
        if full_name in known:
            return full_name
        scope = scope.rpartition(".")[0]
    return name if name in known else None


def declarations(file: File) -> Iterator[tuple[str, Message | Enum | Field]]:
    """All types and extending fields of a file with the full names of their scopes."""
    yield from _extensions(file.package, file.extends)
    for enum in file.enums:
        yield file.package, enum
    for message in file.messages:
        yield from _nested(file.package, message)


def _nested(scope: str, message: Message) -> Iterator[tuple[str, Message | Enum | Field]]:
    yield scope, message
    inner = f"{scope}.{message.name}" if scope else message.name
    yield from _extensions(inner, message.extends)
    for enum in message.enums:
        yield inner, enum
    for nested in message.messages:
        yield from _nested(inner, nested)
    for groups in (message.groups, *(oneof.groups for oneof in message.oneofs)):
        for group in groups:
            yield from _nested(inner, group.message)


def _extensions(scope: str, extends: Iterable[Extend]) -> Iterator[tuple[str, Field]]:
    for extend in extends:
        for field in extend.fields:
            yield scope, field
