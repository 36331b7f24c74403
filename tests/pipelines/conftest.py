"""One server and one Spark session for all tests of the pipelines.

`BARNABAS_TEST_BOOTSTRAP=host:port` runs them against a server that is there already, such as a node of Apache Kafka.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.pipelines import interpreter, session
from barnabas.testing import Broker
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCES = Path(__file__).parents[2] / "src"
_numbers = itertools.count()


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[str]:
    """The address of a server that speaks the protocol."""
    given = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    with Broker({"transaction.two.phase.commit.enable": True}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def client(kafka_server: str) -> Iterator[BlockingClient]:
    with BlockingClient.to(kafka_server) as client:
        yield client


@pytest.fixture
def topic(client: BlockingClient) -> Iterator[Callable[..., str]]:
    """Makes topics with names of their own, and deletes them afterwards."""
    made: list[str] = []

    def make(partitions: int = 1, **configs: str) -> str:
        name = f"pipelines-{os.getpid()}-{next(_numbers)}"
        given = {k.replace("_", "."): v for k, v in configs.items()}
        # retention would delete the old timestamps of the tests
        client.create_topics([NewTopic(name, partitions, 1, {"retention.ms": "-1", **given})])
        made.append(name)
        # Kafka's brokers learn of a topic with a delay
        wait_until(lambda: name in client.topics_by_name([name]), f"{name} is not known")
        return name

    yield make
    there = client.topics_by_name(made)
    if there:
        client.delete_topics(list(there))


@pytest.fixture
def produce(kafka_server: str) -> Callable[..., None]:
    """Sends (partition, key, value) or (partition, key, value, further arguments of `Producer.produce`)."""

    def send(topic: str, records: list[tuple[Any, ...]], **settings: Any) -> None:
        failed: list[str] = []
        producer = Producer(
            {"bootstrap.servers": kafka_server, "on_delivery": lambda e, _: failed.append(str(e)) if e else None, **settings}
        )
        for partition, key, value, *rest in records:
            producer.produce(topic, value, key, partition, **(rest[0] if rest else {}))
        producer.flush()
        assert not failed, failed

    return send


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    yield from made_session(tmp_path_factory, {})


def made_session(tmp_path_factory: pytest.TempPathFactory, more: dict[str, str]) -> Iterator[SparkSession]:
    """A session with some more settings; it ends behind the tests."""
    os.environ["PYSPARK_PYTHON"] = interpreter.write_command(tmp_path_factory.mktemp("python"))
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SOURCES), inherited]))
    conf = {
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.python.authenticate.socketTimeout": "60s",
        "spark.log.level": "ERROR",
        **more,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PySpark warns about pandas 3, which the tests do not use
        spark = session("tests", master="local[2]", conf=conf)
    yield spark
    spark.stop()
    if inherited is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = inherited


@pytest.fixture
def load(spark: SparkSession, kafka_server: str) -> Callable[..., DataFrame]:
    """A batch query; `__` in the name of an option stands for a dot."""

    def read(**options: Any) -> DataFrame:
        reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", kafka_server)
        return reader.options(**{k.replace("__", "."): v for k, v in options.items()}).load()

    return read


@pytest.fixture
def stream(spark: SparkSession, kafka_server: str) -> Callable[..., DataFrame]:
    """A streaming query's source."""

    def read(**options: Any) -> DataFrame:
        reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", kafka_server)
        return reader.options(**{k.replace("__", "."): v for k, v in options.items()}).load()

    return read


@pytest.fixture(autouse=True)
def _pandas_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield
