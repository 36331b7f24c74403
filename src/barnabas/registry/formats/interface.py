"""The interface between the registry and the formats of its schemas.

A format parses the text of a schema. The parsed schema gives the stored text, the normalised form, and the reasons why a reader
with this schema cannot read data of another schema. The registry uses nothing else of a format.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol, Self


class InvalidSchema(ValueError):
    """The text is not a schema of its format. The message describes the error and its place."""


class Reference(NamedTuple):
    """A reference of one schema to another.

    Args:
        name: its name in the text: a full name in Avro, a URI in JSON Schema, an import path in Protobuf.
        subject: the subject of the other schema.
        version: the version of that subject; -1 is the latest.
    """

    name: str
    subject: str
    version: int


class Entity(NamedTuple):
    """A part of a schema that can carry tags.

    Args:
        path: the path in Confluent's form, such as `.acme.Order.id`.
        kind: `SR_RECORD` or `SR_FIELD`.
    """

    path: str
    kind: str


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a reader cannot read data of another schema.

    Args:
        kind: Confluent's name of the rule, such as `READER_FIELD_MISSING_DEFAULT_VALUE`.
        description: one sentence that names the place in the schema. It calls the reader's schema new and the writer's schema old.
        text: the whole message of Confluent's registry, with the kind and the description in braces.
        by_old: the description and the text if the reader has the older schema; None if they are the same.
    """

    kind: str
    description: str
    text: str
    by_old: tuple[str, str] | None = None

    @classmethod
    def of(cls, kind: str, sentence: str, frame: str, **values: str) -> Self:
        """An incompatibility from templates of the description (`sentence`) and of the text (`frame`). `frame` also has the
        names `kind` and `description`."""
        words = [each.format(**values) for each in (sentence, _exchanged(sentence))]
        texts = [frame.format(kind=kind, description=each, **values) for each in words]
        return cls(kind, words[0], texts[0], (words[1], texts[1]))

    def read_by_old(self) -> Incompatibility:
        """The same for a reader with the older schema: the words "new" and "old" are exchanged."""
        return self if self.by_old is None else Incompatibility(self.kind, *self.by_old)


@lru_cache(maxsize=256)  # a format has only a few dozen sentences
def _exchanged(sentence: str) -> str:
    return re.sub(r"\b(?:new|old)\b", lambda word: "old" if word[0] == "new" else "new", sentence)


class ParsedSchema(Protocol):
    """A valid schema. Schemas with equal texts of `canonical` and equal references are the same."""

    @property
    def schema_type(self) -> str:
        """`AVRO`, `JSON` or `PROTOBUF`."""

    @property
    def canonical(self) -> str:
        """The text that the registry stores, serves and compares."""

    def normalized(self) -> Self:
        """The same schema in normal form: texts of the same meaning have the same normal form (`normalize=true`)."""

    def formatted(self, form: str) -> str:
        """The text for `?format=`: "" gives `canonical`, and so does an unknown name; each format has its own names."""

    def unreadable(self, written: ParsedSchema, *, lenient: bool = False) -> list[Incompatibility]:
        """The reasons why a reader with this schema cannot read data of `written`; empty if it can read all.

        Args:
            written: the other schema; it may be of another format.
            lenient: ignore the differences that `compatibilityPolicy=LENIENT` allows; only JSON Schema has such rules.
        """

    def has_top_level_field(self, name: str) -> bool:
        """Whether its record, object or first message has this field (rules of reserved fields)."""

    def tags(self) -> dict[Entity, frozenset[str]]:
        """The tags in the text itself."""

    def with_tags(self, added: Mapping[Entity, Collection[str]], removed: Mapping[Entity, Collection[str]]) -> Self:
        """The same schema with tags added to its text and removed from it. Raises InvalidSchema if an entity does not exist."""


class SchemaFormat(Protocol):
    """Parses the texts of one format. It never reads a file or uses the network."""

    @property
    def schema_type(self) -> str:
        """`AVRO`, `JSON` or `PROTOBUF`."""

    def parse(self, text: str, references: Mapping[str, str], *, strict: bool = False) -> ParsedSchema:
        """Parse `text`.

        Args:
            text: the text from the client.
            references: the text of every schema that this one needs, directly or indirectly, by the name of its reference. A
                schema comes after those that it refers to.
            strict: also refuse errors that older programs wrote, such as a default that does not fit its type.

        Raises:
            InvalidSchema: also if the text is larger or deeper than the limits in `limits.py`. The time is bounded.
        """
