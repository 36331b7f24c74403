"""`openmessaging`: workloads of the OpenMessaging Benchmark, at fixed rates, with a schedule that does not hide stalls.

A message's time begins at its planned sending, so the stall of a system counts for all messages that it delays (coordinated
omission). Each repetition has fresh topics. Its schedule begins earlier with messages that do not count: the first ones of a
partition open its files and its clients, and this is not part of the cost of a rate. With all systems and five repetitions the
case takes about fifteen minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.meter import Figures, Meter
from bench.peers.peer import Message, Pace, Peer
from bench.suite.case import Case, fresh_name, fresh_topic
from bench.suite.kreps import percentiles, relayed
from bench.suite.linkedin import fill
from bench.suite.measure import Measure, Options

VALUE_BYTES = 1_000
SECONDS, WARM_UP_S, MANY_WARM_UP_S = 1.5, 0.5, 2.5
MANY = 32  # from this number of partitions on, the first messages take longer
BACKLOG_RATE = 2_000


@dataclass(frozen=True, slots=True)
class Workload:
    """`rate` messages a second, over all partitions of all topics in turn."""

    name: str
    title: str
    rate: int
    topics: int = 1
    partitions: int = 1


WORKLOADS = (
    Workload("simple", "simple workload, 10 partitions", 10_000, 1, 10),
    Workload("1-partition-5000", "1 topic, 1 partition", 5_000),
    Workload("1-partition-20000", "1 topic, 1 partition", 20_000),
    Workload("16-partitions", "1 topic, 16 partitions", 5_000, 1, 16),
    Workload("100-partitions", "1 topic, 100 partitions, 4 producers, 4 consumers", 5_000, 1, 100),
    Workload("100-topics", "100 topics", 5_000, 100, 1),
)


def _topics(workload: Workload) -> list[str]:
    """The names of the topics, all of the same length."""
    topics = [fresh_name(f"omb{number:03d}") for number in range(workload.topics)]
    longest = max(map(len, topics))
    return [topic.ljust(longest, "y") for topic in topics]


def _delays(workload: Workload, pace: Pace) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        topics = _topics(workload)
        for topic in topics:
            peer.create(topic, workload.partitions)
        message = Message(VALUE_BYTES, 1, 1)
        try:
            with meter:
                found = peer.end_to_end(topics, message, pace, partitions=workload.partitions)
        finally:
            for topic in topics:
                peer.delete(topic)
        return percentiles(found)

    return run


def _measure(workload: Workload, options: Options) -> Measure:
    warm_up = _delays(workload, Pace(workload.rate, WARM_UP_S))
    many = workload.topics * workload.partitions > MANY
    pace = Pace(workload.rate, SECONDS, MANY_WARM_UP_S if many else WARM_UP_S)
    return Measure(
        workload.name,
        f"{workload.title}, {workload.rate:,} messages/s: p99",
        "ms",
        _delays(workload, pace),
        higher_is_better=False,
        warm_up=lambda peer: _unmeasured(warm_up, peer),
        bare=lambda: relayed(_topics(workload), Message(VALUE_BYTES, 1, 1), pace, workload.partitions),
        target=2.0,
    )


def _unmeasured(run: Callable[[Peer, Meter], Figures], peer: Peer) -> None:
    run(peer, Meter(peer.pids))


def _catching_up(options: Options) -> Callable[[Peer, Meter], Figures]:
    """The consumer begins after the topic is filled, while messages arrive at a fixed rate. The result is the time until it has
    caught up."""

    def run(peer: Peer, meter: Meter) -> Figures:
        with fresh_topic(peer, "backlog") as topic:
            message, waiting = fill(peer, topic, options, VALUE_BYTES)
            with meter:
                found = peer.end_to_end([topic], message, Pace(BACKLOG_RATE, SECONDS), waiting=waiting)
        came, seconds = found.caught_up
        return {"value": came / seconds, "messages": waiting + BACKLOG_RATE * SECONDS, "waiting": float(waiting)}

    return run


def _measures(options: Options) -> Sequence[Measure]:
    catching_up = Measure(
        "backlog",
        f"a backlog is read while {BACKLOG_RATE:,} messages/s come",
        "messages/s until there is none",
        _catching_up(options),
        target=1.5,
    )
    return [*(_measure(workload, options) for workload in WORKLOADS), catching_up]


OPENMESSAGING = Case(
    "openmessaging",
    "End to end at a fixed rate",
    "Workloads of the OpenMessaging Benchmark with messages of 1,000 bytes that leave one by one on a prepared schedule. Their time"
    " runs from the planned moment until a consumer has them. Topics are fresh, and messages of the first half second (2.5 s with "
    "100 partitions or topics) do not count. Rates are lower than in that benchmark, as systems and clients share the cores. With "
    "Kafka's protocol there are at most four producers and four consumers, each a connection, and consumers have fetch sessions, as"
    " Kafka's own have. Other systems have a connection for each stream and direction. RabbitMQ delivers a stream in the chunks in "
    "which it was written. Messages that come one by one are chunks of one, and a consumer gets fewer than 5,000 of these a second "
    "from one stream. Bare system calls are a loop that writes to files and passes on what Kafka's producers send, and checks "
    "nothing.",
    _measures,
    charts=("1-partition-5000", "1-partition-20000", "100-partitions", "100-topics", "backlog"),
)
