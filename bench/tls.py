"""`python -m bench.tls`: producing and consuming over TLS, compared with Apache Kafka's TLS and with each server's own plain
listener.

Both servers have the same certificate and take turns; the client is Python's `ssl` for both, and encrypts on the same machine.
Writes bench/results/tls.json for `docs/performance.md`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import socket
import ssl
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.kafka import free_ports

from barnabas.testing.certificates import Certificates
from bench.consume import consume
from bench.figures import number, spread
from bench.load import Address, Load, Pattern, produce
from bench.meter import Figures, Meter
from bench.report import OURS, THEIRS, by_command, command_of, describe_machine, table
from bench.servers import Barnabas, Kafka, Server, create_topic, delete_topic
from bench.standstill import alone
from bench.wire import record_batch

RESULTS = Path(__file__).resolve().parent / "results" / "tls.json"
PLAIN, TLS = "plain", "TLS"
PARTITIONS = 4
CONSUMED_BYTES = 400_000_000
WARM_UP_S, LOAD_S, LARGE_BYTES = 3.0, 4.0, 1e9
TITLE = "\n## TLS\n"
NOTES = """
`python -m bench.tls` measures both servers in turns, with the same certificate (P-256) and their own choice of cipher: TLS 1.3 with
AES-256-GCM in both cases. The client encrypts too, on the same two cores. *CPU* is the server's for a million records, *peak MB* its
highest memory. *Plain* is the same load on the same server without TLS. If a cell has two figures, ours is the first.

