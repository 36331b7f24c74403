"""A place with files: a folder, or a bucket of an object store. Names are relative to it, with `/` between their parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, Any, NamedTuple, Protocol

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Password, Type
from barnabas.connect.errors import ConnectError

STORE = "store."
SECRETS = (  # options of stores that no text shows
    "aws_secret_access_key", "secret_access_key", "aws_session_token", "session_token", "azure_storage_account_key", "account_key",
    "access_key", "sas_token", "client_secret", "google_service_account_key", "service_account_key",
)  # fmt: skip


class Entry(NamedTuple):
    """A file that a listing found.

    Args:
        version: another text for each content, as far as the place knows one.
        is_whole: whether nobody can be writing it.
    """

    name: str
    size: int
    modified_ms: int
    version: str | None
    is_whole: bool


class Changed(ConnectError):
    """A file is gone, or has another content than at its listing."""


class Storage(Protocol):
    """A place with files. Every call may raise ConnectError, or RetriableError if a later call may succeed."""

    def entries(self, *, recursive: bool) -> Iterable[Entry]:
        """The files there. Those whose name or folder begins with a dot are left out."""

    def open(self, entry: Entry) -> IO[bytes]:
        """A file to read, from any position. Raises Changed."""

    def put(self, name: str, data: Any) -> None:
        """Write a whole file, durably: readers see the old one or the new one, never a part."""

    def move(self, name: str, target: Storage) -> None:
        """Move a file to another place of the same kind, under a name that is free there."""

    def delete(self, name: str) -> None:
        """Delete a file; nothing happens if it is gone."""

    def address(self, name: str) -> str:
        """The full name of a file, in offsets and messages."""


def options_of(config: Mapping[str, Any]) -> dict[str, str]:
    """The options of an object store, by obstore's names."""
    found = {}
    for key, value in config.items():
        if key.startswith(STORE) and key != "store.url" and value is not None:
            text = value.value if isinstance(value, Password) else str(value)
            found[key.removeprefix(STORE).replace(".", "_")] = text
    return found


def define_store(definition: ConfigDef) -> ConfigDef:
    """Add the options of stores that are secrets. All other options need no definition."""
    for name in SECRETS:
        definition.define(
            STORE + name, Type.PASSWORD, None, importance=Importance.LOW, group="Store",
            documentation=f"The option {name} of the object store, by the library obstore. Its other options are keys below store. too.",
        )  # fmt: skip
    return definition


def checked_place(name: str, value: Any) -> None:
    """A validator: a path that does not depend on where the worker was started, or a URL."""
    if value is not None and not value.startswith("/") and "://" not in value:
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: an absolute path or a URL, such as s3://bucket/prefix"
        )
