"""The commands that change the registry: one value for each kind of request that writes, and the outcome of handling one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.registry.core.entities import Draft, Json
from barnabas.registry.core.records import Record


class Register(NamedTuple):
    """Register a schema. `schema_id` of -1 and `version` of 0 leave the number to the registry; a version of -1 asks for the next one."""

    subject: str
    draft: Draft
    version: int = 0
    schema_id: int = -1
    normalize: bool = False
    propagate_tags: bool = False
    tags_to_add: tuple[Json, ...] = ()
    tags_to_remove: tuple[Json, ...] = ()


class ChangeTags(NamedTuple):
    """Register a version's schema again with other tags, metadata or rules."""

    subject: str
    version: int
    request: Mapping[str, Any]


class DeleteVersion(NamedTuple):
    """Delete one version; -1 is the latest."""

    subject: str
    version: int
    permanent: bool = False


class DeleteSubject(NamedTuple):
    """Delete all versions of a subject."""

    subject: str
    permanent: bool = False


class SetConfig(NamedTuple):
    """Change a config: of a subject, a context, or everything (None). Names that are absent keep their value, null removes one."""

    subject: str | None
    changes: Json


class DeleteConfig(NamedTuple):
    """Remove a config."""

    subject: str | None


class SetMode(NamedTuple):
    """Set the mode of a subject, a context, or everything (None); a mode of None removes it."""

    subject: str | None
    mode: str | None
    force: bool = False


class DeleteMode(NamedTuple):
    """Remove a mode."""

    subject: str | None
    recursive: bool = False


class DeleteContext(NamedTuple):
    """Forget the name of an empty context."""

    context: str


class PutAssociations(NamedTuple):
    """Change the associations of a resource. `operation` is CREATE or UPSERT; "" if each association of the request names its own."""

    context: str
    request: Json
    operation: str
    dry_run: bool = False


class DeleteAssociations(NamedTuple):
    """Remove associations of a resource; with `cascade` strong ones take their subject along."""

    resource_id: str
    resource_type: str | None = None
    association_types: tuple[str, ...] = ()
    cascade: bool = False
    dry_run: bool = False


Command = (
    Register
    | ChangeTags
    | DeleteVersion
    | DeleteSubject
    | SetConfig
    | DeleteConfig
    | SetMode
    | DeleteMode
    | DeleteContext
    | PutAssociations
    | DeleteAssociations
)


class Outcome(NamedTuple):
    """The result of a command.

    Args:
        records: to write before the answer leaves; with none the answer leaves at once.
        answer: of JSON.
        touched: the decision is right unless another command that is being written touches one of these; None: unless any is being written.
        context, new_id: the id that the records give for the first time, in which context; -1 if none.
    """

    records: tuple[Record, ...]
    answer: Any
    touched: frozenset[object] | None = None
    context: str = ""
    new_id: int = -1
