"""The services of `barnabas start`: which run beside the broker, and where.

Rules
  1. Services that are asked for by name must be possible: otherwise the command ends with exit code 2 before the broker starts.
  2. Without such options they run if the broker has the default listener, so that a second broker on a machine takes no
     second port. If their port is taken or their libraries are missing, the broker runs alone, and one line says so when it is ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from barnabas.cli.errors import BadInput
from barnabas.cli.properties import read_properties_file

# not passed on: the broker's listener with SASL requests no client certificate, the service does
OF_THE_BROKER = frozenset({"ssl.client.auth"})
SUBJECT_CLAIM = "sasl.oauthbearer.sub.claim.name"

if TYPE_CHECKING:
    from barnabas.services.supervisor import Supervisor


class ServicesAsked(NamedTuple):
    """The options of `barnabas start` on services."""

    names: str | None
    none: bool
    listeners: Mapping[str, str | None]
    config_file: str | None

    @property
    def by_name(self) -> bool:
        """Whether an option asks for services."""
        return self.names is not None or self.config_file is not None or any(self.listeners.values())


class WithoutServices:
    """Stands in for the supervisor: says why no services run, once the broker is ready."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def start(self, _bootstrap: str) -> None:
        click.echo(f"barnabas: {self.reason}; the broker runs without services", err=True)

    def stop(self) -> None:
        """Nothing runs."""


def beside(
    asked: ServicesAsked, properties: dict[str, str], admin_file: Path | None, log_level: str, *, by_default: bool
) -> Supervisor | WithoutServices | None:
    """The services, to be started when the broker is ready and stopped at its end; None if the broker is to run alone.

    Args:
        properties: the broker's; it learns where the schema registry is.
        admin_file: the client settings that `--secure` has made.
        by_default: whether services run if no option asks for them.

    Raises:
        BadInput: what was asked for is impossible.
    """
    if asked.none:
        if asked.by_name:
            raise BadInput("--no-services excludes the other options on services")
        return None
    if not (asked.by_name or (by_default and "zookeeper.connect" not in properties)):
        return None
    try:
        return _prepare(asked, properties, admin_file, log_level)
    except BadInput as error:
        if asked.by_name:
            raise
        return WithoutServices(error.message)


def _prepare(asked: ServicesAsked, properties: dict[str, str], admin_file: Path | None, log_level: str) -> Supervisor:
    from barnabas.services.supervisor import Supervisor
    from barnabas.services.table import SERVICES

    names = list(SERVICES) if asked.names is None else [name.strip() for name in asked.names.split(",") if name.strip()]
    listeners = _checked(names, asked.listeners, "http" if admin_file is None else "https")
    settings = _from_secure(properties, admin_file) if admin_file is not None else {}
    settings |= read_properties_file(asked.config_file) if asked.config_file else {}
    protocol = properties["listeners"].split(",")[0].partition("://")[0].strip().upper()
    if protocol != "PLAINTEXT" and "security.protocol" not in settings:
        raise BadInput(f"the services need --services-config FILE to reach the listener {protocol}")
    if "registry" in listeners and "confluent.schema.registry.url" not in properties:
        properties |= _registry_settings(listeners["registry"], settings)
    return Supervisor(listeners, settings, log_level.lower())


def _registry_settings(url: str, settings: Mapping[str, str]) -> dict[str, str]:
    """With which the broker asks the registry beside it: as the user whom the services themselves log in as."""
    for everywhere, here in (("//0.0.0.0:", "//127.0.0.1:"), ("//[::]:", "//[::1]:")):
        url = url.replace(everywhere, here)
    result = {"confluent.schema.registry.url": url}
    if "BASIC" in settings.get("authentication.method", "").upper():
        from barnabas.client.config import credentials_from

        own = credentials_from(settings)
        if own is not None and own.username and own.password:
            result["confluent.basic.auth.credentials.source"] = "USER_INFO"
            result["confluent.basic.auth.user.info"] = f"{own.username}:{own.password}"
    for key in ("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type"):
        if url.startswith("https:") and key in settings:
            result[f"confluent.{key}"] = settings[key]
    return result


def _checked(names: list[str], listeners: Mapping[str, str | None], scheme: str) -> dict[str, str]:
    """The URL of each service, after a look whether it can be had; imports no web server."""
    from barnabas.services.listener import bind, parse_listener
    from barnabas.services.table import check_installed, entries
    from barnabas.web.service import ServiceError

    result = {}
    try:
        for entry in entries(names):
            check_installed(entry)
            listener = parse_listener(listeners.get(entry.name) or f"{scheme}://127.0.0.1:{entry.port}", entry.port)
            listening = bind(entry, listener)
            port = listening.getsockname()[1]  # if the port is 0, the service keeps this free port for later restarts
            listening.close()
            result[entry.name] = str(listener._replace(port=port))
    except ServiceError as error:
        raise BadInput(str(error)) from None
    if not result:
        raise BadInput("--services names no service")
    return result


def _from_secure(properties: Mapping[str, str], admin_file: Path) -> dict[str, str]:
    """Settings for services of a broker with `--secure`: callers log in as they do to the broker, over its certificate.

    Certificates of the private authority count too, by the broker's rules for names.
    """
    client = read_properties_file(str(admin_file))
    mechanisms = properties["sasl.enabled.mechanisms"].replace(" ", "").split(",")
    listener = {
        "ssl.client.auth": "requested",
        "ssl.truststore.type": client["ssl.truststore.type"],
        "ssl.truststore.location": client["ssl.truststore.location"],
        **{key: value for key, value in properties.items() if key.startswith("ssl.") and key not in OF_THE_BROKER},
    }
    own = {SUBJECT_CLAIM: properties[SUBJECT_CLAIM]} if SUBJECT_CLAIM in properties else {}
    return {
        **client,
        **{f"listener.{key}": value for key, value in listener.items()},
        **own,
        "authentication.method": "BASIC,BEARER" if "OAUTHBEARER" in mechanisms else "BASIC",
    }
