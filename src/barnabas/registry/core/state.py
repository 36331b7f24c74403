"""All registered schemas and settings: the image of the topic. Only `replay` changes it.

A context has its own ids. An id belongs to one content; `ids` has the subjects and versions with this id. Texts stay as in the
topic; `parsing.py` parses them on demand.
"""

from __future__ import annotations

from collections import defaultdict

from msgspec import Struct, field

from barnabas.registry.core import names, records
from barnabas.registry.core.entities import Draft, Json, Version
from barnabas.registry.core.names import DEFAULT_CONTEXT

DEFAULT_LEVEL = "BACKWARD"
DEFAULT_MODE = "READWRITE"
INHERITED = (
    "compatibilityLevel",
    "compatibilityPolicy",
    "compatibilityGroup",
    "normalize",
    "validateFields",
    "validateNames",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)
AssociationKey = tuple[str | None, ...]


class Context(Struct):
    """The ids of one context.

    Args:
        ids: for each id, the version in each subject that has it.
        contents: the id of an identity.
        references: the ids of the schemas that refer to a subject's version.
        last_id: the largest id that was ever used.
    """

    ids: dict[int, dict[str, int]] = field(default_factory=dict)
    contents: dict[bytes, int] = field(default_factory=dict)
    references: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    last_id: int = 0


class State:
    """The image. `answers` is a cache of finished answers of other modules by context and id; a change of the id removes them."""

    def __init__(self, default_level: str = DEFAULT_LEVEL) -> None:
        self.default_level = default_level
        self.subjects: dict[str, dict[int, Version]] = {}
        self.contexts: defaultdict[str, Context] = defaultdict(Context)
        self.named_contexts: set[str] = set()
        self.configs: dict[str | None, Json] = {}
        self.modes: dict[str | None, str] = {}
        self.associations: dict[AssociationKey, Json] = {}
        self.answers: dict[tuple[str, int], bytes] = {}

    # --- changes

    def replay(self, key: bytes, value: bytes | None, timestamp_ms: int = 0) -> None:
        """Replay a record of the topic. Raises msgspec.DecodeError for a record that is not of a registry."""
        name = records.read_key(key)
        if value in records.EMPTY:
            value = None
        if name.keytype == "SCHEMA":
            self._replay_schema(name.subject or "", name.version, value, timestamp_ms)
        elif name.keytype in {"CONFIG", "MODE"}:
            subject = name.subject or None
            if value is None:
                (self.configs if name.keytype == "CONFIG" else self.modes).pop(subject, None)
                return
            fields = records.read_value(value)
            fields.pop("subject", None)
            if name.keytype == "CONFIG":
                self.configs[subject] = fields
            else:
                self.modes[subject] = str(fields.get("mode", DEFAULT_MODE))
        elif name.keytype == "DELETE_SUBJECT" and value is not None:
            self._delete_subject(records.read_value(value), timestamp_ms)
        elif name.keytype == "CLEAR_SUBJECT":
            self._clear_subject(name.subject or "")
        elif name.keytype == "CONTEXT" and name.context:
            (self.named_contexts.discard if value is None else self.named_contexts.add)(name.context)
        elif name.keytype == "ASSOC":
            self._replay_association(name, value, timestamp_ms)

    def _replay_schema(self, subject: str, number: int, value: bytes | None, timestamp_ms: int) -> None:
        if value is None:
            self._forget(subject, number)
            return
        name = names.context_of(subject)
        context = self.contexts[name]
        read = records.read_schema(value)
        version = records.version_of(read, read.ts or timestamp_ms)
        version.subject, version.version = subject, number
        versions = self.subjects.setdefault(subject, {})
        in_order = not versions or next(reversed(versions)) < number
        versions[number] = version
        if not in_order:
            self.subjects[subject] = dict(sorted(versions.items()))
        context.ids.setdefault(version.id, {})[subject] = number
        context.contents[version.identity] = version.id
        context.last_id = max(context.last_id, version.id)
        self.answers.pop((name, version.id), None)
        self._count_references(context, version)
        if name != DEFAULT_CONTEXT:
            self.named_contexts.add(name)

    def _count_references(self, context: Context, version: Version) -> None:
        for reference in version.draft.references:
            target = names.in_context_of(version.subject, reference.subject), reference.version
            home = context if target[0] not in self.subjects else self.contexts[names.context_of(target[0])]
            users = home.references.setdefault(target, set())
            if not version.deleted:
                users.add(version.id)
            elif not self._is_used(context, version.id):
                users.discard(version.id)

    def _is_used(self, context: Context, schema_id: int) -> bool:
        placed = context.ids.get(schema_id, {})
        return any(not self.subjects[subject][number].deleted for subject, number in placed.items())

    def _forget(self, subject: str, number: int) -> None:
        versions = self.subjects.get(subject, {})
        version = versions.pop(number, None)
        if version is None:
            return
        name = names.context_of(subject)
        context = self.contexts[name]
        placed = context.ids.get(version.id, {})
        if placed.get(subject) == number:
            del placed[subject]
            older = [n for n, each in versions.items() if each.id == version.id]
            if older:
                placed[subject] = older[-1]
        if not versions:
            self.subjects.pop(subject, None)
        if not placed:
            context.ids.pop(version.id, None)
            if context.contents.get(version.identity) == version.id:
                del context.contents[version.identity]
        version.deleted = True
        self._count_references(context, version)
        self.answers.pop((name, version.id), None)

    def _delete_subject(self, value: Json, timestamp_ms: int) -> None:
        subject, until = str(value.get("subject", "")), int(value.get("version", 0))
        name = names.context_of(subject)
        context = self.contexts[name]
        for number, version in self.subjects.get(subject, {}).items():
            if number <= until and not version.deleted:
                version.deleted = True
                version.timestamp_ms = timestamp_ms or version.timestamp_ms
                self._count_references(context, version)
                self.answers.pop((name, version.id), None)

    def _clear_subject(self, subject: str) -> None:
        for name in self.matching(subject, deleted=True):
            for number in [n for n, each in self.subjects[name].items() if each.deleted]:
                self._forget(name, number)

    def _replay_association(self, name: records.SchemaKey, value: bytes | None, timestamp_ms: int) -> None:
        key = (name.tenant, name.resource_name, name.resource_namespace, name.resource_type, name.association_type)
        if value is None:
            self.associations.pop(key, None)
        else:
            self.associations[key] = {"createTs": timestamp_ms, **records.read_value(value), "updateTs": timestamp_ms}

    # --- queries

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """The versions of a subject, oldest first."""
        versions = list(self.subjects.get(subject, {}).values())  # a copy, because other threads read the list
        return versions if deleted else [each for each in versions if not each.deleted]

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version | None:
        """One version; -1 is the latest that is not deleted."""
        versions = self.subjects.get(subject, {})
        if number == -1:
            return next((each for each in reversed(list(versions.values())) if not each.deleted), None)
        found = versions.get(number)
        return found if found is not None and (deleted or not found.deleted) else None

    def anywhere(self, subject: str, number: int, *, deleted: bool = False) -> Version | None:
        """As `version`. A subject name without a context that is not in the default context is searched in all others."""
        for name in (subject, *self.elsewhere(subject)):
            found = self.version(name, number, deleted=deleted)
            if found is not None:
                return found
        return None

    def elsewhere(self, subject: str) -> list[str]:
        """The subjects of this name in other contexts, if the name has no context itself."""
        if names.context_of(subject) != DEFAULT_CONTEXT:
            return []
        readings = (f":{context}:{subject}" for context in sorted(self.named_contexts))
        return [each for each in readings if each in self.subjects]

    def by_id(self, schema_id: int, subject: str = "") -> Version | None:
        """A version with this id in the context of `subject`: that of the subject itself if it has the id, otherwise of another
        subject."""
        name = names.parse(subject)
        context = self.contexts.get(name.context)
        placed = context.ids.get(schema_id) if context is not None else None
        if not name.subject:
            return self._first(placed)
        if placed is not None and subject in placed:
            return self.subjects[subject][placed[subject]]
        if name.context != DEFAULT_CONTEXT:
            return None
        for reading in self.elsewhere(subject):
            other = self.contexts[names.context_of(reading)].ids.get(schema_id, {})
            if reading in other:
                return self.subjects[reading][other[reading]]
        return self._first(placed)

    def _first(self, placed: dict[str, int] | None) -> Version | None:
        return next((self.subjects[subject][number] for subject, number in (placed or {}).items()), None)

    def by_guid(self, identity: bytes) -> list[tuple[str, int]]:
        """The contexts that have this content, with its id there."""
        found = ((name, context.contents.get(identity)) for name, context in sorted(self.contexts.items()))
        return [(name, schema_id) for name, schema_id in found if schema_id is not None]

    def known(self, subject: str, identity: bytes) -> int | None:
        """The id of this content in the context of `subject`."""
        context = self.contexts.get(names.context_of(subject))
        return None if context is None else context.contents.get(identity)

    def find(self, subject: str, identity: bytes, *, deleted: bool = False) -> Version | None:
        """The newest version of a subject with this content."""
        schema_id = self.known(subject, identity)
        if schema_id is None:
            return None
        number = self.contexts[names.context_of(subject)].ids.get(schema_id, {}).get(subject)
        if number is None:
            return None
        found = self.subjects[subject][number]
        if found.identity == identity and (deleted or not found.deleted):
            return found
        candidates = reversed(self.versions(subject, deleted=deleted))
        return next((each for each in candidates if each.identity == identity), None)

    def users(self, subject: str, number: int) -> list[int]:
        """The ids of schemas that refer to a version; a reference to "latest" counts for the latest version."""
        targets = [(subject, number)]
        latest = self.version(subject, -1)
        if latest is not None and latest.version == number:
            targets.append((subject, -1))
        return sorted(
            {
                each
                for context in list(self.contexts.values())
                for target in targets
                for each in context.references.get(target, ())
            }
        )

    def matching(self, subject: str | None, *, deleted: bool = False) -> list[str]:
        """The subjects with versions for a name: the subject itself, all subjects of a context, or all subjects (None)."""
        if subject is None:
            candidates = list(self.subjects)
        else:
            name = names.parse(subject)
            whole = name.context == names.GLOBAL_CONTEXT and not name.subject
            candidates = [
                each
                for each in ([subject] if name.subject else list(self.subjects))
                if each in self.subjects and (whole or name.subject or names.context_of(each) == name.context)
            ]
        return [each for each in candidates if self.has(each, deleted=deleted)]

    def has(self, subject: str, *, deleted: bool = False) -> bool:
        """Whether a subject has a version; with `deleted`, a deleted version counts too."""
        return any(deleted or not each.deleted for each in self.subjects.get(subject, {}).values())

    def with_prefix(self, prefix: str) -> list[str]:
        """The subjects, including deleted ones, with names that begin with `prefix`; `:*:` means every context. In the order of
        the whole names."""
        return sorted(each for each in self.subjects if names.begins(each, prefix))

    # --- settings

    def config(self, subject: str | None) -> Json | None:
        """The config of exactly this subject or context, without inherited values; for everything (None) there always is one."""
        found = self.configs.get(subject)
        return {"compatibilityLevel": self.default_level, **(found or {})} if subject is None else found

    def config_in_scope(self, subject: str | None) -> Json:
        """The effective config of a subject: missing values come from its context, then from everything."""
        merged: Json = {"compatibilityLevel": self.default_level}
        for scope in reversed(_scopes(subject)):
            found = self.configs.get(scope)
            if found:
                merged |= {key: found[key] for key in INHERITED if found.get(key) is not None}
        own = self.configs.get(subject) or {}
        return merged if own.get("alias") is None else {**merged, "alias": own["alias"]}

    def mode(self, subject: str | None) -> str | None:
        """The mode of exactly this subject or context, not inherited; for everything (None) there always is one."""
        everything = self.modes.get(None, DEFAULT_MODE)
        if everything == "READONLY_OVERRIDE" or subject is None:
            return everything
        return self.modes.get(subject)

    def mode_in_scope(self, subject: str | None) -> str:
        """The effective mode of a subject."""
        everything = self.modes.get(None, DEFAULT_MODE)
        if everything == "READONLY_OVERRIDE":
            return everything
        return next((self.modes[scope] for scope in _scopes(subject) if scope in self.modes), DEFAULT_MODE)

    def draft_of(self, subject: str, number: int) -> Draft | None:
        """The schema of a version, deleted or not."""
        found = self.version(subject, number, deleted=True)
        return None if found is None else found.draft


def _scopes(subject: str | None) -> list[str | None]:
    """The scopes in which a setting of a subject may be set, nearest first."""
    everything = f":{names.GLOBAL_CONTEXT}:"
    if subject is None:
        return [None, everything]
    name = names.parse(subject)
    if name.context == DEFAULT_CONTEXT:
        return [subject, None, everything]
    scopes: list[str | None] = [subject, name.prefix, everything]
    return list(dict.fromkeys(scopes))
