"""`kreps-2014`: "Benchmarking Apache Kafka: 2 million writes per second (on three cheap machines)", on one machine and one broker.

Records of 100 bytes in batches of about 8 kB. Its replicated parts are in `python -m bench.cluster`.
"""

from __future__ import annotations

import shutil
import time
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

from bench import memory
from bench.latency import percentile
from bench.load import Load
from bench.meter import Figures, Meter
from bench.peers.kafka_protocol import end_to_end
from bench.peers.peer import Amount, CannotDo, Delays, Message, Pace, Peer
from bench.relay import Relay
from bench.suite.case import Case, fresh_name, fresh_topic
from bench.suite.linkedin import bare_producing, consuming, fill, produced, producing
from bench.suite.measure import PLACE, Measure, Options

VALUE_BYTES, BATCH = 100, 64  # Kreps' batch.size is 8,196 bytes
PULL_BYTES = 1_000_000
RATE, RATE_S = 5_000, 1.5
CONSUMERS = 3
STEPS = 10  # steps in which the log grows
LARGE_BATCH, LARGE_STEP_S, LARGE_LIMIT_S = 5_000, 20.0, 200.0  # for cases that store more than fits into memory
WARM_UPS = 3  # loads of 1 s for a fresh system
SHARE_OF_DISK = 0.5  # of the free disk space


def batches_of(peer_takes: Callable[[Message], Figures]) -> Figures:
    """The figures with batches, or with single messages if the system has no batches."""
    try:
        return peer_takes(Message(VALUE_BYTES, BATCH, 1))
    except CannotDo:
        return peer_takes(Message(VALUE_BYTES, 1, 1))


def _producers(options: Options, producers: int) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        return batches_of(lambda message: producing(message, options, producers=producers, partitions=producers)(peer, meter))

    return run


def _consumers(options: Options) -> Measure:
    """Several consumers, each of which reads the whole topic at the same time."""
    filled: dict[str, tuple[str, Message, int]] = {}

    def warm_up(peer: Peer) -> None:
        topic = fresh_name("consumers")
        peer.create(topic, 1)
        filled[peer.name] = topic, *fill(peer, topic, options, VALUE_BYTES)
        topic, message, messages = filled[peer.name]
        peer.consume(topic, message, messages, pull_bytes=PULL_BYTES)
        if peer.stored(topic, 1) < messages:
            raise CannotDo("what one consumer reads is not there for another")

    def run(peer: Peer, meter: Meter) -> Figures:
        topic, message, messages = filled[peer.name]
        peer.consume(topic, message, messages, pull_bytes=PULL_BYTES)  # loads the log into recently used memory
        with meter, ThreadPoolExecutor(CONSUMERS) as threads:
            began = time.perf_counter()
            loads = list(threads.map(lambda _: peer.consume(topic, message, messages, pull_bytes=PULL_BYTES), range(CONSUMERS)))
            seconds = time.perf_counter() - began
        return produced(Load(len(loads), sum(load.records for load in loads), seconds))

    return Measure(
        "consume-3",
        f"{CONSUMERS} consumers at once, each of all of it",
        "messages/s",
        run,
        warm_up=warm_up,
        clean_up=lambda peer: peer.delete(filled[peer.name][0]),
    )


def _both(options: Options) -> Callable[[Peer, Meter], Figures]:
    """A producer writes while a consumer reads earlier messages; the rate is that of both together."""

    def run(peer: Peer, meter: Meter) -> Figures:
        with fresh_topic(peer, "both") as topic:
            message, messages = fill(peer, topic, options, VALUE_BYTES)
            with meter, ThreadPoolExecutor(1) as threads:
                began = time.perf_counter()
                amount = Amount(options.messages, options.seconds)
                writing = threads.submit(peer.produce, topic, message, amount)
                read = peer.consume(topic, message, messages, pull_bytes=PULL_BYTES)
                written = writing.result()
                seconds = time.perf_counter() - began
        rates = {"read_per_s": read.records_per_s, "written_per_s": written.records_per_s}
        return {**produced(Load(1, read.records + written.records, seconds)), **rates}

    return run


def _delays(message: Message, rate: int, seconds: float) -> Callable[[Peer, Meter], Figures]:
    """Percentiles of the time from a message's planned sending until it was consumed; the p99 is compared."""

    def run(peer: Peer, meter: Meter) -> Figures:
        with fresh_topic(peer, "delays") as topic, meter:
            return percentiles(peer.end_to_end([topic], message, Pace(rate, seconds)))

    return run


