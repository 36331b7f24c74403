"""`growth`: rate, CPU, memory and delay against a growing quantity: bytes of a message, partitions, producers, consumers.

What is stored grows in `kreps-2014`, clients that do nothing in `connections`. A line ends where a system can do no more, or where making
the partitions would take longer than `CREATE_LIMIT_S`. Each partition has a message before the clock: opening its file is not its rate.
With all systems and five repetitions the case takes some forty minutes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench.latency import percentile
from bench.meter import Figures, Meter
from bench.peers.peer import Amount, CannotDo, Message, Pace, Peer
from bench.suite import memory
from bench.suite.case import Case, fresh_name, fresh_topic
from bench.suite.linkedin import fill
from bench.suite.measure import FAILURES, Measure, Options, reason_of

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
PARTITIONS = (1, 10, 100, 1_000, 5_000)
PRODUCERS = (1, 4, 16, 64, 256, 1_024)
CONSUMERS = (1, 4, 16, 64)
SHARES = 16  # consumers of which each reads its share of the topic; more of them read as much each
VALUE_BYTES, BATCH, WRITERS = 100, 50, 8
BATCH_BYTES, BYTES_EACH = 16_384, 200_000_000  # batch.size of Kafka's producer; what is written at most for a point and a second
WARM_UP_MESSAGES = 20_000
DELAY_RATE, DELAY_BYTES_PER_S = 1_000, 50e6  # of messages whose time is taken; fewer where they are large
DELAY_S, DELAY_WARM_UP_S = 1.0, 0.5
DELAYED_SIZES, DELAYED_PARTITIONS = (10, 1_000, 100_000, 1_000_000), (1, 100, 1_000)
CREATE_LIMIT_S, PULL_BYTES = 20.0, 1_000_000
PARTITIONS_SECONDS = 3.0  # at least


@dataclass(frozen=True, slots=True)
class Point:
    """What a system does at one place.

    Fields:
        mb_per_s: of values.
        cpu_s_per_gb: of the system, for values.
        peak_mb: the most memory of the system meanwhile.
        p99_ms: end to end, where it was measured.
        others_cpu: the share of the machine that went to neither system nor client.
    """

    mb_per_s: float
    cpu_s_per_gb: float
    peak_mb: float
    p99_ms: float | None = None
    others_cpu: float = 0.0


def points(places: Iterable[int], measure_at: Callable[[int], Point], meter: Meter) -> Figures:
    """The figures of each place up to one that cannot be done, and the last rate as a share of the best as the value; `meter` is told why
    a line ends early."""
    found: dict[int, Point] = {}
    for place in places:
        try:
            found[place] = measure_at(place)
        except FAILURES as error:
            if not found:
                raise
            meter.ended = f"ends before {place:,}: {reason_of(error)}"
            break
    figures = {f"at_{place}": point.mb_per_s for place, point in found.items()}
    figures |= {f"cpu_{place}": point.cpu_s_per_gb for place, point in found.items()}
    figures |= {f"peak_{place}": point.peak_mb for place, point in found.items()}
    figures |= {f"p99_{place}": point.p99_ms for place, point in found.items() if point.p99_ms is not None}
    rates = [point.mb_per_s for point in found.values()]
    others = statistics.median(point.others_cpu for point in found.values())
    return {**figures, "others_cpu": others, "value": rates[-1] / max(rates)}


def _written(
    peer: Peer,
    topic: str,
    message: Message,
    amount: Amount,
    *,
    partitions: int = 1,
    producers: int = 1,
    p99_ms: float | None = None,
) -> Point:
    """In single messages where the system has no batches."""
    with Meter(peer.pids) as meter:
        try:
            load = peer.produce(topic, message, amount, partitions=partitions, producers=producers)
        except CannotDo:
            if message.batch == 1:
                raise
            single = Message(message.value_bytes, 1, message.acks)
            load = peer.produce(topic, single, amount, partitions=partitions, producers=producers)
    return _point(load.records * message.value_bytes, load.seconds, meter, p99_ms)


def _point(size: int, seconds: float, meter: Meter, p99_ms: float | None = None) -> Point:
    spent = meter.figures
    return Point(size / seconds / 1e6, spent["cpu_s"] / size * 1e9, spent["peak_mb"], p99_ms, spent["others_cpu"])


def _delayed(peer: Peer, topic: str, value_bytes: int, partitions: int = 1) -> float:
    """p99 end to end in a topic that was just made; messages before those that count go to every partition."""
    rate = int(min(DELAY_RATE, DELAY_BYTES_PER_S / value_bytes))
    pace = Pace(rate, DELAY_S, max(DELAY_WARM_UP_S, partitions / rate))
    return percentile(peer.end_to_end([topic], Message(value_bytes, 1, 1), pace, partitions=partitions).consumed, 99.0)


def _sizes(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        def at(size: int) -> Point:
            message, amount = Message(size, max(1, BATCH_BYTES // size), 1), Amount(BYTES_EACH / size, options.seconds)
            with fresh_topic(peer, "size", largest_bytes=size) as topic:
                p99_ms = _delayed(peer, topic, size) if size in DELAYED_SIZES else None
                memory.use(BYTES_EACH / 1e6)
                return _written(peer, topic, message, amount, p99_ms=p99_ms)

        return points(SIZES, at, meter)

    return run


def _partitions(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        each_s = 0.0

        def at(count: int) -> Point:
            nonlocal each_s
            if each_s * count > CREATE_LIMIT_S:
                raise CannotDo(
                    f"a limit of this suite: to make them would take {each_s * count:.0f} s, over {CREATE_LIMIT_S:g} s"
                )
            message, first = Message(VALUE_BYTES, BATCH, 1), Amount(BATCH * count, PARTITIONS_SECONDS)
            seconds = max(options.seconds, PARTITIONS_SECONDS)
            amount = Amount(BYTES_EACH * seconds / VALUE_BYTES, seconds)
            began = time.perf_counter()
            with fresh_topic(peer, "partitions", count) as topic:
                each_s = (time.perf_counter() - began) / count
                p99_ms = _delayed(peer, topic, VALUE_BYTES, count) if count in DELAYED_PARTITIONS else None
                _written(peer, topic, message, first, partitions=count, producers=WRITERS)  # all of them, since lines take turns
                memory.use(amount.messages * VALUE_BYTES / 1e6)
                return _written(peer, topic, message, amount, partitions=count, producers=WRITERS, p99_ms=p99_ms)

        return points(PARTITIONS, at, meter)

    return run


def _producers(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        def at(count: int) -> Point:
            with fresh_topic(peer, "producers") as topic:
                return _written(peer, topic, Message(VALUE_BYTES), Amount(options.messages, options.seconds), producers=count)

        return points(PRODUCERS, at, meter)

    return run


def _consumers(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        topic = fresh_name("consumers")
        peer.create(topic, 1)
        message, messages = fill(peer, topic, options, VALUE_BYTES)

        def read(share: int) -> int:
            return peer.consume(topic, message, share, pull_bytes=PULL_BYTES).records

        def at(count: int) -> Point:
            shares = [messages // min(count, SHARES)] * count
            with ThreadPoolExecutor(count) as threads, Meter(peer.pids) as meter:
                began = time.perf_counter()
                came = sum(threads.map(read, shares))
                seconds = time.perf_counter() - began
            if peer.stored(topic, 1) < messages:
                raise CannotDo("what one consumer reads is not there for another")
            return _point(came * VALUE_BYTES, seconds, meter)

        try:
            return points(CONSUMERS, at, meter)
        finally:
            peer.delete(topic)

    return run


def _warm_up(peer: Peer) -> None:
    with fresh_topic(peer, "warm") as topic:
        _written(peer, topic, Message(VALUE_BYTES, BATCH, 1), Amount(WARM_UP_MESSAGES, 1.0))


def _measures(options: Options) -> Sequence[Measure]:
    def measure(name: str, title: str, across: str, run: Callable[[Peer, Meter], Figures]) -> Measure:
        return Measure(name, title, "last as a share of the best", run, across=across, warm_up=_warm_up)

    return [
        measure("size", "MB/s against the bytes of a message", "bytes of a message", _sizes(options)),
        measure("partitions", "MB/s against partitions, all of them written to in turn", "partitions", _partitions(options)),
        measure("producers", "MB/s against producers of single messages", "producers", _producers(options)),
        measure("consumers", "MB/s against consumers, all together", "consumers", _consumers(options)),
    ]


GROWTH = Case(
    "growth",
    "As it grows",
    "MB of values a second against a growing quantity, and what they take of CPU and memory. Messages are of 100 bytes in batches of 50 "
    "where nothing else is said, and batches are of about 16 kB where the size grows; systems without batches are sent single messages. "
    "Partitions are written to by eight connections, for 3 s after the first messages of each. Delays are those of single messages, 1,000 "
    "a second or 50 MB/s of them, before the load. What is stored grows above (`kreps-2014`), as do clients that do nothing "
    "(`connections`).",
    _measures,
)
