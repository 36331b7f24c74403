"""The addresses of a broker: `listeners`, `advertised.listeners`, `listener.security.protocol.map`.

A listener has a name of its own (`INTERNAL://10.0.0.1:9092`); the map gives its protocol. Listeners in
`controller.listener.names` belong to Kafka's own quorum and are never opened here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.errors import ConfigError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ADDRESS = r"(?P<name>[^:/]+)://(?:\[(?P<v6>[0-9a-fA-F:.%]*)\]|(?P<host>[-\w.%]*)):(?P<port>-?\d+)"


class Endpoint(NamedTuple):
    """The address of a listener; an empty host means every interface, port 0 any free port."""

    listener: str
    host: str
    port: int
    protocol: str


def has_tls(protocol: str) -> bool:
    return protocol in {"SSL", "SASL_SSL"}


def parse_listeners(key: str, addresses: Sequence[str], protocols: dict[str, str]) -> tuple[Endpoint, ...]:
    """Endpoints of `addresses`; raises ConfigError for an address that does not parse, an unknown protocol, or a name used
    twice."""
    endpoints = tuple(_parse_address(key, address, protocols) for address in addresses)
    names = [endpoint.listener for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(key, ",".join(addresses), "each listener needs a name of its own")
    return endpoints


def _parse_address(key: str, address: str, protocols: dict[str, str]) -> Endpoint:
    match = re.fullmatch(ADDRESS, address)
    if match is None:
        raise ConfigError(key, address, "NAME://host:port, several separated by commas")
    port = int(match["port"])
    if not 0 <= port < 65536:
        raise ConfigError(key, address, "a port from 0 to 65535")
    name = match["name"].upper()
    if name not in protocols:
        raise ConfigError(key, address, f"a name that listener.security.protocol.map knows: {', '.join(protocols)}")
    return Endpoint(name, match["v6"] or match["host"] or "", port, protocols[name])


def parse_protocol_map(text: str) -> dict[str, str]:
    """Protocol by listener name; raises ConfigError."""
    key, result = "listener.security.protocol.map", {}
    for pair in text.split(",") if text else ():
        name, _, protocol = (part.strip() for part in pair.partition(":"))
        if not name or protocol.upper() not in PROTOCOLS:
            raise ConfigError(key, pair, f"NAME:PROTOCOL, with a protocol out of {', '.join(PROTOCOLS)}")
        if name.upper() in result:
            raise ConfigError(key, text, "each listener once")
        result[name.upper()] = protocol.upper()
    return result
