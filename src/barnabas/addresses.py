"""Addresses of peers, which people and clients spell in several ways: `::1` is `0:0:0:0:0:0:0:1` as Java writes it."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=4096)
def plain_address(text: str) -> str:
    """The one spelling of an address; a text that is none stays as it is."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(address if mapped is None else mapped)
