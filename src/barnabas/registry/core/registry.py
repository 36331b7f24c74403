"""The state machine of the registry: a command returns records and an answer, and the replay of the records changes the state.

Nothing changes between these two steps. A command is decided in the state of the last replayed record, and a refused or lost
write has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from barnabas import limits
from barnabas.registry.core import associations, registration, removal, settings
from barnabas.registry.core.commands import (
    ChangeTags,
    Command,
    DeleteAssociations,
    DeleteConfig,
    DeleteContext,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    Outcome,
    PutAssociations,
    Register,
    SetConfig,
    SetMode,
)
from barnabas.registry.core.entities import Draft, Json
from barnabas.registry.core.parsing import Found, Parser
from barnabas.registry.core.state import DEFAULT_LEVEL, State
from barnabas.registry.formats.table import format_of


class Registry:
    """A state with the parser of its schemas.

    Args:
        default_level: the compatibility level while none is set for everything.
    """

    def __init__(self, formats: Found = format_of, default_level: str = DEFAULT_LEVEL) -> None:
        self.state = State(default_level)
        self.parser = Parser(self.state, formats)

    def replay(self, key: bytes, value: bytes | None, timestamp_ms: int = 0) -> None:
        """Replay a record of the topic."""
        self.state.replay(key, value, timestamp_ms)

    def characters(self, subject: str, draft: Draft, *, compared: bool = True) -> int:
        """The number of characters of all schemas that are needed to parse a draft; with `compared`, also to compare it with
        the versions of a subject."""
        if draft.references:  # the size of the referenced schemas is unknown until they are resolved
            return limits.MAX_SCHEMA_CHARACTERS
        earlier = self.state.versions(subject)
        if not compared and len(draft.schema) <= limits.MAX_KEPT_CHARACTERS:  # hashing a larger text takes long too
            identity = self.parser.identity(draft)
            if identity is not None and self.state.find(subject, identity) is not None:
                return 0  # the schema is known, so no text must be parsed
        if any(each.draft.references for each in earlier):
            return limits.MAX_SCHEMA_CHARACTERS
        if not compared:
            return len(draft.schema)
        if not self.state.config_in_scope(subject)["compatibilityLevel"].endswith("_TRANSITIVE"):
            earlier = earlier[-1:]
        return len(draft.schema) + sum(len(each.draft.schema) for each in earlier)

    def characters_of(self, command: Command) -> int:
        """As `characters`, for the work of a command."""
        if isinstance(command, Register):
            return self.characters(command.subject, command.draft)
        if isinstance(command, ChangeTags):
            draft = self.state.draft_of(command.subject, command.version)
            return 0 if draft is None else self.characters(command.subject, draft)
        if isinstance(command, PutAssociations):
            return limits.MAX_SCHEMA_CHARACTERS if _brings_schemas(command.request) else 0
        return 0

    def handle(self, command: Command, reserved: Mapping[str, int] = registration.NO_RESERVATION) -> Outcome:
        """Decide a command; `reserved` as for `registration.register`. Raises HttpError if it is refused."""
        state, parser = self.state, self.parser
        match command:
            case Register():
                return registration.register(state, parser, command, reserved)
            case ChangeTags():
                return registration.change_tags(state, parser, command)
            case DeleteVersion():
                return removal.delete_version(state, command)
            case DeleteSubject():
                return removal.delete_subject(state, command)
            case DeleteContext():
                return removal.delete_context(state, command)
            case SetConfig():
                return settings.set_config(state, command)
            case DeleteConfig():
                return settings.delete_config(state, command)
            case SetMode():
                return settings.set_mode(state, command)
            case DeleteMode():
                return settings.delete_mode(state, command)
            case PutAssociations():
                return associations.put(state, parser, command)
            case DeleteAssociations():
                return associations.delete(state, command)
        assert_never(command)


def _brings_schemas(request: Json) -> bool:
    items = request.get("associations") or ()
    return any(isinstance(item, dict) and item.get("schema") is not None for item in items)
