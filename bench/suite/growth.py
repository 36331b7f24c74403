"""`growth`: one rate against a growing quantity, as lines: bytes of a message, partitions, producers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.peers.peer import Amount, CannotDo, Message, Peer
from bench.suite.case import Case, fresh_name
from bench.suite.measure import Figures, Measure, Meter, Options

SIZES = (10, 100, 1_000, 10_000, 100_000, 900_000)  # bytes; max.message.bytes of Kafka's default is the end
PARTITIONS = (1, 10, 100, 1_000)
PRODUCERS = (1, 2, 8, 32, 128)
VALUE_BYTES, BATCH = 100, 50
BATCH_BYTES, BYTES_EACH = 16_384, 200_000_000  # batch.size of Kafka's producer; what is written at most for one point


def points(places: Sequence[int], rate_at: Callable[[int], float]) -> Figures:
    """A figure for each place, and the last as a share of the best as the value."""
    rates = {place: rate_at(place) for place in places}
    figures = {f"at_{place}": rate for place, rate in rates.items()}
    return {**figures, "value": rates[places[-1]] / max(rates.values())}


def _written(peer: Peer, message: Message, amount: Amount, *, partitions: int = 1, producers: int = 1) -> float:
    """Bytes of values a second to a fresh topic."""
    topic = fresh_name("growth")
    peer.create(topic, partitions)
    try:
        load = peer.produce(topic, message, amount, partitions=partitions, producers=producers)
    except CannotDo:
        single = Message(message.value_bytes, 1, message.acks)
        load = peer.produce(topic, single, amount, partitions=partitions, producers=producers)
    finally:
        peer.delete(topic)
    return load.records_per_s * message.value_bytes / 1e6


def _sizes(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        def rate(size: int) -> float:
            message = Message(size, max(1, BATCH_BYTES // size), 1)
            return _written(peer, message, Amount(BYTES_EACH / size, options.seconds))

        return points(SIZES, rate)

    return run


def _partitions(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        def rate(count: int) -> float:
            amount = Amount(options.messages, options.seconds)
            return _written(peer, Message(VALUE_BYTES, BATCH, 1), amount, partitions=count, producers=min(count, 100))

        return points(PARTITIONS, rate)

    return run


def _producers(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        def rate(count: int) -> float:
            return _written(peer, Message(VALUE_BYTES, 1, 1), Amount(options.messages, options.seconds), producers=count)

        return points(PRODUCERS, rate)

    return run


def _measures(options: Options) -> Sequence[Measure]:
    def measure(name: str, title: str, across: str, run: Callable[[Peer, Meter], Figures]) -> Measure:
        rounds = min(options.rounds, 3)
        return Measure(name, title, "last as a share of the best", run, rounds=rounds, across=across)

    return [
        measure("size", "MB/s against the bytes of a message", "bytes of a message", _sizes(options)),
        measure("partitions", "MB/s against the partitions of a topic, up to 100 producers", "partitions", _partitions(options)),
        measure("producers", "MB/s against producers of single messages", "producers", _producers(options)),
    ]


GROWTH = Case(
    "growth",
    "As it grows",
    "MB of values a second against a growing quantity; messages of 100 bytes in batches of 50 where nothing else is said.",
    _measures,
    only=("barnabas", "kafka", "rabbitmq", "nats", "redis"),
)
