"""`growth`: rate, CPU, memory and delay against a growing quantity: bytes of a message, partitions, producers, consumers.

`kreps-2014` covers the growth of stored data, `connections` that of idle clients. A line ends if the system cannot do more, or
if creating the partitions would take longer than `CREATE_LIMIT_S`. Each partition gets a message before the measurement,
because the time to open its file is not part of the rate. With all systems and five repetitions the case takes about forty
minutes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from bench import memory
from bench.latency import percentile
from bench.meter import Figures, Meter
from bench.peers.peer import Amount, CannotDo, Message, Pace, Peer
from bench.suite.case import Case, fresh_name, fresh_topic
from bench.suite.linkedin import fill
from bench.suite.measure import FAILURES, Measure, Options, reason_of

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
PARTITIONS = (1, 10, 100, 1_000, 5_000)
PRODUCERS = (1, 4, 16, 64, 256, 1_024)
CONSUMERS = (1, 4, 16, 64)
SHARES = 16  # each consumer reads at least 1/count of the topic, and never less than 1/16
VALUE_BYTES, BATCH, WRITERS = 100, 50, 8
BATCH_BYTES, BYTES_EACH = 16_384, 200_000_000  # Kafka's default batch.size; maximum written per point and second
MEMORY_SHARE = 4  # free page cache per written byte: both sides also buffer several messages of 10 MB
WARM_UP_MESSAGES = 20_000
Found = TypeVar("Found")
DELAY_RATE, DELAY_BYTES_PER_S = 1_000, 50e6  # rate of the messages whose delay is measured; lower for large messages
DELAY_S, DELAY_WARM_UP_S = 2.0, 0.5
DELAYED_SIZES, DELAYED_PARTITIONS = (10, 1_000, 100_000, 1_000_000), (1, 100, 1_000)
CREATE_LIMIT_S, PULL_BYTES = 20.0, 1_000_000
PARTITIONS_SECONDS = 3.0  # minimum


@dataclass(frozen=True, slots=True)
class Point:
    """The result of a system at one point.

    Fields:
        mb_per_s: the rate of values.
        cpu_s_per_gb: the CPU seconds of the system for a GB of values.
        peak_mb: the maximum memory of the system in this time.
        others_cpu: the share of the machine's CPU that neither the systems nor the client used.
    """

    mb_per_s: float
    cpu_s_per_gb: float
    peak_mb: float
    others_cpu: float = 0.0


def points(places: Iterable[int], measure_at: Callable[[int], Point], meter: Meter) -> Figures:
    """The figures of each place, up to a place that the system cannot do. The value is the last rate as a share of the best;
    `meter` gets the reason if a line ends early."""
    found = _as_far_as_it_goes(places, measure_at, meter)
    figures = {f"at_{place}": point.mb_per_s for place, point in found.items()}
    figures |= {f"cpu_{place}": point.cpu_s_per_gb for place, point in found.items()}
    figures |= {f"peak_{place}": point.peak_mb for place, point in found.items()}
    rates = [point.mb_per_s for point in found.values()]
    others = statistics.median(point.others_cpu for point in found.values())
    return {**figures, "others_cpu": others, "value": rates[-1] / max(rates)}


def delays(places: Iterable[int], p99_at: Callable[[int], float], meter: Meter) -> Figures:
    """As `points`, for the p99 in milliseconds at each place; the value is the last one."""
    found = _as_far_as_it_goes(places, p99_at, meter)
    return {**{f"at_{place}": p99_ms for place, p99_ms in found.items()}, "value": list(found.values())[-1]}


def _as_far_as_it_goes(places: Iterable[int], measure_at: Callable[[int], Found], meter: Meter) -> dict[int, Found]:
    found: dict[int, Found] = {}
    for place in places:
        try:
            found[place] = measure_at(place)
        except FAILURES as error:
            if not found:
                raise
            meter.ended = f"ends before {place:,}: {reason_of(error)}"
            break
    return found


def _written(peer: Peer, topic: str, message: Message, amount: Amount, *, partitions: int = 1, producers: int = 1) -> Point:
    """Write a load, in single messages if the system has no batches."""
    with Meter(peer.pids) as meter:
        try:
            load = peer.produce(topic, message, amount, partitions=partitions, producers=producers)
        except CannotDo:
            if message.batch == 1:
                raise
            single = Message(message.value_bytes, 1, message.acks)
            load = peer.produce(topic, single, amount, partitions=partitions, producers=producers)
    return _point(load.records * message.value_bytes, load.seconds, meter)


def _point(size: int, seconds: float, meter: Meter) -> Point:
    spent = meter.figures
    return Point(size / seconds / 1e6, spent["cpu_s"] / size * 1e9, spent["peak_mb"], spent["others_cpu"])


def _delayed(peer: Peer, value_bytes: int = VALUE_BYTES, partitions: int = 1) -> float:
    """The p99 in milliseconds from end to end in a fresh topic; warm-up messages go to every partition."""
    rate = int(min(DELAY_RATE, DELAY_BYTES_PER_S / value_bytes))
    pace = Pace(rate, DELAY_S, max(DELAY_WARM_UP_S, partitions / rate))
    with fresh_topic(peer, "delays", partitions, largest_bytes=value_bytes) as topic:
        return percentile(peer.end_to_end([topic], Message(value_bytes, 1, 1), pace, partitions=partitions).consumed, 99.0)


def _sizes(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        def at(size: int) -> Point:
            message, amount = Message(size, max(1, BATCH_BYTES // size), 1), Amount(BYTES_EACH / size, options.seconds)
            with fresh_topic(peer, "size", largest_bytes=size) as topic:
                memory.use(MEMORY_SHARE * BYTES_EACH / 1e6)
                return _written(peer, topic, message, amount)

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
                # warms up all partitions, because the producers use them in turn
                _written(peer, topic, message, first, partitions=count, producers=WRITERS)
                memory.use(amount.messages * VALUE_BYTES / 1e6)
                return _written(peer, topic, message, amount, partitions=count, producers=WRITERS)

        return points(PARTITIONS, at, meter)

    return run


def _producers(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        def at(count: int) -> Point:
            with fresh_topic(peer, "producers") as topic:
                return _written(peer, topic, Message(VALUE_BYTES), Amount(options.messages, options.seconds), producers=count)

        return points(PRODUCERS, at, meter)

    return run


def share_of(count: int, messages: int, most: float) -> int:
    """The number of messages that each of `count` consumers reads: together about `most`, because a read of a few milliseconds
    would only measure connecting. Each reads at most all messages of the topic, and at least its share."""
    return max(messages // min(count, SHARES), min(messages, int(most / count)))


def _consumers(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        topic = fresh_name("consumers")
        peer.create(topic, 1)
        message, messages = fill(peer, topic, options, VALUE_BYTES)

        def read(share: int) -> int:
            return peer.consume(topic, message, share, pull_bytes=PULL_BYTES).records

        alone = 0.0  # messages per second of a single consumer

        def at(count: int) -> Point:
            nonlocal alone
            share = share_of(count, messages, alone * options.seconds)
            with ThreadPoolExecutor(count) as threads, Meter(peer.pids) as meter:
                began = time.perf_counter()
                came = sum(threads.map(read, [share] * count))
                seconds = time.perf_counter() - began
            alone = alone or came / seconds
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

    def delay(name: str, across: str, places: Sequence[int], p99_at: Callable[[Peer, int], float]) -> Measure:
        def run(peer: Peer, meter: Meter) -> Figures:
            return delays(places, lambda place: p99_at(peer, place), meter)

        title = f"end to end against {across}, p99 in ms"
        return Measure(name, title, "ms at the last", run, higher_is_better=False, across=across, warm_up=_warm_up)

    return [
        measure("size", "MB/s against the bytes of a message", "bytes of a message", _sizes(options)),
        measure("partitions", "MB/s against partitions, all of them written to in turn", "partitions", _partitions(options)),
        measure("producers", "MB/s against producers of single messages", "producers", _producers(options)),
        measure("consumers", "MB/s against consumers, all together", "consumers", _consumers(options)),
        delay("delay-size", "bytes of a message", DELAYED_SIZES, lambda peer, size: _delayed(peer, size)),
        delay("delay-partitions", "partitions", DELAYED_PARTITIONS, lambda peer, count: _delayed(peer, partitions=count)),
    ]


GROWTH = Case(
    "growth",
    "As it grows",
    "MB of values a second against a growing quantity, with CPU and memory. Messages have 100 bytes in batches of 50 unless "
    "something else is said. Where the size grows, batches have about 16 kB. Systems without batches get single messages. Eight "
    "connections write to partitions, for 3 s after the first messages of each. Delays are those of single messages, 1,000 a second"
    " or 50 MB/s of them, for two seconds. Stored data grows above (`kreps-2014`), as do idle clients (`connections`).",
    _measures,
)
