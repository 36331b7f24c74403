"""The cases: each is one measurement of one server. `bench.__main__` measures both servers in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import count

from bench import memory
from bench.bare import RECEIVE, SEND, TOPIC, Bare, drain
from bench.consume import consume
from bench.latency import measure
from bench.load import Load, Pattern, produce
from bench.servers import DELETED_AFTER_S, Server, cpu_seconds, create_topic, delete_topic, end_offsets, resident_mb
from bench.wire import BadAnswer, record_batch

Figures = dict[str, float]
LATENCY_RATE = 5_000
MUCH_BYTES = 100_000_000  # after a case that wrote more, removing the files would disturb the next measurement


@dataclass(frozen=True, slots=True)
class Lengths:
    """The length of measurements in seconds, and the amount to consume in bytes.

    A load ends after `most_bytes`, also with a fast server. Two bounds apply to this number. First, the kernel makes writers
    wait when dirty pages exceed a part of the memory (15% by default). Above this bound the disk would be measured, and both
    servers would be equal. Second, the bytes must fit into recently used memory (`bench.memory`); otherwise the missing memory
    would decide.
    """

    warm_up_s: float
    load_s: float
    most_bytes: float
    latency_s: float
    consume_bytes: int


FULL = Lengths(warm_up_s=3.0, load_s=5.0, most_bytes=2e9, latency_s=20.0, consume_bytes=800_000_000)
QUICK = Lengths(warm_up_s=2.0, load_s=1.0, most_bytes=2e9, latency_s=3.0, consume_bytes=400_000_000)


def _nothing(_server: Server, _lengths: Lengths) -> None:
    """The warm-up of a case without a warm-up."""


def _nothing_measured(server: Server, _lengths: Lengths) -> Figures:
    raise NotImplementedError(f"{server.name} is not measured by this case")


@dataclass(frozen=True, slots=True)
class Case:
    """`measure` returns the figures of one repetition. `figure` names the one to compare, `target` is the wanted ratio.

    `higher_is_better` decides the direction of the ratio: it always says how many times better barnabas is.
    """

    name: str
    title: str
    figure: str
    unit: str
    higher_is_better: bool
    target: float | None
    limit: float | None = None
    warm_up: Callable[[Server, Lengths], None] = _nothing
    measure: Callable[[Server, Lengths], Figures] = _nothing_measured
    topic: str | None = None  # created by `warm_up`; `clean_up` removes it
    bare: Callable[[], Bare] | None = None  # the loop of bare system calls that is measured together with the servers
    measure_bare: Callable[[Bare, Lengths], Figures] | None = None

    def clean_up(self, servers: Iterable[Server]) -> None:
        if self.topic is not None:
            for server in servers:
                delete_topic(server, self.topic)


_numbers = count()


def _fresh_name(case: str) -> str:
    """The name of a topic that no earlier measurement used: a deleted topic still uses resources for some time."""
    return f"bench-{case}-{next(_numbers)}"


def _produce_case(name: str, title: str, pattern: Callable[[], Pattern], target: float, *, beside_bare: bool = False) -> Case:
    def run(server: Server, seconds: float, lengths: Lengths) -> tuple[Load, float]:
        made = pattern()
        topic = _fresh_name(name)
        create_topic(server, topic, made.connections)
        memory.use(memory.MOST)
        before = cpu_seconds(server.pid)
        load = produce(server.address, topic, made.connections, made, seconds, lengths.most_bytes)
        spent = cpu_seconds(server.pid) - before
        stored = end_offsets(server, topic, made.connections)
        if stored != load.records:
            raise BadAnswer(f"{server.name} acknowledged {load.records} records and has {stored}")
        delete_topic(server, topic)
        if load.requests * len(made.batch) > MUCH_BYTES:
            time.sleep(DELETED_AFTER_S)
        return load, spent

    def warm_up(server: Server, lengths: Lengths) -> None:
        began = time.perf_counter()
        while time.perf_counter() - began < lengths.warm_up_s:
            run(server, lengths.warm_up_s, lengths)

    def measure_once(server: Server, lengths: Lengths) -> Figures:
        return _throughput(*run(server, lengths.load_s, lengths))

    def measure_bare(loop: Bare, lengths: Lengths) -> Figures:
        made = pattern()
        memory.use(memory.MOST)
        before = cpu_seconds(loop.pid)
        load = produce(loop.address, TOPIC, made.connections, made, lengths.load_s, lengths.most_bytes)
        return _throughput(load, cpu_seconds(loop.pid) - before)

    case = Case(name, title, "records_per_s", "records/s", True, target, None, warm_up, measure_once)
    return replace(case, bare=lambda: Bare(RECEIVE), measure_bare=measure_bare) if beside_bare else case


def _throughput(load: Load, spent: float) -> Figures:
    return {
        "records_per_s": load.records_per_s,
        "requests_per_s": load.requests / load.seconds,
        "cpu_s_per_million": spent / load.records * 1e6,
        "records": float(load.records),
    }


def _consume_case(name: str, title: str, records_per_batch: int) -> Case:
    """A case that fills a topic before the first repetition; every repetition reads the whole topic."""
    partitions = 4
    topic = f"bench-{name}"
    filled: dict[str, int] = {}

    def warm_up(server: Server, lengths: Lengths) -> None:
        batch = record_batch(records_per_batch, 100)
        wanted = lengths.consume_bytes // len(batch)
        create_topic(server, topic, partitions)
        window = max(1, min(64, 4_000_000 // len(batch)))
        pattern = Pattern(partitions, batch, records_per_batch, 1, window, max(window // 2, 1))
        while filled.get(server.name, 0) < wanted * records_per_batch:
            load = produce(server.address, topic, partitions, pattern, 0.5)
            filled[server.name] = filled.get(server.name, 0) + load.records
        read(server)

    def read(server: Server) -> tuple[Load, float]:
        before = cpu_seconds(server.pid)
        load = consume(
            server.address,
            topic,
            partitions=partitions,
            records=filled[server.name],
            records_per_batch=records_per_batch,
            batch_bytes=len(record_batch(records_per_batch, 100)),
        )
        return load, cpu_seconds(server.pid) - before

    def measure_once(server: Server, _lengths: Lengths) -> Figures:
        return _throughput(*read(server))

    whole = FULL.consume_bytes

    def measure_bare(loop: Bare, _lengths: Lengths) -> Figures:
        before = cpu_seconds(loop.pid)
        load = drain(loop.address, whole // len(record_batch(records_per_batch, 100)) * records_per_batch, whole)
        return _throughput(load, cpu_seconds(loop.pid) - before)

    return Case(
        name,
        title,
        "records_per_s",
        "records/s",
        True,
        1.5,
        None,
        warm_up,
        measure_once,
        topic,
        lambda: Bare(SEND, whole),
        measure_bare,
    )


def _latency_case(name: str, title: str, acks: int) -> Case:
    partitions = 8
    batch = record_batch(1, 100)

    def run(server: Server, seconds: float) -> Figures:
        topic = _fresh_name(name)
        create_topic(server, topic, partitions)
        found = measure(server.address, topic, partitions=partitions, batch=batch, acks=acks, rate=LATENCY_RATE, seconds=seconds)
        if end_offsets(server, topic, partitions) != found.requests:
            raise BadAnswer(f"{server.name} does not have all records that it acknowledged")
        delete_topic(server, topic)
        return {**{f"{k}_ms": v for k, v in found.by_percentile.items()}, "max_ms": found.max_ms,
                "generator_late_p99_ms": found.generator_late_p99_ms}  # fmt: skip

    def warm_up(server: Server, lengths: Lengths) -> None:
        run(server, lengths.warm_up_s)

    def measure_once(server: Server, lengths: Lengths) -> Figures:
        return run(server, lengths.latency_s)

    return Case(name, title, "p99_ms", "ms (p99)", False, None, None, warm_up, measure_once)


def _one(connections: int, acks: int) -> Callable[[], Pattern]:
    window = 256 if connections == 1 else 64
    return lambda: Pattern(connections, record_batch(1, 100), 1, acks, window, window // 4)


def _fifty(connections: int) -> Callable[[], Pattern]:
    return lambda: Pattern(connections, record_batch(50, 100), 50, 1, 64, 16)


def _large(records: int, value_bytes: int) -> Callable[[], Pattern]:
    return lambda: Pattern(4, record_batch(records, value_bytes), records, 1, 4, 1)


CASES = (
    _produce_case("one-1", "one record a request, one connection", _one(1, 1), 12.0),
    _produce_case("one-8", "one record a request, eight connections", _one(8, 1), 8.0),
    _produce_case("one-8-all", "one record a request, eight connections, acks=all", _one(8, -1), 8.0),
    _produce_case("fifty-1", "50 records a batch, one connection", _fifty(1), 6.0, beside_bare=True),
    _produce_case("fifty-4", "50 records a batch, four connections", _fifty(4), 6.0, beside_bare=True),
    _produce_case("large-100", "large batches, 8,000 records of 100 B", _large(8_000, 100), 1.5, beside_bare=True),
    _produce_case("large-1k", "large batches, 900 records of 1 kB", _large(900, 1_000), 1.5, beside_bare=True),
    _consume_case("consume", "consuming large batches", 8_000),
    _consume_case("consume-50", "consuming batches of 50", 50),
    _latency_case("latency", "latency at 5,000 messages/s", 1),
    _latency_case("latency-all", "latency at 5,000 messages/s, acks=all", -1),
)


def idle_memory_mb(make: Callable[[], Server]) -> float:
    """Resident memory of an idle server, two seconds after its first answers."""
    with make() as server:
        time.sleep(2)
        return resident_mb(server.pid)
