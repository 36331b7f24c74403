"""Finds a registered schema by its content.

It finds a schema with the same content, or with one of three differences. The client has written the types into the text
instead of using references. Only one of the two has the property with the version. Or one refers to a version by its number,
and the other to the latest version.
"""

from __future__ import annotations

from barnabas.registry.core import names
from barnabas.registry.core.commands import Register
from barnabas.registry.core.entities import CONFLUENT_VERSION, Draft, Json, Version, merge_metadata, merge_rule_sets, property_of
from barnabas.registry.core.parsing import Parser
from barnabas.registry.core.state import State
from barnabas.registry.formats.interface import ParsedSchema, Reference

DEFAULTS = ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")


def look_up(state: State, parser: Parser, subject: str, draft: Draft, *, normalize: bool, deleted: bool) -> Version | None:
    """The version of a subject that has this schema, even if its metadata and rules came from the config or the version
    before."""
    found = find(state, parser, subject, draft, normalize=normalize, deleted=deleted)
    latest = state.version(subject, -1)
    if found is not None or latest is None:
        return found
    completed = with_settings(draft, latest.draft, state.config_in_scope(subject))
    return None if completed == draft else find(state, parser, subject, completed, normalize=normalize, deleted=deleted)


def known(state: State, parser: Parser, command: Register) -> Version | None:
    """The version for a command to register a schema, if it is registered already: such a command writes nothing."""
    subject, number = command.subject, command.version
    if command.tags_to_add or command.tags_to_remove or command.propagate_tags or subject not in state.subjects:
        return None
    config = state.config_in_scope(subject)
    if any(config.get(name) for name in DEFAULTS):
        return None
    found = find(state, parser, subject, command.draft, normalize=command.normalize, latest_only=number == -1)
    if found is None:
        return None
    if number in {0, -1}:
        return found if command.schema_id in {-1, found.id} else None
    if command.schema_id != found.id:
        return None
    named = found if found.version == number else state.version(subject, number)
    return named if named is not None and (named.id, named.identity) == (found.id, found.identity) else None


def find(
    state: State,
    parser: Parser,
    subject: str,
    draft: Draft,
    *,
    normalize: bool,
    deleted: bool = False,
    latest_only: bool = False,
) -> Version | None:
    """The newest version of a subject with this schema; with `latest_only`, only the latest version is considered. Raises
    HttpError 42201."""
    if not draft.schema.strip():
        return None
    normalize = normalize or bool(state.config_in_scope(subject).get("normalize"))
    if not normalize and not latest_only:
        identity = parser.identity(draft)
        found = None if identity is None else state.find(subject, identity, deleted=deleted)
        if found is not None:
            return found
    given, draft = draft, canonical(draft, parser.parse(subject, draft), normalize=normalize)
    parser.keep_identity(given, draft.identity, normalized=normalize)
    if latest_only:
        latest = state.version(subject, -1)
        return latest if latest is not None and matches(state, parser, draft, latest) else None
    found = state.find(subject, draft.identity, deleted=deleted)
    if found is not None:
        return found
    candidates = reversed(state.versions(subject, deleted=deleted))
    return next((each for each in candidates if matches(state, parser, draft, each)), None)


def matches(state: State, parser: Parser, wanted: Draft, version: Version) -> bool:
    """Whether a canonical draft is the schema of a version."""
    registered = version.draft
    if wanted.schema_type != registered.schema_type or wanted.rule_set != registered.rule_set:
        return False
    if not wanted.references and registered.references and wanted.metadata == registered.metadata:
        texts = (parser.parse(version.subject, each).formatted("resolved") for each in (wanted, registered))
        if next(texts) == next(texts):
            return True
    if wanted.schema != registered.schema:
        return False
    if wanted.references != registered.references:
        pairs = (_without_latest(state, version.subject, each.references) for each in (wanted, registered))
        if next(pairs) != next(pairs):
            return False
    told, expected = (property_of(each.metadata, CONFLUENT_VERSION) for each in (wanted, registered))
    if (told is None) == (expected is None):
        return wanted.metadata == registered.metadata
    return told in {None, str(version.version)} and _plain(wanted.metadata) == _plain(registered.metadata)


def canonical(draft: Draft, parsed: ParsedSchema, *, normalize: bool = False) -> Draft:
    """The draft with the stored form of the text and the stored order of references."""
    text, references = parsed.canonical, draft.references
    if normalize:
        text = parsed.normalized().canonical
        references = tuple(sorted(dict.fromkeys(references), key=lambda each: (each.subject, each.version)))
    return Draft(text, draft.schema_type, references, draft.metadata, draft.rule_set)


def with_settings(draft: Draft, before: Draft | None, config: Json) -> Draft:
    """The draft with the metadata and rules of the config, and, if it has none itself, those of the version before it."""
    metadata = draft.metadata if draft.metadata is not None or before is None else before.metadata
    metadata = merge_metadata(merge_metadata(config.get("defaultMetadata"), metadata), config.get("overrideMetadata"))
    rules = draft.rule_set if draft.rule_set is not None or before is None else before.rule_set
    rules = merge_rule_sets(merge_rule_sets(config.get("defaultRuleSet"), rules), config.get("overrideRuleSet"))
    return Draft(draft.schema, draft.schema_type, draft.references, metadata, rules)


def _plain(metadata: Json | None) -> Json:
    """Metadata without empty parts and without the property that contains the version."""
    plain = {key: value for key, value in (metadata or {}).items() if value}
    properties = {key: value for key, value in plain.pop("properties", {}).items() if key != CONFLUENT_VERSION}
    return {**plain, "properties": properties} if properties else plain


def _without_latest(state: State, subject: str, references: tuple[Reference, ...]) -> list[Reference]:
    """The references, with version numbers instead of "latest"."""
    numbered = []
    for each in references:
        latest = state.version(names.in_context_of(subject, each.subject), -1) if each.version == -1 else None
        numbered.append(each if latest is None else each._replace(version=latest.version))
    return numbered
