"""Addresses as text: HOST:PORT, and one spelling for addresses of peers (Java writes `::1` as `0:0:0:0:0:0:0:1`)."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from barnabas.digits import is_number


def host_and_port(text: str) -> tuple[str, int]:
    """HOST:PORT or [V6]:PORT. Raises ValueError."""
    host, colon, port = text.strip().rpartition(":")
    host = host.strip("[]")
    try:
        host.encode("idna")
    except UnicodeError:
        host = ""
    if not colon or not host or not is_number(port, 65_535):
        raise ValueError(f"{text.strip()!r} is not HOST:PORT")
    return host, int(port)


def joined(host: str, port: int) -> str:
    """HOST:PORT or [V6]:PORT."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@lru_cache(maxsize=4096)
def plain_address(text: str) -> str:
    """The canonical spelling of an address; a text that is not an address stays unchanged."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(address if mapped is None else mapped)
