"""`linkedin-2011`: the experiments of "Kafka: a Distributed Messaging System for Log Processing" (Kreps, Narkhede, Rao; NetDB 2011).

In the paper: one producer sends 10 million messages of 200 bytes, in batches of 1 and of 50, without waiting for
acknowledgements. One consumer reads 10 million, about 200 kB (1,000 messages) in a pull. The third figure is the overhead of a
message on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bench import memory
from bench.bare import RECEIVE, SEND, TOPIC, Bare, drain
from bench.load import Load, Pattern, produce
from bench.meter import Figures, Meter
from bench.peers.kafka_protocol import BATCH_WINDOW, ONE_WINDOW, batch_of
from bench.peers.peer import Amount, CannotDo, Message, Peer
from bench.peers.process import cpu_of, disk_bytes
from bench.servers import DELETED_AFTER_S
from bench.suite.case import Case, fresh_name, fresh_topic
from bench.suite.measure import Measure, Options

VALUE_BYTES, PULL_BYTES = 200, 200_000
LEAST_READ_S = LEAST_BARE_S = 0.5  # shorter measurements are repeated until they add up to this time
MUCH_BYTES = 100_000_000  # after a case that wrote more, removing the files would disturb the next measurement
WRITTEN_AFTER_S = 2.0  # systems may delay writes to their files by this time
FILL_SECONDS = 2.0


def produced(load: Load) -> Figures:
    return {"value": load.records_per_s, "messages": float(load.records), "seconds": load.seconds}


def together(loads: Sequence[Load]) -> Load:
    """The sum of loads that came one after the other."""
    return Load(len(loads), sum(load.records for load in loads), sum(load.seconds for load in loads))


def producing(message: Message, options: Options, *, producers: int = 1, partitions: int = 1) -> Callable[[Peer, Meter], Figures]:
    """A measure: each repetition writes to a fresh topic and removes it."""

    def run(peer: Peer, meter: Meter) -> Figures:
        amount = Amount(options.messages, options.seconds)
        memory.use(options.messages * message.value_bytes / 1e6)
        with fresh_topic(peer, "produce", partitions) as topic, meter:
            load = peer.produce(topic, message, amount, producers=producers, partitions=partitions)
        if load.records * message.value_bytes > MUCH_BYTES:
            time.sleep(DELETED_AFTER_S)
        return produced(load)

    return run


def fill(peer: Peer, topic: str, options: Options, value_bytes: int) -> tuple[Message, int]:
    """Write messages in the largest batches that the system accepts, up to 50; returns their form and their number."""
    amount = Amount(options.messages, max(options.seconds, FILL_SECONDS))
    for batch in (50, 1):
        message = Message(value_bytes, batch, 1)
        try:
            return message, peer.produce(topic, message, amount).records
        except CannotDo:
            continue
    raise CannotDo("it takes no messages")


def consuming(name: str, options: Options, value_bytes: int, pull_bytes: int) -> Measure:
    """A measure of reading. A topic is filled before the first repetition, or before each if reading removes messages."""
    filled: dict[str, tuple[str, Message, int]] = {}
    emptied: set[str] = set()  # systems that remove messages once they are read

    def warm_up(peer: Peer) -> None:
        topic = fresh_name("consume")
        peer.create(topic, 1)
        filled[peer.name] = topic, *fill(peer, topic, options, value_bytes)
        read(peer, None)
        if peer.stored(topic, 1) < filled[peer.name][2]:
            emptied.add(peer.name)

    def read(peer: Peer, meter: Meter | None) -> Figures:
        topic, message, messages = filled[peer.name]
        if meter is None:
            return produced(peer.consume(topic, message, messages, pull_bytes=pull_bytes))
        if peer.stored(topic, 1) < messages:
            filled[peer.name] = topic, *fill(peer, topic, options, value_bytes)
            topic, message, messages = filled[peer.name]
        if peer.name not in emptied:
            peer.consume(topic, message, messages, pull_bytes=pull_bytes)  # loads the log into recently used memory
        loads: list[Load] = []
        with meter:
            while sum(load.seconds for load in loads) < LEAST_READ_S:
                loads.append(peer.consume(topic, message, messages, pull_bytes=pull_bytes))
                if peer.stored(topic, 1) < messages:
                    break
        return produced(together(loads))

    def bare() -> Figures:
        batch = batch_of(50, value_bytes)
        size = len(batch) * (options.messages // 50)
        loads: list[Load] = []
        with Bare(SEND, size, pull_bytes) as loop:
            drain(loop.address, options.messages, size, pull_bytes)  # warm-up, as for the systems
            before = cpu_of([loop.pid])
            while sum(load.seconds for load in loads) < LEAST_READ_S:
                loads.append(drain(loop.address, options.messages, size, pull_bytes))
            spent = cpu_of([loop.pid]) - before
        load = together(loads)
        return {**produced(load), "cpu_s": spent, "cpu_s_per_million": spent / load.records * 1e6}

    return Measure(
        name,
        f"one consumer, {value_bytes} B, {pull_bytes // 1000} kB a pull",
        "messages/s",
        read,
        warm_up=warm_up,
        clean_up=lambda peer: peer.delete(filled[peer.name][0]),
        bare=bare,
        target=1.5,
    )


def bare_producing(message: Message, options: Options) -> Callable[[], Figures]:
    """The loop that receives and writes, with the same load and the same kind of memory as the systems."""

    def run() -> Figures:
        batch = batch_of(message.batch, message.value_bytes)
        window = ONE_WINDOW if message.batch == 1 else BATCH_WINDOW
        pattern = Pattern(1, batch, message.batch, 1, window, window // 4)
        loads: list[Load] = []
        spent = 0.0
        with Bare(RECEIVE) as loop:
            while sum(load.seconds for load in loads) < LEAST_BARE_S:
                memory.use(options.messages * message.value_bytes / 1e6)
                before = cpu_of([loop.pid])
                most_bytes = options.messages / message.batch * len(batch)
                loads.append(produce(loop.address, TOPIC, 1, pattern, options.seconds, most_bytes))
                spent += cpu_of([loop.pid]) - before
        load = together(loads)
        return {**produced(load), "cpu_s": spent, "cpu_s_per_million": spent / load.records * 1e6}

    return run


def _overhead(options: Options) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        with fresh_topic(peer, "disk") as topic:
            before = disk_bytes(peer.data_dir)
            with meter:
                _, messages = fill(peer, topic, options, VALUE_BYTES)
            time.sleep(WRITTEN_AFTER_S)
            taken = disk_bytes(peer.data_dir) - before
        return {"value": taken / messages - VALUE_BYTES, "bytes_per_message": taken / messages}

    return run


def _measures(options: Options) -> Sequence[Measure]:
    found = []
    for batch, target in ((1, 12.0), (50, 6.0)):
        for acks in (0, 1):
            message = Message(VALUE_BYTES, batch, acks)
            many = "one message a request" if batch == 1 else f"{batch} messages a request"
            found.append(
                Measure(
                    f"produce-{batch}-acks{acks}",
                    f"one producer, {VALUE_BYTES} B, {many}, acks={acks}",
                    "messages/s",
                    producing(message, options),
                    bare=bare_producing(message, options) if acks else None,
                    target=target,
                )
            )
    found.append(consuming("consume", options, VALUE_BYTES, PULL_BYTES))
    found.append(
        Measure(
            "overhead",
            f"bytes on disk beyond the {VALUE_BYTES} of a message",
            "bytes a message",
            _overhead(options),
            higher_is_better=False,
            is_fresh=True,
        )
    )
    return found


LINKEDIN = Case(
    "linkedin-2011",
    "LinkedIn's study of 2011",
    "One producer and one consumer with messages of 200 bytes, as in the paper that introduced Kafka (10 million messages there). A"
    " batch is a batch of records, a Publish frame, or a JMS transaction. A system without batches has a dash there and sends its "
    "single messages pipelined. Without acknowledgements, the clock runs until the system has all messages. The bare loop beside a "
    "consumer sends as much of a file as a pull has, whenever the consumer asks.",
    _measures,
    charts=("produce-1-acks1", "produce-50-acks1", "consume"),
)
