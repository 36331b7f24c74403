"""`barnabas schema`: schemas of a registry, ours or Confluent's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup
from barnabas.cli.output import Output, output_option
from barnabas.cli.properties import parse_pairs
from barnabas.cli.registry_connection import (
    RegistryOptions,
    all_schemas,
    pretty,
    read_input,
    read_reference,
    read_version,
    registry_options,
)
from barnabas.cli.types import Text

TYPES = ("avro", "json", "protobuf")
TYPE_OF_ENDING = {".avsc": "avro", ".json": "json", ".proto": "protobuf"}
COLUMNS = {"subject": "SUBJECT", "versions": "VERSIONS", "id": "ID", "type": "TYPE"}
UNKNOWN_SUBJECT, UNKNOWN_VERSION, UNKNOWN_SCHEMA = 40401, 40402, 40403
COMMANDS = {
    "register": Entry("schema", "register", "Register the schema of FILE under SUBJECT."),
    "get": Entry("schema", "get", "Print a schema."),
    "list": Entry("schema", "list_subjects", "List subjects, or the versions of SUBJECT."),
    "check": Entry("schema", "check", "Check whether the schema of FILE could be registered under SUBJECT."),
    "diff": Entry("schema_diff", "diff", "Say what breaks for whom between two schemas."),
    "delete": Entry("schema", "delete", "Delete SUBJECT, or one version of it."),
    "export": Entry("schema_copy", "export", "Write all schemas, with ids, versions, levels and modes, to FILE."),
    "import": Entry("schema_copy", "import_schemas", "Take over the schemas of FILE or of another registry, with their ids."),
    "compatibility": Entry("schema_settings", "compatibility", "Show or set the compatibility level."),
    "mode": Entry("schema_settings", "mode", "Show or set the mode."),
}


@click.group(cls=LazyGroup, entries=COMMANDS, context_settings=HELP_OPTIONS)
def schema() -> None:
    """Register, show, check, compare, copy and delete the schemas of a registry."""


def schema_options(function: Any) -> Any:
    """The options that describe the schema in a file."""
    for option in (
        click.option("--reference", "references", type=Text(read_reference), multiple=True, metavar="NAME=SUBJECT:VERSION",
                     help="A schema that this one names; repeatable."),
        click.option("--type", "schema_type", type=click.Choice(TYPES), help="The format; otherwise the file's ending says it, or avro."),
    ):  # fmt: skip
        function = option(function)
    return function


def body_of(file: str, schema_type: str | None, references: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A schema in the registry's form."""
    ending = next((kind for end, kind in TYPE_OF_ENDING.items() if file.endswith(end)), "avro")
    body: dict[str, Any] = {"schema": read_input(file), "schemaType": (schema_type or ending).upper()}
    if references:
        body["references"] = list(references)
    return body


@click.command()
@click.argument("subject")
@click.argument("file", default="-")
@schema_options
@click.option("--metadata", "pairs", multiple=True, metavar="KEY=VALUE", help="A property of the schema's metadata; repeatable.")
@click.option("--normalize", is_flag=True, help="Register the normalised form.")
@registry_options
@output_option
def register(
    registry: RegistryOptions, output: Output, subject: str, file: str, schema_type: str | None,
    references: Sequence[dict[str, Any]], pairs: Sequence[str], normalize: bool,
) -> None:  # fmt: skip
    """Register the schema of FILE under SUBJECT.

    Without FILE the schema comes from standard input. An existing schema keeps its id and version.
    """
    body = body_of(file, schema_type, references)
    if pairs:
        body["metadata"] = {"properties": parse_pairs(pairs, "--metadata")}
    with registry.client() as client:
        made = client.post("subjects", subject, "versions", body=body, normalize=normalize)
        if "version" not in made:  # registries before 8.0 return only the id
            made = client.post("subjects", subject, body=body, normalize=normalize)
    output.done(f"{subject} has this schema as version {made['version']}, id {made['id']}", made)


