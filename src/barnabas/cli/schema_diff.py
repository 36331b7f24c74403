"""`barnabas schema diff`: what breaks for whom between versions of a subject."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.errors import BadInput
from barnabas.cli.output import Output, output_option
from barnabas.cli.registry_connection import RegistryOptions, read_version, registry_options
from barnabas.cli.schema import body_of, schema_options
from barnabas.cli.types import Text

if TYPE_CHECKING:
    from barnabas.registry.formats.interface import ParsedSchema
    from barnabas.schemas.registry_client import RegistryClient

MOST_REFERENCES = 1_000  # references that are followed for one schema


def _version(text: str) -> str:
    """A version; raises BadInput, which names the option for a file if the text is a file."""
    try:
        return read_version(text)
    except BadInput:
        if Path(text).is_file():
            raise BadInput(f"{text!r} is a file; give it by --file") from None
        raise


@click.command()
@click.argument("subject")
@click.argument("old", required=False, type=Text(_version))
@click.argument("new", default="latest", type=Text(_version))
@click.option("--file", help="Compare this file (or - for standard input) with the versions, instead of NEW.")
@schema_options
@registry_options
@output_option
def diff(
    registry: RegistryOptions, output: Output, subject: str, old: str | None, new: str, file: str | None,
    schema_type: str | None, references: Any,
) -> None:  # fmt: skip
    """Say what breaks for whom between two schemas.

    It lists the changes that break consumers if they update before producers, and producers if they update before consumers. It
    compares version NEW of SUBJECT (the latest), or FILE, with version OLD, or with every other version, newest first. The
    level of the subject has no effect here.
    """
    with registry.client() as client:
        versions = [int(each) for each in client.get("subjects", subject, "versions")]
        if file is not None:
            title, newer = f"the schema of {file}", _parsed(client, body_of(file, schema_type, references))
        else:
            found = client.get("subjects", subject, "versions", new)
            title, newer = f"version {found['version']}", _parsed(client, found)
            versions = [each for each in versions if each != found["version"]]
        if old is not None:
            versions = [client.get("subjects", subject, "versions", old)["version"]]
        rows = []
        for version in sorted(versions, reverse=True):
            older = _parsed(client, client.get("subjects", subject, "versions", version))
            rows += _rows(version, newer, older)
    if output.as_json:
        output.json(rows)
    else:
        click.echo("\n".join(_sentences(title, versions, rows)))


def _rows(version: int, newer: ParsedSchema, older: ParsedSchema) -> list[dict[str, Any]]:
    """One row for each thing that breaks between a version and the newer schema."""
    pairs = (("new", newer.unreadable(older)), ("old", [each.read_by_old() for each in older.unreadable(newer)]))
    return [
        {"version": version, "reader": reader, "kind": each.kind, "description": each.description}
        for reader, broken in pairs
        for each in broken
    ]


def _sentences(title: str, versions: list[int], rows: list[dict[str, Any]]) -> list[str]:
    if not versions:
        return [f"{title} is the only one"]
    lines = []
    for reader, text in (
        ("new", f"Consumers with {title} cannot read records of"),
        ("old", f"Records of {title} cannot be read by consumers with"),
    ):
        broken = [row for row in rows if row["reader"] == reader]
        if not broken:
            names = ", ".join(map(str, sorted(versions)))
            side = (
                f"Consumers with {title} read records of" if reader == "new" else f"Records of {title} are read by consumers with"
            )
            lines.append(f"{side} version {names}.")
            continue
        lines.append(f"{text} version {', '.join(map(str, sorted({row['version'] for row in broken})))}:")
        for kind, description in dict.fromkeys((row["kind"], row["description"]) for row in broken):
            since = max(row["version"] for row in broken if (row["kind"], row["description"]) == (kind, description))
            lines.append(f"  {kind} (version {since}): {description}")
    return lines


def _parsed(client: RegistryClient, body: dict[str, Any]) -> ParsedSchema:
    from barnabas.registry.formats.interface import InvalidSchema
    from barnabas.registry.formats.table import format_of

    try:
        return format_of(body.get("schemaType", "AVRO")).parse(body["schema"], _texts(client, body))
    except InvalidSchema as error:
        raise BadInput(f"the schema is not valid: {error}") from error


def _texts(client: RegistryClient, body: dict[str, Any]) -> dict[str, str]:
    """The texts of the schemas that a schema needs, by name; each comes after those that it refers to."""
    texts: dict[str, str] = {}
    seen: set[str] = set()
    waiting = [(each, False) for each in reversed(body.get("references") or [])]
    fetched: dict[str, dict[str, Any]] = {}
    while waiting:
        each, is_open = waiting.pop()
        name = each["name"]
        if is_open:
            texts[name] = fetched.pop(name)["schema"]
        elif name not in seen:
            if len(seen) >= MOST_REFERENCES:
                raise BadInput(f"the schema names more than {MOST_REFERENCES} others")
            seen.add(name)
            version = "latest" if each["version"] == -1 else each["version"]
            fetched[name] = client.get("subjects", each["subject"], "versions", version, deleted=True)
            waiting.append((each, True))
            waiting += [(other, False) for other in reversed(fetched[name].get("references") or [])]
    return texts
