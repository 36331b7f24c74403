"""The loop: load, a kill, a start, a check, again.

One seed decides the moments, the pauses and what the load sends; when things meet in the broker is the machine's doing, so a seed
repeats the plan of a run and not its every interleaving.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Broker
from barnabas.testing.broker import BrokerFailed
from tests.spans import go_on_for, until_random_moment
from tests.torture.check import Broken, Checker
from tests.torture.doctor import beyond_a_start, left_by_a_stop
from tests.torture.ledger import Ledger
from tests.torture.load import FAST_RETRIES, Load
from tests.torture.moments import Moment, wait_for
from tests.torture.topics import BROKER_SETTINGS, TOPICS, TortureTopic

DISKS = 2
CREATION_S = 30.0
START_KILL_SHARE = 0.4  # share of the rounds that also kill the start, once or twice
START_S = (0.03, 0.6)  # a start takes 0.03 to 0.6 s, so a kill in this range meets it
STOP_KILL_S = (0.0, 0.3)
CLEAN_MARKER = ".kafka_cleanshutdown"
# Signs of unexpected errors in the broker's log.
TRACES = (
    "Traceback (most recent call last)",
    "event=request-failed",
    "level=ERROR",
    "level=CRITICAL",
    "Warning: ",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run against a broker."""

    rounds: int = 30
    seed: int = 1
    seconds: float = 2.0  # duration of the load in a round, before the kill
    patience_s: float = 3.0  # time to wait for a moment; afterwards the kill comes without it
    moments: tuple[Moment, ...] = tuple(Moment)


@dataclass(frozen=True, slots=True)
class Round:
    """One round and its result."""

    number: int
    moment: Moment
    hit: bool  # the moment was seen
    start_kills: int
    acknowledged: int  # records in this round
    read: int  # records that the check read
    start_ms: float


def torture(plan: Plan, topics: tuple[TortureTopic, ...] = TOPICS) -> Iterator[Round]:
    """Run the plan; one item after each round.

    Raises:
        Broken: a promise was not kept.
    """
    rng = random.Random(plan.seed)
    ledger = Ledger()
    with Broker(BROKER_SETTINGS, log_dirs=DISKS) as broker:
        create_topics(broker, topics)
        checker = Checker(broker.bootstrap_servers, topics, ledger, broker.data_dirs)
        with Load(broker, topics, ledger, plan.seed) as load, _evidence_kept(broker):
            for number, moment in enumerate(_moments(plan, rng), 1):
                yield _round(number, moment, plan, rng, broker, load, ledger, checker)
            with load.paused():
                checker.all_records_again()
        checker.close()
        with _evidence_kept(broker):
            broker.stop()
            _demand_whole(broker)


@contextmanager
def _evidence_kept(broker: Broker) -> Iterator[None]:
    """Where a promise was broken, the data folders and the log of the broker are kept, and the error says where.

    An empty broker takes the place of the broken one then: clients that wait for an answer would not come to an end without.
    """
    try:
        yield
    except (AssertionError, BrokerFailed, TimeoutError, KafkaException) as error:
        ended = "" if broker.is_running() else f"; it is down: {broker.log.splitlines()[-1:]}"
        broker.kill()
        folder = Path(tempfile.mkdtemp(prefix="barnabas-torture-"))
        (folder / "broker.log").write_text(broker.log)
        for disk in broker.data_dirs:
            shutil.move(disk, folder / disk.name)
        broker.start()
        raise Broken(f"{error}{ended}; the broker's data and log are in {folder}") from error


def create_topics(broker: Broker, topics: tuple[TortureTopic, ...]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **FAST_RETRIES})
    made = admin.create_topics([NewTopic(t.name, t.partitions, 1, config=t.settings) for t in topics])
    for future in made.values():
        future.result(CREATION_S)


def _moments(plan: Plan, rng: random.Random) -> Iterator[Moment]:
    """Every kind as often as the others, in an order that the seed decides."""
    kinds: list[Moment] = []
    for _ in range(plan.rounds):
        if not kinds:
            kinds = list(plan.moments)
            rng.shuffle(kinds)
        yield kinds.pop()


def _round(
    number: int, moment: Moment, plan: Plan, rng: random.Random, broker: Broker, load: Load, ledger: Ledger, checker: Checker
) -> Round:
    before, read = ledger.acknowledged, checker.records_read
    until_random_moment(rng, plan.seconds, least_s=0.2 * plan.seconds)
    hit = wait_for(moment, broker.data_dirs, plan.patience_s)
    _end(moment, rng, broker)
    load.freeze()
    _demand_mendable(broker) if moment is not Moment.STOPPED else _demand_whole(broker)
    start_kills = rng.choice((1, 2)) if moment is not Moment.STOPPED and rng.random() < START_KILL_SHARE else 0
    for _ in range(start_kills):
        _start_and_kill(broker, rng)
    began = time.monotonic()
    broker.start()
    start_ms = (time.monotonic() - began) * 1000
    checker.after_start()
    if moment is Moment.STOPPED:
        _demand_clean(broker)
    load.thaw()
    with load.paused():
        checker.settle_topics()
        checker.records()
    _demand_quiet(broker)
    return Round(number, moment, hit, start_kills, ledger.acknowledged - before, checker.records_read - read, start_ms)


def _end(moment: Moment, rng: random.Random, broker: Broker) -> None:
    if moment is Moment.STOPPED:
        broker.stop()
        if not all((disk / CLEAN_MARKER).exists() for disk in broker.data_dirs):
            raise Broken("a clean stop left no marker")
        return
    if moment is Moment.STOP and broker.pid is not None:
        os.kill(broker.pid, signal.SIGTERM)
        until_random_moment(rng, STOP_KILL_S[1], least_s=STOP_KILL_S[0])
    broker.kill()


def _start_and_kill(broker: Broker, rng: random.Random) -> None:
    """Start, and kill after a while, whether the start was through or not."""
    delay_s = rng.uniform(*START_S)
    thread = Thread(target=_kill_soon, args=(broker, delay_s))
    thread.start()
    with suppress(BrokerFailed):
        broker.start()
    thread.join()
    broker.kill()
    _demand_mendable(broker)


def _kill_soon(broker: Broker, delay_s: float) -> None:
    go_on_for(delay_s)
    pid = broker.pid
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _demand_clean(broker: Broker) -> None:
    """The last start trusted the files as they were."""
    opened = [line for line in broker.log.splitlines() if "event=log-directory-found" in line][-DISKS:]
    if not opened or not all("clean_shutdown=True" in line for line in opened):
        raise Broken(f"the start after a clean stop did not take it for one: {opened}")


def _demand_mendable(broker: Broker) -> None:
    """The broker was killed: the doctor finds nothing that the next start does not mend."""
    found = beyond_a_start(broker.data_dirs)
    if found:
        raise Broken(f"the doctor found what no start mends: {found}")


def _demand_whole(broker: Broker) -> None:
    """The broker was stopped: the doctor finds nothing."""
    found = left_by_a_stop(broker.data_dirs)
    if found:
        raise Broken(f"the doctor found something after a clean stop: {found}")


def _demand_quiet(broker: Broker) -> None:
    text = broker.log
    for trace in TRACES:
        if trace in text:
            raise Broken(f"the broker's log has {text[text.index(trace) :][:2000]}")
