"""`barnabas schema export` and `barnabas schema import`: all schemas of a registry with ids, versions, contexts and settings.

The file has one JSON object a line: first schemas, each after the schemas that it refers to, then settings. An import skips
entries that exist already, so you can run an interrupted import again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.output import Output, output_option
from barnabas.cli.registry_connection import URL, RegistryOptions, all_schemas, counted, read_input, registry_options
from barnabas.cli.types import FilePath
from barnabas.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.schemas.registry_client import RegistryClient

EVERYTHING = ":*:"  # this prefix matches all subjects of all contexts
NO_CONFIG, NO_MODE = 40408, 40409
PROGRESS_EVERY = 500  # schemas between two progress messages
SENT = ("schema", "schemaType", "references", "metadata", "ruleSet", "id", "version")
SAME = ("id", "schema")  # fields that must be equal if the version already exists
Entry = dict[str, Any]
Place = tuple[str, int]


@click.command()
@click.argument("file", type=FilePath(dir_okay=False, allow_dash=True), default="-")
@click.option("--prefix", default=EVERYTHING, help="Only subjects whose names begin so; all contexts if not given.")
@registry_options
@output_option
def export(registry: RegistryOptions, output: Output, file: str, prefix: str) -> None:
    """Write all schemas, with ids, versions, levels and modes, to FILE.

    Without FILE they go to standard output. Each line is one JSON object.
    """
    with registry.client() as client:
        entries = list(read_registry(client, prefix))
    try:
        with click.open_file(file, "w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in entries)
    except OSError as error:
        raise Failure(f"cannot write {file}: {error.strerror}") from error
    if file != "-":
        count = sum("schema" in each for each in entries)
        output.done(f"{counted(count)} written to {file}", {"schemas": count, "file": file})


@click.command("import")
@click.argument("file", required=False)
@click.option("--from", "source_url", type=URL, metavar="URL", help="Take them over from this registry, instead of a file.")
@click.option("--prefix", default=EVERYTHING, help="With --from: only subjects whose names begin so.")
@click.option("--force", is_flag=True, help="Also into subjects that have other schemas already.")
@registry_options
@output_option
def import_schemas(
    registry: RegistryOptions, output: Output, file: str | None, source_url: str | None, prefix: str, force: bool
) -> None:
    """Take over the schemas of FILE or of another registry, with their ids.

    During the import, subjects are in the mode IMPORT. It skips existing schemas, so you can run an interrupted import again.
    """
    if (file is None) == (source_url is None):
        raise BadInput("give FILE or --from")
    if source_url is None:
        assert file is not None
        entries = parse(read_input(file), file)
    else:
        with RegistryOptions(source_url, registry.file).client() as source:
            entries = list(read_registry(source, prefix))
    with registry.client() as client:
        imported, skipped = write_registry(client, entries, force=force, tell=_progress)
    there = "was" if skipped == 1 else "were"
    output.done(f"{counted(imported)} imported, {skipped} {there} there already", {"imported": imported, "skipped": skipped})


def parse(text: str, name: str) -> list[Entry]:
    """The entries of a file that `export` wrote; raises BadInput with the number of a line that is not an entry."""
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise BadInput(f"{name}: line {number} is no JSON: {error}") from error
        is_schema = isinstance(entry, dict) and {"subject", "version", "id", "schema"} <= entry.keys()
        if not is_schema and not (isinstance(entry, dict) and entry.keys() & {"config", "mode"}):
            raise BadInput(f"{name}: line {number} is neither a schema nor a setting")
        entries.append(entry)
    return entries


def read_registry(client: RegistryClient, prefix: str) -> Iterator[Entry]:
    """Every schema, each after those that it refers to, then the settings."""
    there = {_place(each) for each in all_schemas(client, prefix)}
    schemas = all_schemas(client, prefix, deleted=True)
    for each in in_order(schemas):
        entry = {key: value for key, value in each.items() if value is not None}
        yield entry if _place(each) in there else {**entry, "deleted": True}
    yield {"subject": None, "config": client.get("config")}
    subjects = {each["subject"] for each in schemas}
    contexts = {f":{each[1:].partition(':')[0]}:" for each in subjects if each.startswith(":.")}
    for subject in sorted(subjects | contexts):
        for kind, code in (("config", NO_CONFIG), ("mode", NO_MODE)):
            found = _unless(code, client.get, kind, subject)
            if found is not None:
                yield {"subject": subject, kind: found}


def in_order(schemas: Sequence[Entry]) -> list[Entry]:
    """Schemas after those that they refer to, otherwise in the order of ids."""
    by_place = {_place(each): each for each in sorted(schemas, key=lambda each: (each["id"], each["subject"], each["version"]))}
    sorter: TopologicalSorter[Place] = TopologicalSorter()
    for place, each in by_place.items():
        named = [(reference["subject"], reference["version"]) for reference in each.get("references") or ()]
        sorter.add(place, *(other for other in named if other in by_place))
    try:
        return [by_place[place] for place in sorter.static_order()]
    except CycleError as error:
        raise Failure(f"schemas name each other in a circle: {error.args[1]}") from error


def write_registry(
    client: RegistryClient, entries: Iterable[Entry], *, force: bool, tell: Callable[[int, int], None]
) -> tuple[int, int]:
    """Write entries to a registry; returns how many schemas were written and how many existed. Raises Failure if another schema
    has their place."""
    schemas = [each for each in entries if "schema" in each]
    settings = [each for each in entries if "schema" not in each]
    found = {_place(each): each for each in all_schemas(client, EVERYTHING, deleted=True)}
    wanted = [each for each in schemas if not _is_there(each, found.get(_place(each)))]
    modes: dict[str, Entry | None] = {}  # subject -> its mode before the copy
    try:
        for number, each in enumerate(wanted, 1):
            subject = each["subject"]
            if subject not in modes:
                before = _unless(NO_MODE, client.get, "mode", subject)
                client.put("mode", subject, body={"mode": "IMPORT"}, force=force or any(place[0] == subject for place in found))
                modes[subject] = before
            body = {key: each[key] for key in SENT if each.get(key) is not None}
            client.post("subjects", subject, "versions", body=body)
            if each.get("deleted"):
                client.delete("subjects", subject, "versions", each["version"])
            tell(number, len(wanted))
    except BaseException:  # also after an interrupt, no subject stays in mode IMPORT
        if left := _restore(client, modes):
            click.echo(f"barnabas: {left}", err=True)
        raise
    if left := _restore(client, modes):
        raise Failure(left)
    for each in settings:
        _set(client, each)
    return len(wanted), len(schemas) - len(wanted)


def _restore(client: RegistryClient, modes: Mapping[str, Entry | None]) -> str:
    """Restore the modes of subjects; returns a line that names those for which it failed."""
    left = []
    for subject, before in sorted(modes.items()):
        try:
            if before is None:
                _unless(NO_MODE, client.delete, "mode", subject)
            else:
                client.put("mode", subject, body=before, force=True)
        except BarnabasError:
            left.append(subject)
    if not left:
        return ""
    return f"still in the mode IMPORT: {', '.join(left)}; for each of them run `barnabas schema mode SUBJECT --remove`"


def _is_there(wanted: Entry, found: Entry | None) -> bool:
    if found is None:
        return False
    if any(found[key] != wanted[key] for key in SAME):
        raise Failure(
            f"{wanted['subject']} has another schema as version {wanted['version']} (id {found['id']}, not {wanted['id']})"
        )
    return True


def _set(client: RegistryClient, entry: Entry) -> None:
    """Write a setting, unless it exists: a read-only subject refuses even an equal value."""
    target = () if entry["subject"] is None else (entry["subject"],)
    kind, code = ("config", NO_CONFIG) if "config" in entry else ("mode", NO_MODE)
    if _unless(code, client.get, kind, *target) == entry[kind]:
        return
    if kind == "mode":
        client.put("mode", *target, body=entry["mode"], force=True)
        return
    config = dict(entry["config"])
    config["compatibility"] = config.pop("compatibilityLevel", None)
    client.put("config", *target, body={key: value for key, value in config.items() if value is not None})


def _unless(code: int, ask: Callable[..., Any], *path: str) -> Any:
    """The answer, or None if the registry answers with the error `code`."""
    from barnabas.schemas.registry_client import RegistryError

    try:
        return ask(*path)
    except RegistryError as error:
        if error.code != code:
            raise
        return None


def _place(entry: Entry) -> Place:
    return entry["subject"], entry["version"]


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty() and (done % PROGRESS_EVERY == 0 or done == total):
        click.echo(f"\r{done} of {counted(total)}", nl=done == total, err=True)
