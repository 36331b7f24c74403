"""The metrics that a broker gives to Prometheus."""

from __future__ import annotations

from barnabas.server.broker import Broker
from barnabas.server.scraping import pieces


def render(broker: Broker) -> bytes:
    """The whole page at once."""
    return b"".join(pieces(broker))
