"""The address of a cluster's metadata: `zookeeper://host:port,host:port/root`."""

from __future__ import annotations

import re
from typing import NamedTuple

SCHEME = "zookeeper://"
DEFAULT_PORT = 2181
HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:(?P<port>[0-9]{1,5}))?")
SEGMENT = re.compile(r"[A-Za-z0-9._-]+")


class ZooKeeperAddress(NamedTuple):
    """The servers, and the root path of the cluster's entries (empty: the root itself)."""

    hosts: tuple[tuple[str, int], ...]
    root: str = ""

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}{self.root}"

    @property
    def servers(self) -> str:
        """The servers in the form that ZooKeeper's own tools use."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts)


def parse_address(text: str) -> ZooKeeperAddress:
    """The address in `text`; raises ValueError with a sentence about the error."""
    if not text.startswith(SCHEME):
        raise ValueError(f"{text!r} does not begin with {SCHEME}")
    servers, slash, root = text.removeprefix(SCHEME).partition("/")
    hosts = tuple(_host(text, part.strip()) for part in servers.split(","))
    segments = [segment for segment in root.split("/") if segment] if slash else []
    for segment in segments:
        if not SEGMENT.fullmatch(segment) or segment in {".", ".."}:
            raise ValueError(f"{text!r}: {segment!r} cannot be part of a root; allowed are letters, digits, '.', '_' and '-'")
    return ZooKeeperAddress(hosts, "".join(f"/{segment}" for segment in segments))


def _host(text: str, part: str) -> tuple[str, int]:
    match = HOST.fullmatch(part)
    if match is None:
        raise ValueError(f"{text!r}: {part!r} is not host:port")
    port = int(match["port"] or DEFAULT_PORT)
    if not 0 < port < 65536:
        raise ValueError(f"{text!r}: {port} is no port")
    return match["host"], port