@click.command()
@click.argument("subject", required=False)
@click.argument("version", default="latest", type=Text(read_version))
@click.option("--id", "schema_id", type=click.IntRange(1, 2**31 - 1), help="The schema with this id, instead of SUBJECT's.")
@click.option("--deleted", is_flag=True, help="Also a version that is deleted, but not for good.")
@registry_options
@output_option
def get(
    registry: RegistryOptions, output: Output, subject: str | None, version: str, schema_id: int | None, deleted: bool
) -> None:
    """Print a schema.

    The schema is a version of SUBJECT (by default the latest), or the one with an id.
    """
    if (subject is None) == (schema_id is None):
        raise BadInput("give SUBJECT or --id")
    with registry.client() as client:
        if schema_id is not None:
            found = {"id": schema_id, **client.get("schemas", "ids", schema_id)}
        else:
            found = client.get("subjects", subject, "versions", version, deleted=deleted)
    output.done(pretty(found["schema"], found.get("schemaType", "AVRO")), found)


@click.command("list")
@click.argument("subject", required=False)
@click.option("--prefix", help="Only subjects whose names begin so.")
@click.option("--deleted", is_flag=True, help="Also what is deleted, but not for good.")
@registry_options
@output_option
def list_subjects(registry: RegistryOptions, output: Output, subject: str | None, prefix: str | None, deleted: bool) -> None:
    """List subjects, or the versions of SUBJECT.

    A subject has a row with its versions, and the id and type of the latest.
    """
    with registry.client() as client:
        if subject is not None:
            versions = client.get("subjects", subject, "versions", deleted=deleted)
            rows = [_row(subject, client.get("subjects", subject, "versions", each, deleted=deleted)) for each in versions]
        else:
            # One request lists everything; a request for each subject takes a round trip each.
            found = all_schemas(client, prefix or ":*:", deleted=deleted)
            rows = list(_latest_rows(found))
    output.table(rows, COLUMNS, empty="no schema is registered")


def _row(subject: str, found: dict[str, Any]) -> dict[str, Any]:
    return {"subject": subject, "versions": str(found["version"]), "id": found["id"], "type": found.get("schemaType", "AVRO")}


def _latest_rows(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    by_subject: dict[str, list[dict[str, Any]]] = {}
    for each in found:
        by_subject.setdefault(each["subject"], []).append(each)
    rows = []
    for subject, schemas in sorted(by_subject.items()):
        schemas.sort(key=lambda each: int(each["version"]))
        rows.append({**_row(subject, schemas[-1]), "versions": _ranges([int(each["version"]) for each in schemas])})
    return rows


def _ranges(numbers: Sequence[int]) -> str:
    """`1-3,5` for 1, 2, 3, 5."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


@click.command()
@click.argument("subject")
@click.argument("file", default="-")
@schema_options
@click.option(
    "--version",
    default=None,
    type=Text(read_version),
    help="Compare with this version alone, not with those of the level.",
)
@registry_options
@output_option
def check(
    registry: RegistryOptions, output: Output, subject: str, file: str, schema_type: str | None,
    references: Sequence[dict[str, Any]], version: str | None,
) -> None:  # fmt: skip
    """Check whether the schema of FILE could be registered under SUBJECT.

    This is possible if it is compatible with the versions that the level of SUBJECT names. Otherwise the exit code is 1.
    """
    body = body_of(file, schema_type, references)
    target = ("compatibility", "subjects", subject, "versions", *([] if version is None else [version]))
    with registry.client() as client:
        found = client.post(*target, body=body, verbose=True)
    if found["is_compatible"]:
        output.done(f"compatible with {subject}", found)
        return
    if output.as_json:
        output.json(found)
    raise Failure(f"not compatible with {subject}: " + " ".join(found.get("messages") or []))


@click.command()
@click.argument("subject")
@click.argument("version", required=False, type=Text(read_version))
@click.option("--permanent", is_flag=True, help="For good; it must have been deleted without this before.")
@registry_options
@output_option
def delete(registry: RegistryOptions, output: Output, subject: str, version: str | None, permanent: bool) -> None:
    """Delete SUBJECT, or one version of it.

    Its ids can still be read until it is deleted permanently.
    """
    target = ("subjects", subject, *([] if version is None else ["versions", version]))
    with registry.client() as client:
        gone = client.delete(*target, permanent=permanent)
    versions = gone if isinstance(gone, list) else [gone]
    how = "deleted for good" if permanent else "deleted"
    output.done(f"{how}: {subject} {_ranges([int(each) for each in versions])}", {"subject": subject, "versions": versions})
