"""Counts requests of versions that Kafka 4 dropped: the clients that `api.versions.oldest=kafka-4` would stop.

Rules
  1. A current client costs only one comparison of two numbers, as part of the version check.
  2. Clients choose their names. So only `limits.MAX_OLD_CLIENTS` names are counted separately. Further requests count under OTHERS.
  3. The first request of a client is logged with the client's address. No metric has the address.

Clients send the name of their software from ApiVersions 3 on (KIP-511). Most of these old clients do not.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas import limits
from barnabas.protocol.messages import APIS

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from barnabas.protocol.request_headers import RequestHeader
    from barnabas.server.connection import Connection

logger = logging.getLogger(__name__)

NAME = "barnabas_old_requests_total"
NAMES = {
    NAME: "Requests of versions that Kafka 4 dropped, by the client that sends them; software is what it says that it is made with."
}
LABELS = {NAME: ("api", "version", "client_id", "software")}
OTHERS = "(others)"
UNKNOWN = "unknown"  # the software of a client that has not named it


class OldRequest(NamedTuple):
    """The requests that one count covers."""

    api_key: int
    version: int
    client_id: str
    software: str


class OldRequests:
    """The counts of one broker. Only the loop writes them."""

    def __init__(self) -> None:
        self.counts: dict[OldRequest, int] = {}
        self._clients: set[tuple[str, str]] = set()

    def observe(self, connection: Connection, header: RequestHeader) -> None:
        """Count one request."""
        software = UNKNOWN if connection.client_software[0] == UNKNOWN else " ".join(connection.client_software)
        client = (header.client_id or "")[: limits.MAX_OLD_CLIENT_NAME], software[: limits.MAX_OLD_CLIENT_NAME]
        if client not in self._clients:
            if len(self._clients) < limits.MAX_OLD_CLIENTS:
                self._clients.add(client)
                self._log(connection, header, client)
            else:
                client = (OTHERS, UNKNOWN)
        counted = OldRequest(header.api_key, header.api_version, *client)
        self.counts[counted] = self.counts.get(counted, 0) + 1

    def _log(self, connection: Connection, header: RequestHeader, client: tuple[str, str]) -> None:
        logger.info(
            "event=old-client client=%r software=%r peer=%s principal=%r api=%s version=%d",
            *client,
            connection.peer,
            connection.principal,
            APIS[header.api_key][1],
            header.api_version,
        )


def measures(counted: OldRequests, counter: Any) -> Iterator[Metric]:
    """The metrics with the names in `NAMES`."""
    family = counter(NAME, NAMES[NAME], labels=LABELS[NAME])
    for (api_key, version, client_id, software), count in sorted(counted.counts.items()):
        family.add_metric([APIS[api_key][1], str(version), client_id, software], count)
    yield family
