"""The loop: copiers work, one of them or a broker is killed and comes back, and at the end the copy is held against the original."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper
from tests.spans import until_random_moment
from tests.torture.check import Broken
from tests.torture.transactions.check import Reader
from tests.torture.transactions.copiers import Copiers
from tests.torture.transactions.load import Load
from tests.torture.transactions.plan import PARTITIONS, Plan, output_of
from tests.waiting import wait_until

BROKERS = (1, 2, 3)
CREATION_S = 60.0
DOWN_S = (0.1, 2.0)
IN_SYNC_S = 90.0
KEEP_EVERY_S = 0.1  # between restarts of copiers that ended
SETTINGS: dict[str, str | int | bool] = {
    "zookeeper.session.timeout.ms": 2_000,
    "transaction.state.log.num.partitions": 6,
    "offsets.topic.num.partitions": 6,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "min.insync.replicas": 2,
}


@dataclass(frozen=True, slots=True)
class Round:
    """The killed processes, and the progress of the copy afterwards."""

    number: int
    victim: str
    sent: int
    copied: int
    ends: dict[str, int]  # exits of each copier without a kill, in all rounds so far


@contextmanager
def cluster() -> Iterator[list[Broker]]:
    """Three brokers on a ZooKeeper."""
    with ZooKeeper() as zookeeper, ThreadPoolExecutor(len(BROKERS)) as threads:
        connect = {"zookeeper.connect": f"{zookeeper.hosts}/torture"}
        brokers = [Broker({**SETTINGS, **connect, "node.id": number}) for number in BROKERS]
        try:
            list(threads.map(Broker.start, brokers))
            yield brokers
        finally:
            list(threads.map(Broker.close, brokers))


def torture(plan: Plan) -> Iterator[Round]:
    """Run the plan; one item after each round.

    Raises:
        Broken: a record was lost, copied twice or in the wrong order.
    """
    rng = random.Random(plan.seed)
    with cluster() as brokers:
        bootstrap = ",".join(broker.bootstrap_servers for broker in brokers)
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
        _create_topics(admin)
        reader = Reader(bootstrap)
        with (
            Copiers(bootstrap, plan.seed, with_java=plan.with_java) as copiers,
            Load(bootstrap, plan.rate) as load,
            _evidence_kept(brokers, copiers),
        ):
            for number in range(1, plan.rounds + 1):
                reader.read(rng.uniform(0.3, 1.0) * plan.seconds)
                copiers.keep()
                victim = _kill_one(rng, number, brokers, copiers, admin)
                yield Round(number, victim, load.sent.total(), reader.seen.total(), copiers.ends)
            load.settle()
            if load.failed:
                raise Broken(f"the input has errors: {load.failed[:3]}")
            _demand(reader, load, copiers)

        reader.close()


def _demand(reader: Reader, load: Load, copiers: Copiers) -> None:
    """Copiers that end while the last records are copied are started again."""
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(reader.demand, load.sent)
        while wait([done], KEEP_EVERY_S).not_done:
            copiers.keep()
        done.result()


def _create_topics(admin: AdminClient) -> None:
    names = {name: count for topic, count in PARTITIONS.items() for name in (topic, output_of(topic))}
    for made in admin.create_topics([NewTopic(name, count, len(BROKERS)) for name, count in names.items()]).values():
        made.result(CREATION_S)


def _kill_one(rng: random.Random, number: int, brokers: Sequence[Broker], copiers: Copiers, admin: AdminClient) -> str:
    """Copiers and brokers in turns; in every third round both at once."""
    copier = rng.choice(copiers.all)
    index = rng.randrange(len(brokers))
    if number % 3 != 1:
        copier.kill()
    if number % 3 != 2:
        _wait_in_sync(admin)
        brokers[index].kill()
    until_random_moment(rng, DOWN_S[1], least_s=DOWN_S[0])
    if number % 3 != 2:
        brokers[index].start()
    if number % 3 != 1:
        copier.start()
    names = [f"broker {index + 1}"] if number % 3 != 2 else []
    return " and ".join([*names, copier.name] if number % 3 != 1 else names)


def _wait_in_sync(admin: AdminClient) -> None:
    """Wait until every partition has all of its replicas, so that the next victim is one of three again."""

    def is_in_sync() -> bool:
        topics = admin.list_topics(timeout=IN_SYNC_S).topics.values()
        return all(len(partition.isrs) == len(BROKERS) for topic in topics for partition in topic.partitions.values())

    wait_until(is_in_sync, f"replicas are not in sync after {IN_SYNC_S:g} s with all brokers up", within_s=IN_SYNC_S)


@contextmanager
def _evidence_kept(brokers: Sequence[Broker], copiers: Copiers) -> Iterator[None]:
    """Where a promise was broken, the brokers are stopped and their folders and all logs kept; the error says where."""
    try:
        yield
    except Exception as error:
        folder = Path(tempfile.mkdtemp(prefix="barnabas-transactions-"))
        for broker in brokers:
            (folder / f"broker-{broker.pid}.log").write_text(broker.log)
            broker.kill()
            shutil.copytree(broker.data_dir, folder / f"data-{brokers.index(broker) + 1}")
        for copier in copiers.all:
            (folder / f"{copier.name}.log").write_text(copier.log)
        raise Broken(f"{error!r}; the brokers' data and all logs are in {folder}") from error
