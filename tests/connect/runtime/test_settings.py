"""The settings of the clients of a task, from its workers and its connector, and the topics that it creates."""

from __future__ import annotations

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.connect.runtime.settings import CONSUMER, PRODUCER, TaskSettings
from barnabas.connect.service import of_tasks
from barnabas.engine.jobs import ConnectorWork
from tests.connect.runtime.tasks import STRINGS, Tasks
from tests.connect.runtime.test_file_stream import append


def test_settings_of_a_connector_go_before_those_of_the_workers() -> None:
    worker = {"producer.compression.type": "zstd", "producer.acks": "1", "consumer.auto.offset.reset": "latest"}
    work = ConnectorWork(
        "c", 0, 1, "sink", "FileStreamSink", {"producer.override.acks": "all", "consumer.override.group.id": "g"}, worker
    )
    settings = TaskSettings(work, {"client.id": "driver"})
    assert settings.options(PRODUCER) == {"kafka.client.id": "driver", "kafka.compression.type": "zstd", "kafka.acks": "all"}
    assert settings.options(CONSUMER) == {"kafka.client.id": "driver"}
    assert (settings.start, settings.group) == ("latest", "g")


def test_tasks_get_no_secrets_of_the_workers() -> None:
    given = {
        "producer.linger.ms": "5", "producer.sasl.jaas.config": "secret", "consumer.ssl.key.password": "secret",
        "consumer.bootstrap.servers": "elsewhere:9092", "sasl.jaas.config": "secret", "offset.storage.partitions": "2",
    }  # fmt: skip
    found = of_tasks(given, "g", {})
    assert (found["producer.linger.ms"], found["offset.storage.partitions"]) == ("5", "2")
    assert not {"secret", "elsewhere:9092"} & set(found.values())


def test_a_source_creates_its_topics_as_its_config_says(tasks: Tasks) -> None:
    append(tasks, b"a\n")
    config = {
        "file": str(tasks.folder / "in.txt"), "topic": tasks.topic, "topic.creation.default.partitions": "3",
        "topic.creation.default.replication.factor": "1", "topic.creation.default.retention.ms": "7000000",
    }  # fmt: skip
    offsets = f"offsets-{tasks.name}"
    worker = {
        **STRINGS,
        "offset.storage.topic": offsets,
        "offset.storage.partitions": "2",
        "offset.storage.replication.factor": "1",
    }
    with tasks.running(tasks.job("FileStreamSource", "source", config, worker)) as task:
        tasks.until(lambda: tasks.values() == [b"a"], task, "the line did not come")
    client = BlockingClient(ClientConfig.from_options(tasks.settings))
    found = client.topics_by_name([tasks.topic, offsets])
    assert {name: len(each.partitions) for name, each in found.items()} == {tasks.topic: 3, offsets: 2}
    assert client.describe_topic_config(tasks.topic)["retention.ms"] == "7000000"
    client.close()
