"""`barnabas start --secure`: creates the certificates, the user and the settings of a secure broker at its first start.

They are in a folder beside the data folder: a private authority, the broker's certificate, `admin.properties`, and the key of delegation
tokens. With `admin.properties` any Kafka client logs in as the user `admin`. The folder exists only after the certificates are complete.
`admin.properties` is written last: without it the next start creates the user again, with another password.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
from pathlib import Path

import click

from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.security import BROKER, certify_broker
from barnabas.cli.user import ITERATIONS, MECHANISMS, opened, upsertions
from barnabas.config.properties import format_properties

ADMIN = "admin"
ADMIN_FILE = "admin.properties"
TOKEN_KEY_FILE = "token.key"  # of delegation tokens, with which sessions of SQL act for users that logged in by SCRAM
PASSWORD_BYTES = 24
LISTENERS = "SASL_SSL://127.0.0.1:9092"


def folder_of(data_dir: str) -> Path:
    """The folder beside the data folder; it is not inside, since a log directory may contain only partitions."""
    return Path(f"{data_dir.rstrip('/')}-security")


def secure(properties: dict[str, str]) -> Path:
    """Add the secure settings to those of a broker, and create the files that they name; returns the path of
    `admin.properties`.

    Existing settings stay.

    Raises:
        BadInput: the broker belongs to a cluster, or has listeners without TLS and log-in.
        Failure: the folder cannot be written.
    """
    if "zookeeper.connect" in properties:
        raise BadInput("--secure is for a broker that stands alone; docs/security.md shows a secure cluster")
    properties.setdefault("listeners", LISTENERS)
    for listener in properties["listeners"].split(","):
        if not listener.strip().upper().startswith("SASL_SSL://"):
            raise BadInput(
                f"--secure: {listener.strip()} accepts clients without TLS or log-in; listeners must be SASL_SSL://HOST:PORT"
            )
    data_dir = properties.get("log.dirs", properties.get("log.dir", "")).split(",")[0].strip()
    folder = folder_of(data_dir)
    try:
        if not folder.exists():
            _make_certificates(folder, _hosts(properties))
        if not (folder / ADMIN_FILE).exists():
            _make_admin(Path(data_dir), folder)
        if not (folder / TOKEN_KEY_FILE).exists():
            _write_secret(folder / TOKEN_KEY_FILE, secrets.token_urlsafe(PASSWORD_BYTES))
        token_key = (folder / TOKEN_KEY_FILE).read_text()
    except (OSError, ValueError) as error:
        raise Failure(f"{folder}: {getattr(error, 'strerror', None) or error}") from error
    made = {
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": MECHANISMS[-1],
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / f"{BROKER}.pem"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN}",
        "delegation.token.secret.key": token_key,
    }
    for key, value in made.items():
        properties.setdefault(key, value)
    return folder / ADMIN_FILE


def _make_certificates(folder: Path, hosts: list[str]) -> None:
    """Create all certificates or none; replaces the remains of an interrupted start."""
    unfinished = folder.with_name(f"{folder.name}.tmp")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    certify_broker(unfinished, hosts)
    unfinished.rename(folder)


def _hosts(properties: dict[str, str]) -> list[str]:
    """The host names in the listeners; the certificate lists them in addition to this machine's own."""
    named = ",".join(properties.get(key, "") for key in ("listeners", "advertised.listeners")).split(",")
    hosts = [listener.rpartition(":")[0].partition("://")[2].strip("[]") for listener in named if "://" in listener]
    return [host for host in dict.fromkeys(hosts) if host and host not in ("0.0.0.0", "::")]


def _make_admin(data_dir: Path, folder: Path) -> None:
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    with opened(data_dir=data_dir) as users:
        users.alter([], upsertions(ADMIN, MECHANISMS, password, ITERATIONS))
    lines = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISMS[-1],
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{ADMIN}" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str((folder / "ca.crt").absolute()),
    }
    _write_secret(folder / ADMIN_FILE, format_properties(lines))


def _write_secret(path: Path, text: str) -> None:
    """Readable by this user alone; the file appears once it is complete."""
    unfinished = path.with_name(f"{path.name}.tmp")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)


def greet(admin: Path) -> None:
    named = shlex.quote(str(admin))
    click.echo(
        f"barnabas accepts only clients that log in over TLS. {admin} logs you in as {ADMIN}; in another terminal:", err=True
    )
    click.echo(f"  echo hello | barnabas produce greetings --command-config {named}", err=True)
    click.echo(f"  barnabas user add alice --command-config {named}", err=True)
    click.echo(f"  barnabas acl add --principal User:alice --operation read --topic greetings --command-config {named}", err=True)
