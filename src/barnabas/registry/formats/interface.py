"""The seam between the registry and the formats of its schemas.

A format parses the text of a schema. The parsed schema gives the text that is stored, its normalised form, and what a reader that
uses it cannot read of data written with another. The registry knows nothing else of a format.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol, Self


class InvalidSchema(ValueError):
    """The text is no schema of its format. The message says what is wrong, and where."""


class Reference(NamedTuple):
    """A schema names another one.

    Args:
        name: as the text names it: a full name in Avro, a URI in JSON Schema, an import path in Protobuf.
        subject: under which the other is registered.
        version: of that subject; -1 is the latest.
    """

    name: str
    subject: str
    version: int


class Entity(NamedTuple):
    """A part of a schema that can carry tags.

    Args:
        path: as Confluent writes it, such as `.acme.Order.id`.
        kind: `SR_RECORD` or `SR_FIELD`.
    """

    path: str
    kind: str


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One thing that a reader cannot read.

    Args:
        kind: Confluent's name of the rule, such as `READER_FIELD_MISSING_DEFAULT_VALUE`.
        description: one sentence that names the place in the schema. It calls the reader's schema new and the writer's schema old.
        text: the whole message as Confluent's registry answers it, with the kind and the description in braces.
        by_old: description and text for a reader that has the older schema; None if they are the same.
    """

    kind: str
    description: str
    text: str
    by_old: tuple[str, str] | None = None

    @classmethod
    def of(cls, kind: str, sentence: str, frame: str, **values: str) -> Self:
        """From a template of the description and one of the text; `frame` also has the names `kind` and `description`."""
        words = [each.format(**values) for each in (sentence, _exchanged(sentence))]
        texts = [frame.format(kind=kind, description=each, **values) for each in words]
        return cls(kind, words[0], texts[0], (words[1], texts[1]))

    def read_by_old(self) -> Incompatibility:
        """The same for a reader with the older schema: the words new and old change places."""
        return self if self.by_old is None else Incompatibility(self.kind, *self.by_old)


@lru_cache(maxsize=256)  # a format has only a few dozen sentences
def _exchanged(sentence: str) -> str:
    return re.sub(r"\b(?:new|old)\b", lambda word: "old" if word[0] == "new" else "new", sentence)


class ParsedSchema(Protocol):
    """A schema that is right in itself. Equal texts of `canonical` with equal references are the same schema."""

    @property
    def schema_type(self) -> str:
        """`AVRO`, `JSON` or `PROTOBUF`."""

    @property
    def canonical(self) -> str:
        """The text that the registry stores, serves and compares."""

    def normalized(self) -> Self:
        """The same schema in the one form that all texts of the same meaning share (`normalize=true`)."""

    def formatted(self, form: str) -> str:
        """The text for `?format=`: "" is `canonical`; the format's own names beside it; an unknown name gives `canonical` too."""

    def unreadable(self, written: ParsedSchema, *, lenient: bool = False) -> list[Incompatibility]:
        """Why a reader with this schema cannot read data of `written`; empty if it reads all.

        Args:
            written: may be of another format.
            lenient: pass over what `compatibilityPolicy=LENIENT` allows; only JSON Schema knows such rules.
        """

    def has_top_level_field(self, name: str) -> bool:
        """Whether its record, object or first message has this field (rules of reserved fields)."""

    def tags(self) -> dict[Entity, frozenset[str]]:
        """The tags that stand in the text itself."""

    def with_tags(self, added: Mapping[Entity, Collection[str]], removed: Mapping[Entity, Collection[str]]) -> Self:
        """The same schema with tags written into its text and others taken away. Raises InvalidSchema if an entity does not exist."""


class SchemaFormat(Protocol):
    """Parses the texts of one format. It never reads a file and never asks the network."""

    @property
    def schema_type(self) -> str:
        """`AVRO`, `JSON` or `PROTOBUF`."""

    def parse(self, text: str, references: Mapping[str, str], *, strict: bool = False) -> ParsedSchema:
        """Parse `text`.

        Args:
            text: as the client sent it.
            references: the text of every schema that this one needs, directly or not, by the name of its reference, in the order in which
                they need each other: a schema comes after those that it names.
            strict: also refuse what the format forbids but older programs wrote, such as a default that does not fit its type.

        Raises:
            InvalidSchema: also if the text is larger or deeper than the limits in `limits.py`, and never after unbounded time.
        """
