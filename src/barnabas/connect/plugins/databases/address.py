"""Addresses of databases, as JDBC urls have them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from barnabas.connect.errors import ConnectError

logger = logging.getLogger(__name__)
SERVERS = {"postgresql": ("postgresql", 5432), "mysql": ("mysql", 3306), "mariadb": ("mysql", 3306)}
FILES = ("sqlite", "duckdb")
FORMS = "jdbc:postgresql://HOST/DATABASE, jdbc:mysql://HOST/DATABASE, jdbc:mariadb://HOST/DATABASE, jdbc:sqlite:FILE, jdbc:duckdb:FILE"
HIDDEN = "[hidden]"


class Address(Struct, frozen=True):
    """Where a database is.

    Args:
        kind: postgresql, mysql, sqlite or duckdb.
        database: its name; of an embedded database the path of its file.
        options: of the url, but user and password.
    """

    kind: str
    host: str = ""
    port: int = 0
    database: str = ""
    user: str | None = None
    password: str | None = None
    options: Mapping[str, str] = {}

    def __str__(self) -> str:
        return f"{self.kind}://{self.host}:{self.port}/{self.database}" if self.host else f"{self.kind}:{self.database}"

    def __repr__(self) -> str:
        return str(self)


def address_of(url: str, user: str | None = None, password: str | None = None) -> Address:
    """The address that a JDBC url has. A user and a password that are given go before those in the url. Raises ConnectError."""
    scheme, _, rest = url.removeprefix("jdbc:").partition(":")
    if not url.startswith("jdbc:") or scheme not in (*SERVERS, *FILES):
        raise ConnectError(f"the url {_without_secrets(url)} is none of {FORMS}")
    if scheme in FILES:
        path, _, query = rest.partition("?")
        return Address(scheme, database=unquote(path), options=dict(parse_qsl(query)))
    kind, port = SERVERS[scheme]
    try:
        parts = urlsplit(f"{kind}:{rest}")
        host, port = parts.hostname or "localhost", parts.port or port
    except ValueError as error:
        raise ConnectError(f"the url {_without_secrets(url)} cannot be read: {error}") from None
    if not rest.startswith("//"):
        raise ConnectError(f"the url {_without_secrets(url)} is none of {FORMS}")
    options = dict(parse_qsl(parts.query))
    user = user or options.pop("user", None) or parts.username
    secret = options.pop("password", None) or parts.password
    return Address(kind, host, port, unquote(parts.path.lstrip("/")), user, password or secret, options)


def _without_secrets(url: str) -> str:
    """The url for an error: a password may be anywhere behind the scheme's host."""
    return url.partition("?")[0].rpartition("@")[2] if "@" in url or "?" in url else url


def known_options(address: Address, names: Mapping[str, str]) -> dict[str, str]:
    """The options that a library takes, by its names for those of JDBC. The log tells of others."""
    found = {}
    for name, value in address.options.items():
        if name in names:
            found[names[name]] = value
        else:
            logger.warning("event=url-option-ignored database=%s option=%r", address, name)
    return found
