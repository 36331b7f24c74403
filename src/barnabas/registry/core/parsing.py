"""Parses schemas on demand and caches them; resolves the references between schemas in the state.

A schema refers to versions of subjects, in its own context if the reference has none. The parser of a format gets the texts of
all of them, each after those that it needs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from threading import Lock

from barnabas import limits
from barnabas.registry.core import errors, names
from barnabas.registry.core.entities import Draft
from barnabas.registry.core.state import State
from barnabas.registry.formats.interface import InvalidSchema, ParsedSchema, Reference, SchemaFormat

Found = Callable[[str], SchemaFormat]
CacheKey = tuple[str, str, tuple[tuple[str, str], ...], bool]


class Parser:
    """Parses drafts; references refer to versions in a state."""

    def __init__(self, state: State, format_of: Found) -> None:
        self._state = state
        self._format_of = format_of
        self._kept: OrderedDict[CacheKey, ParsedSchema] = OrderedDict()
        self._kept_characters = 0
        self._lock = Lock()  # threads parse the large schemas
        self._identities: dict[bytes, bytes] = {}

    def parse(self, subject: str, draft: Draft, *, strict: bool = False) -> ParsedSchema:
        """The parsed schema. `strict` also refuses references to versions that are deleted. Raises HttpError 42201."""
        try:
            parser = self._format_of(draft.schema_type)
        except InvalidSchema as error:
            raise errors.invalid_schema(str(error)) from None
        if len(draft.schema) > limits.MAX_SCHEMA_CHARACTERS:
            raise errors.schema_too_large()
        try:
            texts = self.texts(subject, draft.references, deleted=not strict) if draft.references else {}
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

    def identity(self, draft: Draft) -> bytes | None:
        """The identity of a schema that has no parts except its text, from an earlier parse without normalisation; None if it
        must be parsed."""
        return self._identities.get(_text_key(draft)) if _is_text_alone(draft) else None

    def keep_identity(self, draft: Draft, identity: bytes, *, normalized: bool = False) -> None:
        """Cache the identity of a draft's canonical form, for `identity`. A schema with only a text always has the same one."""
        if not normalized and _is_text_alone(draft):
            key = _text_key(draft)
            with self._lock:
                if len(self._identities) >= limits.MAX_KEPT_IDENTITIES:
                    del self._identities[next(iter(self._identities))]
                self._identities[key] = identity

    def texts(self, subject: str, references: Sequence[Reference], *, deleted: bool = True) -> dict[str, str]:
        """The texts of references by name, each after those that it needs; includes deleted versions. Raises InvalidSchema."""
        found: dict[str, str] = {}
        open_ones: set[tuple[str, int]] = set()
        stack: list[tuple[str, Reference, bool]] = [(subject, each, False) for each in reversed(references)]
        while stack:
            parent, reference, done = stack.pop()
            target = names.in_context_of(parent, reference.subject), reference.version
            draft = self._draft(*target, deleted=deleted)
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

    def _draft(self, subject: str, number: int, *, deleted: bool) -> Draft:
        version = self._state.version(subject, number, deleted=deleted)
        if version is None:
            raise InvalidSchema(f'No schema reference found for subject "{subject}" and version {number}')
        return version.draft


def _characters(key: CacheKey) -> int:
    """The size of a parsed schema in the cache, in characters."""
    _, text, needed, _ = key
    return len(text) + sum(len(each) for _, each in needed)


def _is_text_alone(draft: Draft) -> bool:
    return not draft.references and draft.metadata is None and draft.rule_set is None


def _text_key(draft: Draft) -> bytes:
    return blake2b(f"{draft.schema_type}:{draft.schema}".encode(), digest_size=16).digest()
