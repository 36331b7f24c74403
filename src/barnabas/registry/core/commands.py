"""The commands that change the registry, one class for each kind of write request; and the outcome of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.registry.core.entities import Draft, Json
from barnabas.registry.core.records import Record


class Register(NamedTuple):
    """Register a schema. `schema_id` of -1 and `version` of 0 leave the number to the registry; a version of -1 means the next
    one."""

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
    """Change the config of a subject, of a context, or of everything (None). A missing name keeps its value; null removes the
    value."""

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
    """Change the associations of a resource. `operation` is CREATE or UPSERT; "" if each association of the request has its
    own."""

    context: str
    request: Json
    operation: str
    dry_run: bool = False


class DeleteAssociations(NamedTuple):
    """Remove associations of a resource; with `cascade`, this also deletes the subjects of strong ones."""

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
        records: the records to write before the answer is sent; without records the answer is sent at once.
        answer: a JSON value.
        touched: the decision may be wrong if another command that is being written touches one of these; None: if any command
            is being written.
        context, new_id: the new id in the records, and its context; -1 if there is none.
    """

    records: tuple[Record, ...]
    answer: Any
    touched: frozenset[object] | None = None
    context: str = ""
    new_id: int = -1
