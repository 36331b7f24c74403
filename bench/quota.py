"""`python -m bench.quota`: how exactly clients get their quota, and whether a greedy client harms others, in comparison with
Apache Kafka.

The clients send as fast as possible and ignore throttle_time_ms, so only the server limits them. One node of each system runs,
in turns. Writes bench/results/quota.json for `docs/performance.md`.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import multiprocessing
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from barnabas.signals import die_with_parent
from bench import latency, wire
from bench.figures import spread
from bench.report import by_command, command_of, describe_machine
from bench.servers import Barnabas, Kafka, Server, create_topic, delete_topic
from bench.storage.result import Result, lines_of

RESULTS = Path(__file__).resolve().parent / "results" / "quota.json"
QUOTA = 2_000_000.0
WINDOWS, WINDOW_S, FIRST_S = 10, 1.0, 3.0  # measured windows, their length, and the time before them, in which the clients start
CLIENTS = (1, 10, 100)
GREEDY, GREEDY_LINES, GREEDY_BATCH = b"greedy", 4, (16, 1_000)  # 16 records are Kafka's default batch.size
RATE, RATE_S, SMALL_BATCH = 300, 10.0, (1, 1_000)
SETTLE_S = 1.0
TOLERANCE, HARM = 0.05, 1.2  # targets
TITLE = "\n## Quotas\n"
NOTES = """
`python -m bench.quota` measures both. *Accuracy* is what all clients of one user produced in ten windows of a second, as a share of the
user's quota of 2 MB/s. Kafka's windows let clients have more than their quota at one time and less at another ([decision
12](decisions/012-quotas-as-debts.md)).
"""
NOTES_OF_HARM = """
*Harm* is the p99 of a client that sends 300 requests a second, as a share of its p99 alone. The other client has a quota of 2 MB/s and
sends batches of 16 kB on four connections, as fast as the quota allows.
"""
Figures = dict[str, list[float]]


def set_quota(server: Server, kind: str, name: str, bytes_per_s: float | None) -> None:
    """Set producer_byte_rate, or remove it."""
    change = OpData(key="producer_byte_rate", value=bytes_per_s or 0.0, remove=bytes_per_s is None)
    entry = RequestEntryData(entity=[RequestEntityData(entity_type=kind, entity_name=name)], ops=[change])
    request = AlterClientQuotasRequest(entries=[entry])
    (answer,) = wire.call(server.address, wire.ALTER_CLIENT_QUOTAS, 1, request, AlterClientQuotasResponse).entries
    if answer.error_code:
        raise wire.BadAnswer(f"quota of {kind} {name}: {answer.error_message}")
    time.sleep(SETTLE_S)  # a broker of Kafka needs this time to apply the quota


def pump(address: tuple[str, int], topic: str, frame: bytes, lines: int, going: Callable[[float], bool]) -> list[float]:
    """Keep one request in flight on each of `lines` connections while `going`; returns the time of each answer."""
    shape = wire.AnswerShape(topic, 1)
    came: list[float] = []
    with selectors.DefaultSelector() as selector:
        opened = [socket.create_connection(address) for _ in range(lines)]
        try:
            for line in opened:
                line.sendall(frame)
                selector.register(line, selectors.EVENT_READ, (line, wire.AnswerReader(line, shape)))
            while going(time.perf_counter()):
                for key, _ in selector.select(0.05):
                    line, reader = key.data
                    answers, now = reader.receive()
                    came += [now] * answers
                    if answers:
                        line.sendall(frame)
        finally:
            for line in opened:
                line.close()
    return came


def accuracy(server: Server, clients: int) -> float:
    """The rate of `clients` clients of one user over ten windows, as a share of their quota."""
    topic = f"quota-{clients}"
    create_topic(server, topic, 1)
    set_quota(server, "user", "ANONYMOUS", QUOTA)
    frame = wire.produce_frame(topic, 0, wire.record_batch(16, 1_000), acks=1)
    begin = time.perf_counter() + FIRST_S
    end = begin + WINDOWS * WINDOW_S
    came = pump(server.address, topic, frame, clients, lambda now: now < end)
    set_quota(server, "user", "ANONYMOUS", None)
    delete_topic(server, topic)
    return sum(begin <= at < end for at in came) * len(frame) / (QUOTA * WINDOWS * WINDOW_S)


def _be_greedy(address: tuple[str, int], topic: str, over: Event) -> None:
    die_with_parent()
    frame = wire.produce_frame(topic, 0, wire.record_batch(*GREEDY_BATCH), acks=1, client_id=GREEDY)
    pump(address, topic, frame, GREEDY_LINES, lambda _: not over.is_set())


def p99(server: Server, topic: str) -> float:
    batch = wire.record_batch(*SMALL_BATCH)
    found = latency.measure(server.address, topic, partitions=1, batch=batch, acks=1, rate=RATE, seconds=RATE_S)
    return found.by_percentile["p99"]


def harm(server: Server) -> tuple[float, float]:
    """The p99 of a well-behaved client in ms, alone and beside a greedy one with a quota."""
    for topic in ("calm", "greedy"):
        create_topic(server, topic, 1)
    set_quota(server, "client-id", GREEDY.decode(), QUOTA)
    p99(server, "calm")  # warm-up
    alone = p99(server, "calm")
    context = multiprocessing.get_context("spawn")
    over = context.Event()
    greedy = context.Process(target=_be_greedy, args=(server.address, "greedy", over))
    greedy.start()
    try:
        time.sleep(FIRST_S)  # the time of the burst that a quota allows at first
        beside = p99(server, "calm")
    finally:
        over.set()
        greedy.join()
        greedy.close()
    for topic in ("calm", "greedy"):
        delete_topic(server, topic)
    return alone, beside


def measure_accuracy(servers: Sequence[Server], repeat: int) -> list[Result]:
    shares: dict[int, Figures] = {clients: {server.name: [] for server in servers} for clients in CLIENTS}
    for server, clients in itertools.product(_in_turns(servers, repeat), CLIENTS):
        shares[clients][server.name].append(accuracy(server, clients))
    return [
        Result(
            f"accuracy-{clients}",
            f"accuracy, {clients} client{'s' if clients > 1 else ''} of one user",
            "share of the quota",
            figures,
            target="within 5 %",
            met=abs(statistics.median(figures[servers[0].name]) - 1) <= TOLERANCE,
        )
        for clients, figures in shares.items()
    ]


def measure_harm(servers: Sequence[Server], repeat: int) -> list[Result]:
    harms: Figures = {server.name: [] for server in servers}
    p99s: Figures = {}
    for server in _in_turns(servers, repeat):
        alone, beside = harm(server)
        harms[server.name].append(beside / alone)
        p99s.setdefault(f"{server.name}, alone", []).append(alone)
        p99s.setdefault(f"{server.name}, beside a greedy client", []).append(beside)
    met = statistics.median(harms[servers[0].name]) <= HARM
    return [
        Result("harm", "p99 beside a greedy client", "share of the p99 alone", harms, target="at most 1.2", met=met),
        Result("p99", "p99 of a well-behaved client", "ms", p99s),
    ]


CASES = {"accuracy": measure_accuracy, "harm": measure_harm}


def _in_turns(servers: Sequence[Server], repeat: int) -> list[Server]:
    """Each server `repeat` times, with the order reversed every second time."""
    return [server for number in range(repeat) for server in (servers if number % 2 == 0 else reversed(servers))]


def render(page: dict[str, Any]) -> str:
    """The part of `docs/performance.md`."""
    results = [Result(**each) for each in page["results"]]
    text = f"{TITLE}\nMeasured on {page['date']}, {page['repetitions']} repetitions.{by_command(page)}\n\n"
    text += "| | | | target |\n| --- | --- | ---: | --- |\n"
    for result in results:
        for row, (label, values) in enumerate(result.figures.items()):
            title = f"{result.title} ({result.unit})" if not row else ""
            judged = f"{result.target}: {'yes' if result.met else '**no**'}" if result.target and not row else ""
            text += f"| {title} | {label} | {spread(values)} | {judged} |\n"
    return text + NOTES + (NOTES_OF_HARM if any(result.case == "harm" for result in results) else "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.quota", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"only these: {', '.join(CASES)}; the others keep their results")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of each case and server (default 3)")
    parser.add_argument("--alone", action="store_true", help="only ours, without Apache Kafka beside it; nothing is written")
    parser.add_argument("--json", metavar="FILE", default=str(RESULTS), help="write the results here (default: the page's)")
    options = parser.parse_args(arguments)
    wanted = options.cases or list(CASES)
    if not CASES.keys() >= set(wanted):
        parser.error(f"there is only {', '.join(CASES)}")
    with ExitStack() as running:
        servers: list[Server] = [running.enter_context(Barnabas())]
        if not options.alone:
            servers.append(running.enter_context(Kafka()))
        results = [result for case in wanted for result in CASES[case](servers, options.repeat)]
    for result in results:
        print("\n".join(lines_of(result)), flush=True)
    if not options.alone:
        path = Path(options.json)
        kept = {each["case"]: each for each in json.loads(path.read_text())["results"]} if path.exists() else {}
        page = {
            "command": command_of("bench.quota", arguments),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "repetitions": options.repeat,
            "machine": describe_machine(),
            "results": list((kept | {each.case: each.as_json() for each in results}).values()),
        }
        path.write_text(json.dumps(page, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
