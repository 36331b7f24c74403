"""The table of the services, with one entry for each. A service is imported when its entry is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from barnabas.web.service import Service, ServiceContext, ServiceEntry, ServiceError

WEB_SERVER = ("httptools", "uvicorn")  # libraries that the host of the services imports
REGISTRY = ("google.protobuf", "jsonschema_rs")
SQL = ("duckdb", "numba", "pyarrow", "sqlglot")
ENGINE = ("pyspark", "duckdb", "numba", "pyarrow")
SQL_TIMEOUT_S = 3_600.0  # sql.query.timeout.ms ends statements before


def _load_registry(context: ServiceContext) -> Service:
    return cast(Service, import_module("barnabas.registry.service").RegistryService(context))


def _load_sql(context: ServiceContext) -> Service:
    return cast(Service, import_module("barnabas.sql.service").SqlService(context))


def _load_engine(context: ServiceContext) -> Service:
    return cast(Service, import_module("barnabas.engine.service").EngineService(context))


def _load_connect(context: ServiceContext) -> Service:
    return cast(Service, import_module("barnabas.connect.service").ConnectService(context))


SERVICES = {
    entry.name: entry
    for entry in (
        ServiceEntry("registry", "schema registry", 8081, "registry", REGISTRY, _load_registry),
        ServiceEntry("sql", "SQL over HTTP", 8088, "sql", SQL, _load_sql, timeout_s=SQL_TIMEOUT_S, follows_clients=True),
        ServiceEntry("engine", "engine", 8086, "engine", ENGINE, _load_engine),
        ServiceEntry("connect", "Connect", 8083, "engine", ENGINE, _load_connect),
    )
}


def entries(names: Iterable[str]) -> list[ServiceEntry]:
    """The entries of these services; raises ServiceError for an unknown name."""
    found = {}
    for name in names:
        if name not in SERVICES:
            raise ServiceError(f"there is no service {name!r}; there are {', '.join(SERVICES)}")
        found[name] = SERVICES[name]
    return list(found.values())


def _is_missing(library: str) -> bool:
    """Whether a library is not installed; imports at most the packages around it."""
    try:
        return find_spec(library) is None
    except ImportError:
        return True


class NotInstalled(ServiceError):
    """A library of a service is missing."""

    def __init__(self, entry: ServiceEntry, missing: Sequence[str]) -> None:
        super().__init__(
            f"the {entry.title} needs {' and '.join(missing)}: pip install 'barnabas[{entry.extra}]', "
            "or 'barnabas[all]' for every service"
        )


def check_installed(entry: ServiceEntry) -> None:
    """Raises NotInstalled if a library of the host or of the service is not installed."""
    if missing := [name for name in (*WEB_SERVER, *entry.libraries) if _is_missing(name)]:
        raise NotInstalled(entry, missing)