def relayed(topics: Sequence[str], message: Message, pace: Pace, partitions: int = 1) -> Figures:
    """As `_delays`, for the loop that only forwards. Its first repetition counts, because only its files need a warm-up."""
    with Relay() as loop:
        meter = Meter([loop.pid])
        with meter:
            found = end_to_end(loop.address, topics, message, pace, partitions=partitions)
        figures = {**percentiles(found), **meter.figures}
    return {**figures, "cpu_s_per_million": figures["cpu_s"] / figures["messages"] * 1e6}


def percentiles(found: Delays) -> Figures:
    """The percentiles of the delays, and the delay of the generator if it is known."""
    ordered: array[float] = found.consumed
    late = {"late_p99": found.generator_late_p99_ms} if found.generator_late_p99_ms else {}
    return {
        **late,
        "value": percentile(ordered, 99.0),
        "p50": percentile(ordered, 50.0),
        "p99": percentile(ordered, 99.0),
        "p99.9": percentile(ordered, 99.9),
        "max": ordered[-1],
        "messages": float(len(ordered)),
    }


def _stored(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        each = Amount(options.stored_mb * 1_000_000 / STEPS / VALUE_BYTES, options.seconds / 2)
        memory.use(options.stored_mb)
        with fresh_topic(peer, "stored") as topic, meter:
            return batches_of(lambda message: _growing(peer, topic, message, each))

    return run


def _growing(peer: Peer, topic: str, message: Message, each: Amount) -> Figures:
    """The rate of each step while one topic grows, and the stored MB after the step. The value is the rate of the last step as
    a share of the best of the others."""
    loads = [peer.produce(topic, message, each) for _ in range(STEPS)]
    stored = accumulate(load.records * VALUE_BYTES / 1e6 for load in loads)
    figures = {f"at_{step}": load.records_per_s for step, load in enumerate(loads, 1)}
    figures |= {f"{PLACE}_{step}": size for step, size in enumerate(stored, 1)}
    return {**figures, "value": loads[-1].records_per_s / max(load.records_per_s for load in loads[:-1])}


def _stored_beyond_memory(options: Options) -> Callable[[Peer, Meter], Figures]:
    """With batches so large that the kernel and the disk are measured; only for systems that are fast enough in the first
    repetition."""
    able: set[str] = set()
    message = Message(VALUE_BYTES, LARGE_BATCH, 1)

    def run(peer: Peer, meter: Meter) -> Figures:
        messages = min(options.large_mb, shutil.disk_usage(peer.data_dir).free / 1e6 * SHARE_OF_DISK) * 1e6 / VALUE_BYTES
        with fresh_topic(peer, "warm") as topic:
            rates = [peer.produce(topic, message, Amount(messages, options.seconds)).records_per_s for _ in range(WARM_UPS)]
        whole_s = messages / max(rates)
        if peer.name not in able and whole_s > LARGE_LIMIT_S:
            size = messages * VALUE_BYTES / 1e9
            raise CannotDo(
                f"a limit of this suite: to store {size:.0f} GB would take it {whole_s:.0f} s, over {LARGE_LIMIT_S:g} s"
            )
        able.add(peer.name)
        with fresh_topic(peer, "large") as topic, meter:
            return _growing(peer, topic, message, Amount(messages / STEPS, LARGE_STEP_S))

    return run


def _measures(options: Options) -> Sequence[Measure]:
    message = Message(VALUE_BYTES, BATCH, 1)
    rate = "messages/s"
    return [
        Measure("produce-1", "one producer", rate, _producers(options, 1), bare=bare_producing(message, options), target=1.5),
        Measure("produce-3", "three producers, three partitions", rate, _producers(options, 3), target=1.5),
        consuming("consume-1", options, VALUE_BYTES, PULL_BYTES),
        _consumers(options),
        Measure("both", "one producer and one consumer at once, together", rate, _both(options)),
        Measure(
            "delays",
            f"end to end at {RATE:,} messages/s, p99",
            "ms",
            _delays(Message(VALUE_BYTES, 1, 1), RATE, RATE_S),
            higher_is_better=False,
            bare=lambda: relayed([fresh_name("delays")], Message(VALUE_BYTES, 1, 1), Pace(RATE, RATE_S)),
            target=2.0,
        ),
        Measure(
            "stored",
            "messages/s against what is stored already",
            "last as a share of the best before",
            _stored(options),
            is_fresh=True,
            across="MB stored",
        ),
        Measure(
            "stored-beyond-memory",
            f"messages/s against what is stored already, {LARGE_BATCH:,} a batch, until memory holds no more of it",
            "last as a share of the best before",
            _stored_beyond_memory(options),
            is_fresh=True,
            across="MB stored",
        ),
    ]


KREPS = Case(
    "kreps-2014",
    "Two million writes a second, 2014",
    "Records of 100 bytes in batches of 64 (single messages if a system has no batches), on one broker. Replication is measured "
    "with three brokers, above.",
    _measures,
    charts=("produce-1", "produce-3", "consume-1", "delays"),
)
