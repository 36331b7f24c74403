"""`barnabas security`: certificates for trials, for tests, and for clusters without an authority of their own.

The first call creates an authority; later calls sign more certificates with it. No existing file is overwritten.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.output import Output, output_option
from barnabas.cli.types import FilePath

if TYPE_CHECKING:
    from barnabas.tls.authority import Authority, Issued

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
HOST = re.compile(r"[A-Za-z0-9*.:_-]+")
BROKER = "broker"
PASSWORD_FILE = "store.password"  # contains the password of the PKCS12 stores; PEM files have no password
PASSWORD_BYTES = 18
AUTHORITY_DAYS = 3650
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
COLUMNS = {"name": "NAME", "pem": "PEM", "key": "KEY", "pkcs12": "PKCS12", "hosts": "HOSTS"}
HINT = """
brokers:  ssl.keystore.type=PEM  ssl.keystore.location={folder}/broker.pem  ssl.truststore.type=PEM  ssl.truststore.location={folder}/ca.crt
clients:  security.protocol=SSL  ssl.ca.location={folder}/ca.crt  ssl.certificate.location=...crt  ssl.key.location=...key
password of the PKCS12 stores: {folder}/store.password"""


@click.group(context_settings=HELP_OPTIONS)
def security() -> None:
    """Create a certificate authority and certificates."""


@security.command("certificates")
@click.option(
    "--out",
    "folder",
    required=True,
    type=FilePath(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder to write to; an authority that is there already signs.",
)
@click.option(
    "--hosts",
    metavar="NAME,...",
    help="Host names and addresses of the brokers.  [default: localhost, its addresses and the name of this machine]",
)
@click.option("--clients", metavar="NAME,...", help="Names of clients that get certificates.")
@click.option(
    "--days", type=click.IntRange(1, 36500), default=365, show_default=True, help="Days for which the certificates are valid."
)
@output_option
def certificates(output: Output, folder: Path, hosts: str | None, clients: str | None, days: int) -> None:
    """Create a private certificate authority, and certificates for brokers and clients.

    Each certificate is written as PEM (.crt, .key, and both in .pem) and as PKCS12 (.p12). Only the owner can read the keys.
    """
    named = _words(clients, NAME, "--clients")
    wanted_hosts = _words(hosts, HOST, "--hosts")
    if BROKER in named:
        raise BadInput(f"--clients: {BROKER} is the name of the brokers' certificate")
    try:
        authority, is_new = _authority(folder)
        rows = []
        if is_new or wanted_hosts:
            names = wanted_hosts or this_machine()
            rows.append(_row(BROKER, authority.issue(BROKER, hosts=names, days=days), names))
        rows += [_row(name, authority.issue(name, days=days), []) for name in named]
    except FileExistsError as error:
        raise BadInput(f"{error.filename} is there already, and nothing is overwritten") from error
    except (OSError, ValueError) as error:
        raise Failure(f"{folder}: {getattr(error, 'strerror', None) or error}") from error
    if not rows:
        raise BadInput("there is an authority already: give --hosts or --clients for it to sign")
    output.table(rows, COLUMNS)
    if not output.as_json:
        click.echo(HINT.format(folder=folder))


def this_machine() -> list[str]:
    """The names and addresses under which clients reach this machine."""
    return list(dict.fromkeys([*LOCAL_HOSTS, socket.gethostname(), socket.getfqdn()]))


def certify_broker(folder: Path, hosts: Sequence[str]) -> None:
    """Create the broker's certificate for this machine and `hosts`, valid as long as its authority; raises OSError,
    ValueError."""
    authority, _ = _authority(folder)
    authority.issue(BROKER, hosts=list(dict.fromkeys([*this_machine(), *hosts])), days=AUTHORITY_DAYS)


def _words(text: str | None, pattern: re.Pattern[str], option: str) -> list[str]:
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    for word in words:
        if not pattern.fullmatch(word):
            raise BadInput(f"{option}: {word!r} is not a valid name here")
    return list(dict.fromkeys(words))


def _authority(folder: Path) -> tuple[Authority, bool]:
    """The authority in the folder, and whether this call created it."""
    from barnabas.tls.authority import CA_KEY, Authority

    password_file = folder / PASSWORD_FILE
    if (folder / CA_KEY).exists():
        return Authority.load(folder, password=password_file.read_text().strip()), False
    folder.mkdir(parents=True, exist_ok=True)
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    with os.fdopen(os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(password + "\n")
    return Authority.create(folder, password=password, days=AUTHORITY_DAYS), True


def _row(name: str, issued: Issued, hosts: Sequence[str]) -> dict[str, object]:
    return {
        "name": name,
        "pem": str(issued.certificate),
        "key": str(issued.key),
        "pkcs12": str(issued.keystore),
        "hosts": list(hosts),
    }
