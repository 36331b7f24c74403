"""Parsed schemas, made when they are needed and kept for a while; and the references between schemas, resolved in the state.

A schema refers to versions of subjects, in its own context if the reference names none. The parser of a format gets the texts of all of
them, each after those that it needs itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from barnabas import limits
from barnabas.registry.core import errors, names
from barnabas.registry.core.entities import Draft
from barnabas.registry.core.state import State
from barnabas.registry.formats.interface import InvalidSchema, ParsedSchema, Reference, SchemaFormat

Found = Callable[[str], SchemaFormat]
CacheKey = tuple[str, str, tuple[tuple[str, str], ...], bool]


class Parser:
    """Parses drafts in the view of a state."""

    def __init__(self, state: State, format_of: Found) -> None:
        self._state = state
        self._format_of = format_of
        self._kept: OrderedDict[CacheKey, ParsedSchema] = OrderedDict()
        self._kept_characters = 0
        self._lock = Lock()  # large schemas are parsed in threads

    def parse(self, subject: str, draft: Draft, *, strict: bool = False) -> ParsedSchema:
        """The parsed schema. Raises HttpError 42201."""
        try:
            parser = self._format_of(draft.schema_type)
        except InvalidSchema as error:
            raise errors.invalid_schema(str(error)) from None
        if len(draft.schema) > limits.MAX_SCHEMA_CHARACTERS:
            raise errors.schema_too_large()
        try:
            texts = self.texts(subject, draft.references) if draft.references else {}
            key = draft.schema_type, draft.schema, tuple(texts.items()), strict
            with self._lock:
                kept = self._kept.get(key)
                if kept is not None:
                    self._kept.move_to_end(key)
            if kept is None:
                kept = parser.parse(draft.schema, texts, strict=strict)
                self._keep(key, kept)
        except InvalidSchema as error:
            raise errors.invalid_schema(f"Invalid schema of type {draft.schema_type}, details: {error}") from None
        return kept

    def _keep(self, key: CacheKey, parsed: ParsedSchema) -> None:
        with self._lock:
            if key not in self._kept and _characters(key) <= limits.MAX_KEPT_CHARACTERS:
                self._kept[key] = parsed
                self._kept_characters += _characters(key)
            while len(self._kept) > limits.MAX_PARSED_SCHEMAS or self._kept_characters > limits.MAX_PARSED_CHARACTERS:
                dropped, _ = self._kept.popitem(last=False)
                self._kept_characters -= _characters(dropped)

    def texts(self, subject: str, references: Sequence[Reference]) -> dict[str, str]:
        """The texts behind references, by name, each after those that it needs. Raises InvalidSchema."""
        found: dict[str, str] = {}
        open_ones: set[tuple[str, int]] = set()
        stack: list[tuple[str, Reference, bool]] = [(subject, each, False) for each in reversed(references)]
        while stack:
            parent, reference, done = stack.pop()
            target = names.in_context_of(parent, reference.subject), reference.version
            draft = self._draft(*target)
            if done:
                open_ones.discard(target)
                found.setdefault(reference.name, draft.schema)
                continue
            if reference.name in found:
                continue
            if target in open_ones:
                raise InvalidSchema(f'The references of subject "{target[0]}" and version {target[1]} lead back to it')
            if len(open_ones) + len(found) >= limits.MAX_SCHEMA_REFERENCES:
                raise InvalidSchema(f"More than {limits.MAX_SCHEMA_REFERENCES} references")
            open_ones.add(target)
            stack.append((parent, reference, True))
            stack += [(target[0], each, False) for each in reversed(draft.references)]
        return found

    def _draft(self, subject: str, number: int) -> Draft:
        version = self._state.version(subject, number, deleted=True)
        if version is None:
            raise InvalidSchema(f'No schema reference found for subject "{subject}" and version {number}')
        return version.draft


def _characters(key: CacheKey) -> int:
    """How much a parsed schema counts among those that are kept."""
    _, text, needed, _ = key
    return len(text) + sum(len(each) for _, each in needed)
