"""One spelling for addresses of peers: Java writes `::1` as `0:0:0:0:0:0:0:1`."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=4096)
def plain_address(text: str) -> str:
    """The canonical spelling of an address; a text that is not an address stays unchanged."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(address if mapped is None else mapped)
