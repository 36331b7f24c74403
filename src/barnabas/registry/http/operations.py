"""The description of each handler in the OpenAPI document: its parameters, its bodies and its errors."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

from barnabas.registry.http import associations, bodies, schemas, settings, subjects
from barnabas.registry.http.surface import Handler


class Operation(NamedTuple):
    """The description of one handler.

    Args:
        summary: one line.
        answer: the type of the body; None if there is none.
        body: the type of the request's body; None if there is none.
        flags, texts, numbers: the names of query parameters, by type.
        errors: the possible error statuses, in addition to those of every route.
        status: the status of success.
    """

    summary: str
    answer: Any = None
    body: type[Struct] | None = None
    flags: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()
    status: int = 200


PAGE = ("offset", "limit")
LIST = ("deleted", "deletedOnly")
MISSING = (404,)
REFUSED = (404, 422)
JSON_TEXT = Any  # text of a schema: JSON, except for Protobuf
SHOWN = ("format", "referenceFormat", "findTags")

OPERATIONS: dict[Handler, Operation] = {
    subjects.list_subjects: Operation("List subjects", list[str], flags=LIST, texts=("subjectPrefix",), numbers=PAGE),
    subjects.look_up: Operation(
        "Look up a schema of a subject", bodies.VersionAnswer, bodies.SchemaRequest, ("normalize", "deleted"), SHOWN,
        errors=REFUSED,
    ),
    subjects.delete_subject: Operation("Delete a subject", list[int], flags=("permanent",), errors=REFUSED),
    subjects.latest_with_metadata: Operation(
        "Get the latest version with these properties", bodies.VersionAnswer, flags=("deleted",),
        texts=("key", "value", *SHOWN), errors=REFUSED,
    ),
    subjects.list_versions: Operation(
        "List the versions of a subject", list[int], flags=(*LIST, "deletedAsNegative"), numbers=PAGE, errors=MISSING,
    ),
    subjects.register: Operation(
        "Register a schema", bodies.RegisteredAnswer, bodies.RegisterRequest, ("normalize",), errors=(404, 409, 422),
    ),
    subjects.get_version: Operation(
        "Get a version", bodies.VersionAnswer, flags=("deleted",), texts=SHOWN, errors=REFUSED,
    ),
    subjects.get_version_text: Operation(
        "Get the text of a version", JSON_TEXT, flags=("deleted",), texts=("format",), errors=REFUSED,
    ),
    subjects.get_users: Operation("List the ids of schemas that refer to a version", list[int], numbers=PAGE, errors=REFUSED),
    subjects.delete_version: Operation("Delete a version", int, flags=("permanent",), errors=REFUSED),
    subjects.change_tags: Operation(
        "Register a version with other tags, metadata or rules", bodies.RegisteredAnswer, bodies.TagsRequest,
        errors=(404, 409, 422),
    ),
    subjects.check_version: Operation(
        "Check whether a schema is compatible with a version", bodies.CompatibilityAnswer, bodies.SchemaRequest,
        ("verbose", "normalize"), errors=REFUSED,
    ),
    subjects.check_all: Operation(
        "Check whether a schema is compatible with the versions that the level names", bodies.CompatibilityAnswer,
        bodies.SchemaRequest, ("verbose", "normalize"), errors=REFUSED,
    ),
    schemas.list_schemas: Operation(
        "List schemas", list[bodies.VersionAnswer], flags=(*LIST, "latestOnly", "aliases"), texts=("subjectPrefix", "ruleType"),
        numbers=PAGE,
    ),
    schemas.types: Operation("List the types of schemas", list[str]),
    schemas.by_id: Operation(
        "Get the schema of an id", bodies.IdAnswer, flags=("fetchMaxId",), texts=("subject", *SHOWN),
        errors=REFUSED,
    ),
    schemas.text_by_id: Operation("Get the text of an id", JSON_TEXT, texts=("subject", "format"), errors=REFUSED),
    schemas.subjects_by_id: Operation(
        "List the subjects that have an id", list[str], flags=("deleted",), texts=("subject",), numbers=PAGE, errors=MISSING,
    ),
    schemas.versions_by_id: Operation(
        "List the versions that have an id", list[bodies.PlaceAnswer], flags=("deleted",), texts=("subject",), numbers=PAGE,
        errors=MISSING,
    ),
    schemas.by_guid: Operation("Get the schema of a guid", bodies.GuidAnswer, texts=("format",), errors=REFUSED),
    schemas.ids_by_guid: Operation("List the ids of a guid", list[bodies.ContextIdAnswer], errors=MISSING),
    settings.root: Operation("Tell that the registry is there", dict[str, str]),
    settings.get_config: Operation("Get a config", bodies.ConfigAnswer, flags=("defaultToGlobal",), errors=MISSING),
    settings.put_config: Operation("Change a config", bodies.ChangedConfigAnswer, bodies.ConfigRequest, errors=REFUSED),
    settings.delete_config: Operation("Remove a config", bodies.ConfigAnswer, errors=REFUSED),
    settings.get_mode: Operation("Get a mode", bodies.ModeAnswer, flags=("defaultToGlobal",), errors=MISSING),
    settings.put_mode: Operation("Set a mode", bodies.ModeAnswer, bodies.ModeRequest, ("force",), errors=REFUSED),
    settings.delete_mode: Operation("Remove a mode", bodies.ModeAnswer, flags=("recursive",), errors=REFUSED),
    settings.list_contexts: Operation("List contexts", list[str], texts=("contextPrefix",), numbers=PAGE),
    settings.delete_context: Operation("Forget an empty context", errors=REFUSED, status=204),
    settings.metadata_id: Operation("Name the cluster and the group of the registry", bodies.ClusterAnswer),
    settings.metadata_version: Operation("Tell the version of the interface", bodies.InterfaceAnswer),
    associations.by_subject: Operation(
        "List the associations of a subject", list[bodies.AssociationAnswer],
        texts=("resourceType", "associationType", "lifecycle"), numbers=PAGE,
    ),
    associations.by_name: Operation(
        "List the associations of a named resource", list[bodies.AssociationAnswer],
        texts=("resourceType", "associationType", "lifecycle"), numbers=PAGE,
    ),
    associations.by_resource: Operation(
        "List the associations of a resource", list[bodies.AssociationAnswer],
        texts=("resourceType", "associationType", "lifecycle"), numbers=PAGE,
    ),
    associations.create: Operation(
        "Associate subjects with a resource", bodies.AssociatedAnswer, bodies.AssociationRequest, ("dryRun",), ("context",),
        errors=(404, 409, 422),
    ),
    associations.update: Operation(
        "Change the associations of a resource", bodies.AssociatedAnswer, bodies.AssociationRequest, ("dryRun",), ("context",),
        errors=(404, 409, 422),
    ),
    associations.delete: Operation(
        "Remove associations of a resource", flags=("cascadeLifecycle", "dryRun"), texts=("resourceType", "associationType"),
        errors=(404, 409, 422), status=204,
    ),
    associations.batch_get: Operation(
        "Get the associations of several resources", bodies.BatchAnswer, bodies.AssociationBatchQuery, ("includeSchemas",),
        errors=(422,), status=207,
    ),
    associations.batch_change: Operation(
        "Change the associations of several resources", bodies.BatchAnswer, bodies.AssociationBatchRequest, ("dryRun",),
        errors=(422,), status=207,
    ),
}  # fmt: skip
