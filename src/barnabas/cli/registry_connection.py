"""The options for the connection of a command to a schema registry."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from msgspec import Struct

from barnabas.cli.errors import BadInput
from barnabas.cli.properties import read_properties_file
from barnabas.cli.types import READABLE, Text, checked
from barnabas.digits import INT32, is_number

if TYPE_CHECKING:
    from barnabas.schemas.registry_client import RegistryClient

DEFAULT_URL = "http://127.0.0.1:8081"
PAGE = 1_000  # schemas per request
NAMES_OF_JAVA = ("schema.registry.", "value.converter.schema.registry.", "")  # key prefixes in settings files for Java programs


class RegistryOptions(Struct):
    """The address of the registry and the settings for it."""

    url: str
    file: str | None = None

    def client(self) -> RegistryClient:
        """Raises BadInput or ConfigError if the settings are wrong."""
        from barnabas.schemas.registry_client import RegistryClient

        return RegistryClient(self.url, self.settings())

    def settings(self) -> dict[str, str]:
        """The settings of the file. Raises BadInput if it cannot be read."""
        from barnabas.schemas.registry_client import SETTINGS

        settings: dict[str, str] = {}
        for key, value in (read_properties_file(self.file) if self.file is not None else {}).items():
            name = next(key.removeprefix(each) for each in NAMES_OF_JAVA if key.startswith(each))
            if name in SETTINGS - {"url"}:
                settings[name] = value
        return settings


def read_urls(text: str) -> list[str]:
    """The URLs of one registry, separated by commas; raises BadInput."""
    urls = [each.strip() for each in text.split(",")]
    for each in urls:
        try:
            parts = urlsplit(each)
            is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:  # the port is not a number
            is_url = False
        if not is_url or not each.isascii() or not each.isprintable() or " " in each:
            raise BadInput(f"{each!r} is no URL such as {DEFAULT_URL}")
    return urls


URL = Text(checked(read_urls))


def registry_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a registry, and call it with a `registry`."""

    @functools.wraps(function)
    def command(*, registry_url: str, registry_config: str | None, **options: Any) -> Any:
        return function(registry=RegistryOptions(registry_url, registry_config), **options)

    for option in (
        click.option("--registry-config", type=READABLE, metavar="FILE",
                     help="A properties file with basic.auth.user.info, bearer.auth.token or ssl.* settings for the registry."),
        click.option("--schema-registry", "registry_url", type=URL, metavar="URL", default=DEFAULT_URL, envvar="SCHEMA_REGISTRY_URL",
                     show_default=True, help="Where the registry is; the variable SCHEMA_REGISTRY_URL sets it too."),
    ):  # fmt: skip
        command = option(command)
    return command


def read_input(path: str) -> str:
    """The text of a file, or of standard input for `-`; raises BadInput."""
    try:
        with click.open_file(path, encoding="utf-8") as file:
            text: str = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    return text


def read_version(text: str) -> str:
    """A version in the registry's form; raises BadInput."""
    if text == "latest" or (is_number(text, INT32) and int(text)):
        return text
    raise BadInput(f"{text!r} is no version: a number from 1 on, or latest")


def read_reference(text: str) -> dict[str, Any]:
    """`NAME=SUBJECT:VERSION` in the registry's form; a subject may contain colons. Raises BadInput."""
    name, equals, rest = text.partition("=")
    subject, colon, version = rest.rpartition(":")
    if not (name and equals and subject and colon):
        raise BadInput(f"{text!r} is not NAME=SUBJECT:VERSION")
    return {"name": name, "subject": subject, "version": -1 if read_version(version) == "latest" else int(version)}


def pretty(text: str, schema_type: str) -> str:
    """The text of a schema in readable form: JSON indented, Protobuf unchanged."""
    if schema_type == "PROTOBUF":
        return text.rstrip("\n")
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)


def all_schemas(client: RegistryClient, prefix: str, *, deleted: bool = False) -> list[dict[str, Any]]:
    """All versions of the subjects that begin with `prefix`, page by page: a registry returns 1,000 at a time."""
    found: list[dict[str, Any]] = []
    while True:
        page = client.get("schemas", subjectPrefix=prefix, deleted=deleted, offset=len(found) or None, limit=PAGE)
        found += page
        if len(page) != PAGE:  # this is the last page, or the registry has no paging
            return found


def counted(number: int) -> str:
    """`1 schema`, `2 schemas`."""
    return f"{number} schema" if number == 1 else f"{number} schemas"
