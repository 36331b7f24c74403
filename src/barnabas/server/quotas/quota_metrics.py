"""The metrics of quotas for Prometheus: their use by clients and groups, and the limits on rates of connections."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Protocol

from barnabas import limits

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from barnabas.server.quotas.client_quotas import ClientQuotas
    from barnabas.server.quotas.connection_rates import ConnectionRates

NAMES = {
    "barnabas_quota_rate": "What is used of a quota: bytes or partitions a second, or per cent of the loop's time, of those used last.",
    "barnabas_quota_bound": "What the quota allows.",
    "barnabas_quota_throttled_seconds_total": "Time that those who have the quota were told to wait.",
    "barnabas_quota_meters": "Quotas of clients whose use is measured now.",
    "barnabas_connections_over_rate_total": "Connections closed because their address was over its rate.",
    "barnabas_connections_delayed_total": "Connections that waited for the rate of their listener or of the broker.",
}
_OF_A_METER = ("quota", "user", "client_id")
LABELS = {
    "barnabas_quota_rate": _OF_A_METER,
    "barnabas_quota_bound": _OF_A_METER,
    "barnabas_quota_throttled_seconds_total": _OF_A_METER,
}


class QuotaBroker(Protocol):
    """The parts of the broker that this module uses."""

    connection_rates: ConnectionRates
    quotas: ClientQuotas


def measures(broker: QuotaBroker, counter: Any, gauge: Any) -> Iterator[Metric]:
    """The metrics of `NAMES`."""
    meters, now_ms = broker.quotas.meters, broker.quotas.now_ms()
    rates, bounds = (gauge(name, NAMES[name], labels=LABELS[name]) for name in ("barnabas_quota_rate", "barnabas_quota_bound"))
    name = "barnabas_quota_throttled_seconds_total"
    throttled = counter(name, NAMES[name], labels=LABELS[name])
    for meter in nlargest(limits.MAX_QUOTA_SERIES, meters, key=lambda meter: meter.used_ms):
        rates.add_metric(list(meter.key), meter.per_second(now_ms))
        bounds.add_metric(list(meter.key), meter.bound)
        throttled.add_metric(list(meter.key), meter.throttled_ms / 1000)
    yield from (rates, bounds, throttled)
    yield gauge("barnabas_quota_meters", NAMES["barnabas_quota_meters"], value=len(meters))
    for name, count in (
        ("barnabas_connections_over_rate_total", broker.connection_rates.refused),
        ("barnabas_connections_delayed_total", broker.connection_rates.delayed),
    ):
        yield counter(name, NAMES[name], value=count)
