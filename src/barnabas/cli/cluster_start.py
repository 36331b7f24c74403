"""`barnabas cluster start`: a cluster on this machine, for trials.

Owns its processes: ZooKeeper servers and brokers. They are children and end with this process. You may kill one to see how the
others react: the command prints which one ended, and does not restart it.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from barnabas.cli.properties import parse_pairs
from barnabas.cli.types import DataFolder
from barnabas.signals import ending_signals

DATA_DIR = "barnabas-cluster"
ROOT = "/barnabas"
TICK_MS = 500  # ZooKeeper's time unit: a session timeout lasts from 2 to 20 ticks
SESSION_TIMEOUT_MS = 6_000
START_TIMEOUT_S = 120.0
LOOK_S = 0.2


@click.command("start")
@click.option("--brokers", type=click.IntRange(1, 32), default=3, show_default=True, help="How many brokers.")
@click.option(
    "--zookeepers", type=click.Choice(["1", "3", "5"]), default="1", show_default=True, help="How many ZooKeeper servers."
)
@click.option("--data-dir", type=DataFolder(), default=DATA_DIR, show_default=True,
              help="The folder of all data; the next start with this folder continues with it.")  # fmt: skip
@click.option("--base-port", type=click.IntRange(0, 65000), default=0,
              help="The port of broker 1; each further broker takes the next port. 0 takes free ports.")  # fmt: skip
@click.option(
    "--config", "pairs", metavar="KEY=VALUE", multiple=True, help="A setting for every broker, by Kafka's name; repeatable."
)
def start(brokers: int, zookeepers: str, data_dir: str, base_port: int, pairs: tuple[str, ...]) -> int:
    """Run several brokers and their ZooKeeper on this machine until Ctrl-C, SIGTERM or SIGHUP.

    For trying things out: everything listens on 127.0.0.1 and ends with this command. ZooKeeper comes from Debian's package
    `zookeeper`. Standard output names the addresses of the brokers.
    """
    given = parse_pairs(pairs, "--config")
    with ending_on_signals(), ExitStack() as running:
        _run(running, brokers, int(zookeepers), Path(data_dir), base_port, given)
    return 0


def _run(running: ExitStack, count: int, zookeepers: int, folder: Path, base_port: int, given: dict[str, str]) -> None:
    from barnabas.testing.broker import Broker
    from barnabas.testing.zookeeper import ZooKeeper, ZooKeeperUnavailable

    try:
        zookeeper = running.enter_context(ZooKeeper(zookeepers, folder / "zookeeper", tick_ms=TICK_MS))
    except ZooKeeperUnavailable as error:
        raise click.ClickException(str(error)) from error
    processes = [
        Broker(
            {
                "offsets.topic.num.partitions": "50",
                "offsets.topic.replication.factor": str(min(count, 3)),
                "default.replication.factor": str(min(count, 3)),
                **given,
                "node.id": str(number),
                "zookeeper.connect": zookeeper.hosts + ROOT,
                "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
                "listeners": f"PLAINTEXT://127.0.0.1:{base_port + number - 1 if base_port else 0}",
            },
            data_dir=folder / f"broker-{number}",
            ready_timeout_s=START_TIMEOUT_S,
        )
        for number in range(1, count + 1)
    ]
    threads = running.enter_context(ThreadPoolExecutor(count))
    running.callback(lambda: list(threads.map(Broker.close, processes)))
    list(threads.map(Broker.start, processes))
    click.echo(f"zookeeper  {zookeeper.hosts}{ROOT}")
    for number, broker in enumerate(processes, start=1):
        click.echo(f"broker {number}   {broker.bootstrap_servers}  process {broker.pid}")
    click.echo(f"bootstrap  {','.join(broker.bootstrap_servers for broker in processes)}")
    sys.stdout.flush()
    click.echo(f"Data is kept in {folder}; Ctrl-C stops everything.", err=True)
    alive = set(range(count))
    while alive:
        time.sleep(LOOK_S)
        for index in [index for index in alive if not processes[index].is_running()]:
            alive.discard(index)
            click.echo(f"broker {index + 1} ended", err=True)
    raise click.ClickException("no broker is left")


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Turns each signal that ends the process, even a second one, into an orderly end of the block."""

    class Ended(BaseException):
        """The process received a signal to stop."""

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        for number in before:
            signal.signal(number, signal.SIG_IGN)  # the shutdown has begun; ignore further signals
        raise Ended

    before = {number: signal.getsignal(number) for number in ending_signals()}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    except Ended:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
