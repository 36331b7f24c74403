"""A registered version of a schema, the parts of it that clients give, and its identity.

Two schemas of a context are the same if text, references, metadata and rule set are the same: then they share an id. The
identity is the MD5 of these parts in Confluent's order, so a guid is the same in both registries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import md5
from typing import Any

from msgspec import Struct

from barnabas.registry.formats.interface import Reference

Json = dict[str, Any]
CONFLUENT_VERSION = "confluent:version"
RULE_PARTS = ("migrationRules", "domainRules", "encodingRules")


class Draft(Struct, frozen=True):
    """A schema from a client or from the topic, without the place where it is registered."""

    schema: str
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rule_set: Json | None = None

    @property
    def identity(self) -> bytes:
        """The MD5 of its parts."""
        digest = md5(self.schema.encode(), usedforsecurity=False)
        if self.references or self.metadata is not None or self.rule_set is not None:
            for part in self._further_parts():
                digest.update(part)
        return digest.digest()

    def _further_parts(self) -> Iterable[bytes]:
        for reference in self.references:
            yield reference.name.encode()
            yield reference.subject.encode()
            yield (reference.version & 0xFFFFFFFF).to_bytes(4)
        if self.metadata is not None:
            yield b"\1"
            for tag, values in sorted((self.metadata.get("tags") or {}).items()):
                yield "".join((tag, *sorted(values))).encode()
            for name, value in sorted((self.metadata.get("properties") or {}).items()):
                yield f"{name}{value}".encode()
            yield "".join(sorted(self.metadata.get("sensitive") or ())).encode()
        if self.rule_set is not None:
            yield b"\1"
            for part in RULE_PARTS:
                for rule in self.rule_set.get(part) or ():
                    yield from _rule_parts(rule)


def _rule_parts(rule: Mapping[str, Any]) -> Iterable[bytes]:
    for name in ("name", "doc", "kind", "mode", "type"):
        yield str(rule.get(name) or "").encode()
    yield "".join(sorted(rule.get("tags") or ())).encode()
    for name, value in sorted((rule.get("params") or {}).items()):
        yield f"{name}{value}".encode()
    for name in ("expr", "onSuccess", "onFailure"):
        yield str(rule.get(name) or "").encode()
    yield b"\1" if rule.get("disabled") else b""


class Version(Struct):
    """One version of a subject.

    Args:
        subject: the subject with its context.
        identity: the MD5 of the parts, see `Draft.identity`.
        timestamp_ms: the time at which its record was appended; 0 if unknown.
    """

    subject: str
    version: int
    id: int
    draft: Draft
    identity: bytes
    deleted: bool = False
    timestamp_ms: int = 0

    @property
    def guid(self) -> str:
        """The id of the content, the same in every registry."""
        text = self.identity.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def schema_fields(draft: Draft, text: str | None = None) -> Json:
    """The fields of a schema that are in all answers."""
    return {"schemaType": draft.schema_type, **parts(draft), "schema": draft.schema if text is None else text}


def parts(draft: Draft) -> Json:
    """The fields of a schema except its type and text, in Confluent's order."""
    fields: Json = {}
    if draft.references:
        fields["references"] = [reference._asdict() for reference in draft.references]
    if draft.metadata is not None:
        fields["metadata"] = draft.metadata
    if draft.rule_set is not None:
        fields["ruleSet"] = draft.rule_set
    return fields


def version_fields(version: Version, text: str | None = None) -> Json:
    """The answer that shows a version of a subject."""
    return {
        "subject": version.subject,
        "version": version.version,
        "id": version.id,
        "guid": version.guid,
        **schema_fields(version.draft, text),
        "ts": version.timestamp_ms,
        "deleted": version.deleted,
    }


def merge_metadata(old: Json | None, new: Json | None) -> Json | None:
    """`old` with the tags, properties and sensitive names of `new` added; if both have a path or a property, `new` wins."""
    if old is None or new is None:
        return new if old is None else old
    merged: Json = {}
    tags = dict(sorted({**(old.get("tags") or {}), **(new.get("tags") or {})}.items()))
    properties = dict(sorted({**(old.get("properties") or {}), **(new.get("properties") or {})}.items()))
    sensitive = sorted({*(old.get("sensitive") or ()), *(new.get("sensitive") or ())})
    for key, part in (("tags", tags), ("properties", properties), ("sensitive", sensitive)):
        if part:
            merged[key] = part
    return merged


def merge_rule_sets(old: Json | None, new: Json | None) -> Json | None:
    """`old` with the rules of `new`; a rule of `new` replaces the one of the same name and comes last."""
    if old is None or new is None:
        return new if old is None else old
    merged = {}
    for part in RULE_PARTS:
        added = new.get(part) or []
        names = {rule.get("name") for rule in added}
        rules = [rule for rule in old.get(part) or () if rule.get("name") not in names] + added
        if rules:
            merged[part] = rules
    return merged


def with_confluent_version(metadata: Json | None, version: int) -> Json:
    """The metadata with the property that contains the version."""
    return merge_metadata(metadata, {"properties": {CONFLUENT_VERSION: str(version)}}) or {}


def property_of(metadata: Json | None, name: str) -> str | None:
    """A property of metadata."""
    found = ((metadata or {}).get("properties") or {}).get(name)
    return None if found is None else str(found)
