"""Reads and writes the tags of messages and fields, in Confluent's options `message_meta` and `field_meta`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from barnabas.registry.formats.interface import Entity, InvalidSchema
from barnabas.registry.formats.protobuf.rewrite import Rewrite
from barnabas.registry.formats.protobuf.tree import Aggregate, Field, File, Message, OneOf, Option, Text, Value, ValueList

_RECORD, _FIELD = "SR_RECORD", "SR_FIELD"
_OPTIONS = {_RECORD: "confluent.message_meta", _FIELD: "confluent.field_meta"}


def tags_of(file: File) -> dict[Entity, frozenset[str]]:
    """The tags of each tagged message and field; paths do not contain the package."""
    reader = _Reader(file.package)
    reader.file(file)
    return reader.found


def change_tags(file: File, added: Mapping[Entity, Collection[str]], removed: Mapping[Entity, Collection[str]]) -> File:
    """The file with the tags in `added` added and those in `removed` removed; its imports stay the same. Raises InvalidSchema
    if an entity does not exist."""
    writer = _Writer(file.package, added, removed)
    made = writer.file(file)
    missing = writer.missing()
    if missing is not None:
        what = "Message" if missing.kind == _RECORD else "Field"
        raise InvalidSchema(f"No matching {what} with name '{missing.path.rpartition('.')[2]}' found in the schema")
    return made


class _Reader(Rewrite):
    def __init__(self, package: str) -> None:
        self.found: dict[Entity, frozenset[str]] = {}
        self._package = package

    def message(self, message: Message, scope: str) -> Message:
        inner = f"{scope}.{message.name}" if scope else message.name
        self._note(inner, _RECORD, message.options)
        return super().message(message, scope)

    def field(self, field: Field, scope: str) -> Field:
        self._note(f"{scope}.{field.name}", _FIELD, field.options)
        return field

    def _note(self, name: str, kind: str, options: tuple[Option, ...]) -> None:
        tags = frozenset(_tags(options, _OPTIONS[kind]))
        if tags:
            self.found[Entity(_below(self._package, name), kind)] = tags


class _Writer(Rewrite):
    """Changes tags. A path may begin with a dot and with the package, or have no package."""

    def __init__(self, package: str, added: Mapping[Entity, Collection[str]], removed: Mapping[Entity, Collection[str]]) -> None:
        self._package = package
        self._added = _without_dots(added)
        self._removed = _without_dots(removed)
        self._met: set[Entity] = set()

    def missing(self) -> Entity | None:
        """An entity in the changes that the file does not have; None if it has all."""
        return next((entity for entity in (*self._added, *self._removed) if entity not in self._met), None)

    def message(self, message: Message, scope: str) -> Message:
        inner = f"{scope}.{message.name}" if scope else message.name
        made = super().message(message, scope)
        return made._replace(options=self._changed(inner, _RECORD, made.options))

    def oneofs(self, oneofs: tuple[OneOf, ...], scope: str) -> tuple[OneOf, ...]:
        """The path of a field in a oneof may also contain the name of the oneof."""
        made = []
        for oneof in super().oneofs(oneofs, scope):
            fields = [
                one._replace(options=self._changed(f"{scope}.{oneof.name}.{one.name}", _FIELD, one.options))
                for one in oneof.fields
            ]
            made.append(oneof._replace(fields=tuple(fields)))
        return tuple(made)

    def field(self, field: Field, scope: str) -> Field:
        return field._replace(options=self._changed(f"{scope}.{field.name}", _FIELD, field.options))

    def _changed(self, name: str, kind: str, options: tuple[Option, ...]) -> tuple[Option, ...]:
        paths = dict.fromkeys((_below(self._package, name), name))
        entities = [one for one in (Entity(path, kind) for path in paths) if one in self._added or one in self._removed]
        if not entities:
            return options
        self._met.update(entities)
        added = [tag for entity in entities for tag in self._added.get(entity, ())]
        removed = {tag for entity in entities for tag in self._removed.get(entity, ())}
        tags = dict.fromkeys([*_tags(options, _OPTIONS[kind]), *added])
        return _with_tags(options, _OPTIONS[kind], [tag for tag in tags if tag not in removed])


def _below(package: str, name: str) -> str:
    """A full name without the package of its file."""
    return name.removeprefix(f"{package}.") if package else name


def _without_dots(changes: Mapping[Entity, Collection[str]]) -> dict[Entity, list[str]]:
    """The tags by path without its leading dot; the paths with and without the dot are the same entity."""
    found: dict[Entity, list[str]] = {}
    for entity, tags in changes.items():
        found.setdefault(Entity(entity.path.removeprefix("."), entity.kind), []).extend(tags)
    return found


def _is_meta(option: Option, name: str) -> bool:
    return option.custom and option.name.removeprefix(".") == name


def _tags(options: tuple[Option, ...], name: str) -> Iterator[str]:
    for option in options:
        if _is_meta(option, name):
            if option.path == ".tags":
                yield from _texts(option.value)
            elif not option.path and isinstance(option.value, Aggregate):
                for key, value in option.value.entries:
                    if key == "tags":
                        yield from _texts(value)


def _texts(value: Value) -> Iterator[str]:
    for item in value.items if isinstance(value, ValueList) else (value,):
        if isinstance(item, Text):
            yield item.value


def _with_tags(options: tuple[Option, ...], name: str, tags: list[str]) -> tuple[Option, ...]:
    """The options with these tags, in one option in braces; its other entries stay."""
    kept = []
    entries: list[tuple[str, Value]] = []
    for option in options:
        if not _is_meta(option, name) or option.path not in ("", ".tags"):
            kept.append(option)
        elif isinstance(option.value, Aggregate):
            entries += [entry for entry in option.value.entries if entry[0] != "tags"]
    if tags:
        entries.append(("tags", ValueList(tuple(Text(tag) for tag in tags))))
    if entries:
        kept.append(Option(name, Aggregate(tuple(entries)), custom=True))
    return tuple(kept)
