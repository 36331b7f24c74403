"""`python -m bench run registry`: registrations and reads a second, delays, start times and memory of registries on one
broker."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from confluent_kafka import Producer

from barnabas.registry.core.entities import Draft, Version
from barnabas.registry.core.records import encode, schema_record
from bench import report
from bench.front import parser_of, tell
from bench.peers.peer import PeerUnavailable
from bench.peers.process import cpu_of, resident_mb
from bench.registry import load
from bench.registry.systems import MAKERS, OURS, Bare, RegistryProcess, Together, call
from bench.servers import Barnabas, create_topic
from bench.storage.result import Result, judge, measured

CONNECTIONS = 8
PACED_PER_S = 500
SETTLE_S = 1.0
STORED = 100_000


class Amounts(NamedTuple):
    """The amounts of requests."""

    schemas: int
    seconds: float
    stored: int


FULL, QUICK = Amounts(2_000, 3.0, STORED), Amounts(300, 1.0, 10_000)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("bench.registry", __doc__)
    options = parser.parse_args(arguments)
    absent: dict[str, str] = {}
    amounts = QUICK if options.quick else FULL
    command = report.command_of("bench.registry", arguments)
    page = measured(lambda: measure(options.repeat, amounts, absent), command, quick=options.quick)
    return tell(page, options.json, reader="wrk" if load.WRK else "a client in Python", absent=absent)


def measure(repeat: int, amounts: Amounts, absent: dict[str, str]) -> list[Result]:
    """All results; `absent` gets the reason for each registry that could not be measured."""
    results = _results(amounts)
    with Barnabas() as broker:
        bootstrap = "{}:{}".format(*broker.address)
        for number in range(repeat):
            for name, make in MAKERS.items():
                if name in absent:
                    continue
                try:
                    _one(make(bootstrap, f"schemas-{name}-{number}"), name, amounts, results)
                    if not number:
                        create_topic(broker, f"filled-{name}", 1, {"cleanup.policy": "compact"})
                        _fill(bootstrap, f"filled-{name}", amounts.stored)
                    with make(bootstrap, f"filled-{name}") as registry:
                        _add(results, "stored-cpu", name, cpu_of(registry.pids))
                        _add(results, "stored-ready", name, registry.ready_after_s)
                        _add(results, "stored-memory", name, resident_mb(registry.pids))
                except PeerUnavailable as error:
                    absent[name] = str(error)
                    print(f"{name}: not measured: {error}", file=sys.stderr, flush=True)
    for _ in range(repeat):
        _alone(amounts, results)
        _together(results)
    for result in results.values():
        _judge(result)
    return list(results.values())


def _results(amounts: Amounts) -> dict[str, Result]:
    def rate(case: str, title: str, least: float = 0.0, unit: str = "requests/s") -> Result:
        return Result(case, title, unit, {}, f">= {least:,.0f}" if least else "")

    found = [
        rate("new-1", "registrations, 1 connection"),
        rate("new-8", f"registrations, {CONNECTIONS} connections", 1_000),
        rate("known-1", "registrations of known schemas, 1 connection"),
        rate("known-8", f"registrations of known schemas, {CONNECTIONS} connections", 3_000),
        rate("get-1", "GET by id, 1 connection"),
        rate("get-8", f"GET by id, {CONNECTIONS} connections", 8_000),
        rate("new-cpu", "registrations, of CPU time", 1_000, "requests/CPU s"),
        rate("known-cpu", "registrations of known schemas, of CPU time", 3_000, "requests/CPU s"),
        rate("get-cpu", "GET by id, of CPU time", 8_000, "requests/CPU s"),
        Result("p50", f"GET by id at {PACED_PER_S}/s, median delay", "ms", {}),
        Result("p99", f"GET by id at {PACED_PER_S}/s, p99 delay", "ms", {}, "< 10"),
        Result("new-p99", f"registrations at {PACED_PER_S}/s, p99 delay", "ms", {}),
        Result("ready", "ready, empty topic", "s", {}, "< 1"),
        Result("ready-cpu", "CPU until ready, empty topic", "CPU s", {}, "< 1"),
        Result("idle", "memory, idle", "MB", {}, "< 90"),
        Result("loaded", "memory, after the load", "MB", {}),
        Result("stored-ready", f"ready, {amounts.stored:,} schemas in the topic", "s", {}, "< 3"),
        Result("stored-cpu", f"CPU until ready, {amounts.stored:,} schemas in the topic", "CPU s", {}, "< 3"),
        Result("stored-memory", f"memory, {amounts.stored:,} schemas", "MB", {}),
        Result("start", "`barnabas start`: broker ready", "s", {}, "< 0.3"),
        Result("beside", "`barnabas start`: registry ready after the broker", "s", {}, "< 1"),
        Result("broker", "`barnabas start`: memory of the broker, idle", "MB", {}, "< 50"),
        Result("services", "`barnabas start`: memory of the services, idle", "MB", {}, "< 90"),
    ]
    return {result.case: result for result in found}


def _add(results: dict[str, Result], case: str, label: str, value: float) -> None:
    results[case].figures.setdefault(label, []).append(value)


def _one(registry: RegistryProcess, name: str, amounts: Amounts, results: dict[str, Result]) -> None:
    with registry:
        address = registry.address
        _add(results, "ready-cpu", name, cpu_of(registry.pids))
        _add(results, "ready", name, registry.ready_after_s)
        time.sleep(SETTLE_S)
        _add(results, "idle", name, resident_mb(registry.pids))
        first_id = _first_id(registry)
        load.rate(address, _registrations(address, "warm", amounts.schemas // 4), CONNECTIONS)
        load.rate(address, _registrations(address, "warm", amounts.schemas // 4), CONNECTIONS)
        for connections in (1, CONNECTIONS):
            new = _registrations(address, f"new-{connections}", amounts.schemas)
            ids = amounts.schemas // 2
            spent = [cpu_of(registry.pids)]
            rates = [load.rate(address, new, connections)]
            spent.append(cpu_of(registry.pids))
            rates.append(load.rate(address, new * 2, connections))
            spent.append(cpu_of(registry.pids))
            rates.append(load.reads(address, first_id, ids, connections, amounts.seconds))
            spent.append(cpu_of(registry.pids))
            for kind, per_s in zip(("new", "known", "get"), rates, strict=True):
                _add(results, f"{kind}-{connections}", name, per_s)
            if connections > 1:
                requests = (len(new), 2 * len(new), rates[2] * amounts.seconds)
                for number, kind in enumerate(("new", "known", "get")):
                    _add(results, f"{kind}-cpu", name, requests[number] / (spent[number + 1] - spent[number]))
        count = int(PACED_PER_S * amounts.seconds)
        gets = [load.request(address, "GET", f"/schemas/ids/{first_id + number}") for number in range(amounts.schemas // 2)]
        delays = load.delays_ms(address, (gets * (count // len(gets) + 1))[:count], PACED_PER_S, CONNECTIONS)
        _add(results, "p50", name, delays[len(delays) // 2])
        _add(results, "p99", name, delays[int(len(delays) * 0.99)])
        delays = load.delays_ms(address, _registrations(address, "paced", count), PACED_PER_S, CONNECTIONS)
        _add(results, "new-p99", name, delays[int(len(delays) * 0.99)])
        _add(results, "loaded", name, resident_mb(registry.pids))


def _alone(amounts: Amounts, results: dict[str, Result]) -> None:
    """Measure the load alone, with a server that does no work."""
    with Bare() as bare:
        requests = _registrations(bare.address, "bare", amounts.schemas)
        load.rate(bare.address, requests, CONNECTIONS)
        _add(results, "known-8", bare.name, load.rate(bare.address, requests * 3, CONNECTIONS))
        for connections in (1, CONNECTIONS):
            reads = load.reads(bare.address, 1, amounts.schemas // 2, connections, amounts.seconds)
            _add(results, f"get-{connections}", bare.name, reads)


def _first_id(registry: RegistryProcess) -> int:
    body = {"schema": json.dumps(_schema("first", 0))}
    call(registry.address, "POST", "/subjects/first-value/versions", body)
    _, answer = call(registry.address, "GET", "/subjects/first-value/versions/latest")
    assert isinstance(answer, dict)
    return int(answer["id"])


def _schema(kind: str, number: int) -> dict[str, object]:
    """A unique schema: a record of ten fields."""
    fields = [{"name": f"field_{each}", "type": ["null", "string"], "default": None} for each in range(9)]
    fields.append({"name": f"{kind.replace('-', '_')}_{number}", "type": ["null", "long"], "default": None})
    return {"type": "record", "name": "Order", "namespace": "bench.orders", "fields": fields}


def _registrations(address: load.Address, kind: str, count: int) -> list[bytes]:
    """Requests for registrations, each for a subject of its own."""
    found = []
    for number in range(count):
        body = json.dumps({"schema": json.dumps(_schema(kind, number))}).encode()
        found.append(load.request(address, "POST", f"/subjects/{kind}-{number}-value/versions", body))
    return found


def _fill(bootstrap: str, topic: str, count: int) -> None:
    """Fill the topic like a registry with `count` schemas."""
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 2 * count, "linger.ms": 50})
    for number in range(count):
        draft = Draft(json.dumps(_schema("stored", number), separators=(",", ":")))
        key, value = encode(schema_record(Version(f"stored-{number}-value", 1, number + 1, draft, b"")))
        producer.produce(topic, value, key)
        producer.poll(0)
    if producer.flush(120):
        raise RuntimeError(f"the topic {topic} could not be filled")


def _together(results: dict[str, Result]) -> None:
    for label, services in (("services beside", True), ("broker alone", False)):
        with ExitStack() as stack:
            started = stack.enter_context(Together(services=services))
            time.sleep(2 * SETTLE_S)
            _add(results, "start", label, started.broker_after_s)
            _add(results, "broker", label, resident_mb([started.broker]))
            if services:
                _add(results, "beside", OURS, started.services_after_s)
                _add(results, "services", OURS, resident_mb(started.others))


def _judge(result: Result) -> None:
    """Set whether our median meets the target."""
    judge(result, OURS if result.figures.get(OURS) else "services beside")


if __name__ == "__main__":
    sys.exit(main())
