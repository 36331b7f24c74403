"""The services of `barnabas start` that run beside the broker, and their addresses.

Rules
  1. A broker with the default listener has all services; another broker has those whose listeners are given. `--services` names others.
  2. If an option names services that cannot run, the command ends with exit code 2 before the broker starts.
  3. Without such options they run if the broker has the default listener, so that a second broker on a machine takes no
     second port. A service whose port is taken or whose libraries are missing does not run, and one line says so when the broker is
     ready.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from barnabas.cli.errors import BadInput
from barnabas.cli.properties import read_properties_file
from barnabas.sql.listening import DEFAULT_POSTGRES, POSTGRES

# not passed on: the broker's listener with SASL requests no client certificate, the service does
OF_THE_BROKER = frozenset({"ssl.client.auth"})
FOLDERS = {"engine": "engine.data.dir", "sql": "sql.data.dir"}  # of services, beside that of the broker
REGISTRY = "schema.registry.url"
SUBJECT_CLAIM = "sasl.oauthbearer.sub.claim.name"

if TYPE_CHECKING:
    from barnabas.services.supervisor import Supervisor


class ServicesAsked(NamedTuple):
    """The options of `barnabas start` for services."""

    names: str | None
    none: bool
    listeners: Mapping[str, str | None]
    config_file: str | None
    postgres: str | None = None

    @property
    def with_listeners(self) -> list[str]:
        """The services whose listeners are given; the tasks of Connect need the engine."""
        given = {name for name, listener in self.listeners.items() if listener}
        return sorted(given | ({"sql"} if self.postgres else set()) | ({"engine"} if "connect" in given else set()))

    @property
    def by_name(self) -> bool:
        """Whether an option asks for services."""
        return self.names is not None or self.config_file is not None or self.postgres is not None or any(self.listeners.values())


class ServicesBeside:
    """The services that run, and the reasons of those that do not, which it tells once the broker is ready."""

    def __init__(self, supervisor: Supervisor | None, reasons: Sequence[str]) -> None:
        self.supervisor, self.reasons = supervisor, reasons

    def start(self, bootstrap: str) -> None:
        for reason in self.reasons:
            click.echo(f"barnabas: {reason}; the broker runs without it", err=True)
        if self.supervisor is not None:
            self.supervisor.start(bootstrap)

    def stop(self) -> None:
        if self.supervisor is not None:
            self.supervisor.stop()


def beside(
    asked: ServicesAsked, properties: dict[str, str], admin_file: Path | None, log_level: str, *, by_default: bool
) -> ServicesBeside | None:
    """The services, to be started when the broker is ready and stopped at its end; None if the broker is to run alone.

    Args:
        properties: the broker's settings; the URL of the schema registry is added.
        admin_file: the file with the client settings of `--secure`.
        by_default: whether services run if no option asks for them.

    Raises:
        BadInput: the services cannot run as the options say.
    """
    if asked.none:
        if asked.by_name:
            raise BadInput("--no-services excludes the other options on services")
        return None
    if not (asked.by_name or (by_default and "zookeeper.connect" not in properties)):
        return None
    listeners, reasons = _possible(asked, "http" if admin_file is None else "https", by_default=by_default)
    if not listeners:
        return ServicesBeside(None, reasons)
    return ServicesBeside(_supervisor(asked, listeners, properties, admin_file, log_level), reasons)


def _possible(asked: ServicesAsked, scheme: str, *, by_default: bool) -> tuple[dict[str, str], list[str]]:
    """The URLs of the services that can run, and why others cannot. Raises BadInput if one that was asked for cannot."""
    from barnabas.services.table import SERVICES

    if asked.names is not None:
        names = [name.strip() for name in asked.names.split(",") if name.strip()]
    else:
        names = list(SERVICES) if by_default else asked.with_listeners or list(SERVICES)
    if not names:
        raise BadInput("--services names no service")
    found: dict[str, str] = {}
    reasons = []
    for name in names:
        try:
            found[name] = _checked(name, asked, scheme)
        except BadInput as error:
            if asked.by_name:
                raise
            reasons.append(error.message)
    return found, reasons


def _supervisor(
    asked: ServicesAsked, listeners: Mapping[str, str], properties: dict[str, str], admin_file: Path | None, log_level: str
) -> Supervisor:
    from barnabas.services.supervisor import Supervisor

    settings = _from_secure(properties, admin_file) if admin_file is not None else {}
    if "sql" in listeners:
        settings[POSTGRES] = asked.postgres or DEFAULT_POSTGRES
        if admin_file is not None:
            settings["postgres.authentication.method"] = "SCRAM"
    logs = properties.get("log.dirs") or properties.get("log.dir")
    if logs:
        beside_logs = logs.split(",")[0].strip().rstrip("/")
        settings |= {key: f"{beside_logs}-{name}" for name, key in FOLDERS.items() if name in listeners}
    settings |= read_properties_file(asked.config_file) if asked.config_file else {}
    protocol = properties["listeners"].split(",")[0].partition("://")[0].strip().upper()
    if protocol != "PLAINTEXT" and "security.protocol" not in settings:
        raise BadInput(f"the services need --services-config FILE to reach the listener {protocol}")
    if "registry" in listeners:
        url = _reached(listeners["registry"])
        if "confluent.schema.registry.url" not in properties:
            properties |= _registry_settings(url, settings)
        if url.startswith("http:"):  # SQL and the engine have no log-in at a registry of their own
            settings.setdefault(REGISTRY, url)
    return Supervisor(listeners, settings, log_level.lower())


def _reached(url: str) -> str:
    """The URL of a listener on every address, as this machine reaches it."""
    for everywhere, here in (("//0.0.0.0:", "//127.0.0.1:"), ("//[::]:", "//[::1]:")):
        url = url.replace(everywhere, here)
    return url


def _registry_settings(url: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The broker's settings for the registry beside it: with BASIC it logs in as the user of the services."""
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


def _checked(name: str, asked: ServicesAsked, scheme: str) -> str:
    """The URL of a service, after a look whether its ports can be had; imports no web server. Raises BadInput."""
    from barnabas.services.listener import bind, option_of, parse_listener
    from barnabas.services.table import check_installed, entries
    from barnabas.sql.listening import listening_for_postgres, postgres_address
    from barnabas.web.service import ServiceError

    try:
        (entry,) = entries([name])
        check_installed(entry)
        listener = parse_listener(asked.listeners.get(name) or f"{scheme}://127.0.0.1:{entry.port}", entry.port)
        listening = bind(entry, listener, option_of(entry))
        port = listening.getsockname()[1]  # if the port is 0, the service keeps this free port for later restarts
        listening.close()
        if name == "sql":
            listening_for_postgres(*postgres_address(asked.postgres or DEFAULT_POSTGRES))[0].close()
    except ServiceError as error:
        raise BadInput(str(error)) from None
    return str(listener._replace(port=port))


def _from_secure(properties: Mapping[str, str], admin_file: Path) -> dict[str, str]:
    """Settings for services of a broker with `--secure`: they have the broker's certificate, and callers log in as at the broker.

    Callers may also log in with certificates of the private authority, by the broker's rules for names.
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
