"""The metrics of mirror links for Prometheus: of the copies that this broker leads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.server.series import Series, in_turns

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from barnabas.server.mirroring.mirrors import Mirrors

NAMES = {
    "barnabas_mirror_up": "1 while the source of a link answers this broker and the link is not paused.",
    "barnabas_mirror_partitions": "Copies led here, by state.",
    "barnabas_mirror_refused_topics": "Topics of the source that the link cannot copy; the controller tells it.",
    "barnabas_mirror_lag_records": "Records of the source that a copy led here lacks.",
    "barnabas_mirror_lag_seconds": "If the source died now: from how long ago records of the copies led here may be missing.",
    "barnabas_mirror_round_trip_seconds": "The shortest wait for an answer of the source in the last half minute.",
    "barnabas_mirror_bytes_total": "Bytes of record batches taken from the source of a link.",
    "barnabas_mirror_answers_total": "Answers of the source with records.",
    "barnabas_mirror_errors_total": "Requests to the source that failed, and partitions that it refused.",
    "barnabas_mirror_seconds_total": "Time of the fetchers of a link: what they waited for, or did.",
}
_LINK = ("link",)
LABELS = {
    **dict.fromkeys(NAMES, _LINK),
    "barnabas_mirror_partitions": ("link", "state"),
    "barnabas_mirror_lag_records": ("link", "topic", "partition"),
    "barnabas_mirror_seconds_total": ("link", "part"),
}


class MirrorMetricsBroker(Protocol):
    """The parts of the broker that this module uses."""

    mirrors: Mirrors


def measures(broker: MirrorMetricsBroker, counter: Any, gauge: Any) -> Iterator[Metric | Series | None]:
    """The metrics of `NAMES`, and None at points where the loop may do other work."""
    found = {
        name: (counter if name.endswith("_total") else gauge)(name, text, labels=LABELS[name])
        for name, text in NAMES.items()
        if name != "barnabas_mirror_lag_records"
    }
    lag = Series("barnabas_mirror_lag_records", NAMES["barnabas_mirror_lag_records"], LABELS["barnabas_mirror_lag_records"])
    for link in broker.mirrors.unusable:
        found["barnabas_mirror_up"].add_metric([link], 0)
    for link, runner in list(broker.mirrors.runners.items()):
        states: Counter[str] = Counter()
        lost_ms = 0
        for each in in_turns(runner.partition_statuses()):
            if each is None:
                yield None
                continue
            states[each.state] += 1
            lost_ms = max(lost_ms, each.lost_ms)
            if each.lag >= 0:
                lag.add([link, each.topic, str(each.partition)], each.lag)
        for state, count in states.items():
            found["barnabas_mirror_partitions"].add_metric([link, state], count)
        found["barnabas_mirror_up"].add_metric([link], runner.is_up)
        found["barnabas_mirror_refused_topics"].add_metric([link], runner.refused_count)
        found["barnabas_mirror_lag_seconds"].add_metric([link], lost_ms / 1000)
        times, counters = runner.times(), runner.counters()
        if times.round_trip_ms >= 0:
            found["barnabas_mirror_round_trip_seconds"].add_metric([link], times.round_trip_ms / 1000)
        found["barnabas_mirror_bytes_total"].add_metric([link], counters.bytes)
        found["barnabas_mirror_answers_total"].add_metric([link], counters.answers)
        found["barnabas_mirror_errors_total"].add_metric([link], counters.errors)
        for part, seconds in counters.seconds.items():
            found["barnabas_mirror_seconds_total"].add_metric([link, part.value], seconds)
    yield from found.values()
    yield lag