A barnabas broker uses one core, Kafka all of them. That decides the rate where batches arrive on several connections, and more so if
other work needs the cores. The CPU shows what the work costs.
"""


class TlsSocket:
    """A TLS connection with the interface for the load generator: a call that would wait raises BlockingIOError, and a receive
    call returns all available bytes."""

    def __init__(self, address: Address, context: ssl.SSLContext) -> None:
        self._socket = context.wrap_socket(socket.create_connection(address), server_hostname=address[0])
        self.fileno, self.close = self._socket.fileno, self._socket.close
        self.setsockopt, self.sendall = self._socket.setsockopt, self._socket.sendall
        self._is_blocking = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def setblocking(self, is_blocking: bool) -> None:
        self._is_blocking = is_blocking
        self._socket.setblocking(is_blocking)

    def send(self, data: memoryview) -> int:
        try:
            return self._socket.send(data)
        except ssl.SSLWantWriteError as error:
            raise BlockingIOError from error

    def recv_into(self, target: memoryview) -> int:
        if self._is_blocking:
            return self._socket.recv_into(target)
        filled = 0
        while filled < len(target):
            try:
                got = self._socket.recv_into(target[filled:])
            except ssl.SSLWantReadError as error:
                if not filled:
                    raise BlockingIOError from error
                break
            if not got:
                break
            filled += got
        return filled


class TlsBarnabas(Barnabas):
    """With a second listener."""

    def __init__(self, certificates: Certificates) -> None:
        super().__init__()
        self._certificates = certificates
        self.tls_address = ("127.0.0.1", free_ports(1)[0])

    def _settings(self, port: int) -> dict[str, str]:
        listeners = f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{self.tls_address[1]}"
        return {**super()._settings(port), "listeners": listeners, **self._certificates.broker_settings}


class TlsKafka(Kafka):
    """With a second listener."""

    def __init__(self, certificates: Certificates) -> None:
        super().__init__()
        self._certificates = certificates
        self.tls_address = ("127.0.0.1", free_ports(1)[0])

    def _properties(self, port: int, controller_port: int) -> dict[str, str]:
        found = super()._properties(port, controller_port)
        tls = f",SSL://127.0.0.1:{self.tls_address[1]}"
        found |= {name: found[name] + tls for name in ("listeners", "advertised.listeners")}
        found["listener.security.protocol.map"] += ",SSL:SSL"
        return {**found, **self._certificates.broker_settings}


TlsServer = TlsBarnabas | TlsKafka
Measure = Callable[[TlsServer, Address, Callable[[Address], Any], float], Figures]


def _figures(load: Load, meter: Meter) -> Figures:
    per_million = meter.figures["cpu_s"] / load.records * 1e6
    return {"records_per_s": load.records_per_s, "cpu_s_per_million": per_million, **meter.figures}


def _producing(name: str, pattern: Callable[[], Pattern]) -> Measure:
    def measure(server: TlsServer, address: Address, connect: Callable[[Address], Any], seconds: float) -> Figures:
        made = pattern()
        create_topic(server, name, made.connections)
        with Meter([server.pid]) as meter:
            load = produce(address, name, made.connections, made, seconds, LARGE_BYTES, connect)
        delete_topic(server, name)
        return _figures(load, meter)

    return measure


def _consuming(name: str, records: int) -> Measure:
    filled: dict[str, int] = {}
    batch = record_batch(records, 100)

    def fill(server: Server) -> None:
        create_topic(server, name, PARTITIONS)
        window = max(2, min(64, 4_000_000 // len(batch)))
        pattern = Pattern(PARTITIONS, batch, records, 1, window, window // 2)
        filled[server.name] = 0
        while filled[server.name] * len(batch) < CONSUMED_BYTES * records:
            filled[server.name] += produce(server.address, name, PARTITIONS, pattern, 0.5).records

    def measure(server: TlsServer, address: Address, connect: Callable[[Address], Any], seconds: float) -> Figures:
        if server.name not in filled:
            fill(server)
        with Meter([server.pid]) as meter:
            load = consume(
                address,
                name,
                partitions=PARTITIONS,
                records=filled[server.name],
                records_per_batch=records,
                batch_bytes=len(batch),
                connect=connect,
            )
        return _figures(load, meter)

    return measure


CASES: dict[str, tuple[str, Measure]] = {
    "one": (
        "producing, one record a request, eight connections",
        _producing("tls-one", lambda: Pattern(8, record_batch(1, 100), 1, 1, 64, 16)),
    ),
    "fifty": (
        "producing, 50 records a batch, four connections",
        _producing("tls-fifty", lambda: Pattern(4, record_batch(50, 100), 50, 1, 64, 16)),
    ),
    "large": (
        "producing, 900 records of 1 kB a batch, four connections",
        _producing("tls-large", lambda: Pattern(4, record_batch(900, 1_000), 900, 1, 4, 1)),
    ),
    "consume": ("consuming large batches", _consuming("tls-consume", 8_000)),
    "consume-50": ("consuming batches of 50", _consuming("tls-consume-50", 50)),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tls", description=__doc__)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this case; may be given again")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each case and server (default 5)")
    parser.add_argument("--json", metavar="FILE", default=str(RESULTS), help="where the results go")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder:
        certificates = Certificates(Path(folder) / "authority")
        with TlsBarnabas(certificates) as ours, TlsKafka(certificates) as theirs:
            context = ssl.create_default_context(cafile=certificates.ca_file)
            cases = [_measure(name, (ours, theirs), context, options.repeat) for name in options.case or CASES]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    command = command_of("bench.tls", arguments)
    results = {
        "command": command,
        "date": today,
        "repetitions": options.repeat,
        "machine": describe_machine(),
        "cases": cases,
    }
    Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    print(render(results))
    return 0


def _measure(name: str, servers: Sequence[TlsServer], context: ssl.SSLContext, repeat: int) -> dict[str, Any]:
    title, measure = CASES[name]
    runs: dict[str, dict[str, list[Figures]]] = {server.name: {PLAIN: [], TLS: []} for server in servers}
    ways: dict[str, tuple[Callable[[TlsServer], Address], Callable[[Address], Any]]] = {
        PLAIN: (lambda server: server.address, socket.create_connection),
        TLS: (lambda server: server.tls_address, lambda address: TlsSocket(address, context)),
    }
    for repetition in range(-1, repeat):  # the first repetition is the warm-up
        for server in servers if repetition % 2 == 0 else reversed(servers):
            with alone(server, servers):
                for way, (address_of, connect) in ways.items():
                    found = measure(server, address_of(server), connect, WARM_UP_S if repetition < 0 else LOAD_S)
                    if repetition >= 0:
                        runs[server.name][way].append(found)
    return {"name": name, "title": title, "runs": runs}


def render(results: dict[str, Any]) -> str:
    """A section of `docs/performance.md`."""
    rows = []
    for case in results["cases"]:
        ours, theirs = case["runs"][OURS], case["runs"][THEIRS]
        ratio = statistics.median(a["records_per_s"] / b["records_per_s"] for a, b in zip(ours[TLS], theirs[TLS], strict=True))
        over_tls = [_spread(runs[TLS], "records_per_s") for runs in (ours, theirs)]
        plainly = [_median(runs[PLAIN], "records_per_s") for runs in (ours, theirs)]
        cpu, peak = (
            " / ".join(_median(runs[TLS], figure) for runs in (ours, theirs)) for figure in ("cpu_s_per_million", "peak_mb")
        )
        verdict = "yes" if ratio >= 1 else "**no**"
        rows.append([case["title"], *over_tls, f"{ratio:.2f}x", " / ".join(plainly), cpu, peak, verdict])
    head = ["records/s over TLS", OURS, THEIRS, "ratio", "plain", "CPU s per million", "peak MB", ">= 1x"]
    shares = [
        run["others_cpu"] for case in results["cases"] for ways in case["runs"].values() for runs in ways.values() for run in runs
    ]
    others = f" Other work took {statistics.median(shares):.0%} of the machine's CPU meanwhile (median)."
    told = f"\nMeasured on {results['date']}, {results['repetitions']} repetitions.{by_command(results)}{others}\n\n"
    return TITLE + NOTES + told + table(head, rows)


def _median(runs: Sequence[Figures], figure: str) -> str:
    return number(statistics.median(run[figure] for run in runs))


def _spread(runs: Sequence[Figures], figure: str) -> str:
    return spread([run[figure] for run in runs])


if __name__ == "__main__":
    sys.exit(main())
