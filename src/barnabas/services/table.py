"""The table of the services: one entry each. A service is imported when its entry is loaded."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from barnabas.web.service import Service, ServiceContext, ServiceEntry, ServiceError

WEB_SERVER = ("httptools", "uvicorn")  # the libraries of the host


def _load_registry(context: ServiceContext) -> Service:
    return cast(Service, import_module("barnabas.registry.service").RegistryService(context))


SERVICES = {entry.name: entry for entry in (ServiceEntry("registry", "schema registry", 8081, "registry", _load_registry),)}


def entries(names: Iterable[str]) -> list[ServiceEntry]:
    """The entries of these services; raises ServiceError for an unknown name."""
    found = {}
    for name in names:
        if name not in SERVICES:
            raise ServiceError(f"there is no service {name!r}; there are {', '.join(SERVICES)}")
        found[name] = SERVICES[name]
    return list(found.values())


def missing_libraries() -> list[str]:
    """The libraries of the web server that are not installed. Imports none of them."""
    return [name for name in WEB_SERVER if find_spec(name) is None]


def check_installed(entry: ServiceEntry) -> None:
    """Raises ServiceError if the extra of a service is not installed."""
    if missing := missing_libraries():
        raise ServiceError(
            f"the {entry.title} needs {' and '.join(missing)}: pip install 'barnabas[{entry.extra}]', "
            "or 'barnabas[all]' for every service"
        )
