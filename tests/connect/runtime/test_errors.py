"""Records that cannot be converted, transformed or written."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from barnabas.connect import Identity
from barnabas.connect.config_def import ConfigError
from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.converters.plain import StringConverter
from barnabas.connect.errors import BadRecords, RetriableError
from barnabas.connect.plugins.file_stream import FileStreamSink
from barnabas.connect.runtime import retries
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.engine.jobs import Job
from tests.connect.runtime.tasks import STRINGS, Tasks
from tests.connect.runtime.test_file_stream import append
from tests.waiting import wait_until

PLAIN = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
TOLERANT = {"errors.tolerance": "all", "errors.deadletterqueue.context.headers.enable": "true"}


def sink(tasks: Tasks, **more: str) -> Job:
    config = {"file": str(tasks.folder / "out.txt"), "topics": tasks.topic, **PLAIN}
    return tasks.job("FileStreamSink", "sink", {**config, **{key.replace("__", "."): value for key, value in more.items()}})


def tolerant(tasks: Tasks) -> dict[str, str]:
    return {**TOLERANT, "errors.deadletterqueue.topic.name": f"dlq-{tasks.name}"}


def letters(tasks: Tasks) -> list[tuple[bytes | None, dict[str, str]]]:
    found = records_of(tasks._client, f"dlq-{tasks.name}")
    return [
        (each.value and bytes(each.value), {name: bytes(value or b"").decode() for name, value in each.headers}) for each in found
    ]


def out(tasks: Tasks) -> Path:
    return tasks.folder / "out.txt"


def test_a_record_that_cannot_be_converted_ends_the_task_with_its_place(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"a":1}', "{no")
    task = tasks.start(sink(tasks))
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert (task.failure() or "").startswith(f"the value of {tasks.topic}-0 offset 1 cannot be converted: ")


def test_tolerated_errors_go_to_the_topic_of_dead_letters_with_their_context(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"a":1}', "{no", '{"a":3}')
    config = {
        **tolerant(tasks), "transforms": "x", "transforms.x.type": "Cast$Value", "transforms.x.spec": "a:int32",
    }  # fmt: skip
    with tasks.running(sink(tasks, **config)) as task:
        tasks.until(lambda: tasks.committed() == {0: (3, "")}, task, "the records were not taken")
    assert out(tasks).read_text() == '{"a":1}\n{"a":3}\n'
    ((value, headers),) = letters(tasks)
    assert value == b"{no"
    context = {name.removeprefix("__connect.errors."): text for name, text in headers.items()}
    assert {name: context[name] for name in ("topic", "partition", "offset", "connector.name", "task.id", "stage", "class.name")} == {
        "topic": tasks.topic, "partition": "0", "offset": "1", "connector.name": tasks.name, "task.id": "0",
        "stage": "VALUE_CONVERTER", "class.name": "JsonConverter",
    }  # fmt: skip
    assert context["exception.message"] in context["exception.stacktrace"]


def test_a_batch_of_dead_letters_alone_writes_nothing(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce("{no")
    with tasks.running(sink(tasks, **tolerant(tasks))) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the record was not taken")
    assert out(tasks).read_text() == ""
    assert [value for value, _ in letters(tasks)] == [b"{no"]


def test_a_transform_that_fails_for_one_record_fails_for_no_other(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"a":"1"}', '{"a":"x"}', '{"a":"3"}')
    config = {**tolerant(tasks), "transforms": "x", "transforms.x.type": "Cast$Value", "transforms.x.spec": "a:int32"}
    with tasks.running(sink(tasks, **config)) as task:
        tasks.until(lambda: tasks.committed() == {0: (3, "")}, task, "the records were not taken")
    assert out(tasks).read_text() == '{"a":1}\n{"a":3}\n'
    assert [(value, headers["__connect.errors.stage"]) for value, headers in letters(tasks)] == [(b'{"a":"x"}', "TRANSFORMATION")]


def test_a_sink_names_bad_records_and_gets_the_others_again(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks.create_topic()
    tasks.produce('{"a":1}', '{"a":2}', '{"a":3}')
    real = FileStreamSink.write

    def write(self: FileStreamSink, records: pa.Table, identity: Identity) -> None:
        bad = [row for row, each in enumerate(records.column("value").to_pylist()) if each == {"a": 2}]
        if bad:
            raise BadRecords(dict.fromkeys(bad, "two is not allowed"))
        real(self, records, identity)

    monkeypatch.setattr(FileStreamSink, "write", write)
    with tasks.running(sink(tasks, **tolerant(tasks))) as task:
        tasks.until(lambda: tasks.committed() == {0: (3, "")}, task, "the records were not taken")
    assert out(tasks).read_text() == '{"a":1}\n{"a":3}\n'
    assert [(value, headers["__connect.errors.stage"]) for value, headers in letters(tasks)] == [(b'{"a":2}', "TASK_PUT")]


def test_a_batch_is_tried_again_as_long_as_the_sink_asks_for_it(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks.create_topic()
    tasks.produce('{"a":1}')
    real, tries, is_back = FileStreamSink.write, list[int](), threading.Event()

    def write(self: FileStreamSink, records: pa.Table, identity: Identity) -> None:
        tries.append(1)
        if len(tries) < 3 or not is_back.is_set():
            raise RetriableError("the target is away", after_s=0.01)
        real(self, records, identity)

    monkeypatch.setattr(FileStreamSink, "write", write)
    monkeypatch.setattr(retries, "TELL_S", 0.05)
    with tasks.running(sink(tasks)) as task:
        tasks.until(lambda: task.hindrance() == "the target is away", task, "it does not say why it waits")
        is_back.set()
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the record was not taken")
        assert task.hindrance() is None
    assert (len(tries) >= 3, out(tasks).read_text()) == (True, '{"a":1}\n')


def test_a_source_has_dead_letters_too(tasks: Tasks) -> None:
    tasks.create_topic()
    append(tasks, b"1\nx\n3\n")
    config = {
        "file": str(tasks.folder / "in.txt"), "topic": tasks.topic, **tolerant(tasks), "transforms": "x",
        "transforms.x.type": "Cast$Value", "transforms.x.spec": "int32",
    }  # fmt: skip
    with tasks.running(tasks.job("FileStreamSource", "source", config)) as task:
        tasks.until(lambda: tasks.values() == [b"1", b"3"], task, "the lines did not come")
    assert [(value, headers["__connect.errors.stage"]) for value, headers in letters(tasks)] == [(b"x", "TRANSFORMATION")]


def away(monkeypatch: pytest.MonkeyPatch, cls: type, name: str, failures: int) -> list[int]:
    """Let a method of a converter raise RetriableError so many times; returns the list of its calls."""
    real, tries = getattr(cls, name), list[int]()

    def method(self: object, *args: object) -> object:
        tries.append(1)
        if len(tries) <= failures:
            raise RetriableError("the registry is away")
        return real(self, *args)

    monkeypatch.setattr(cls, name, method)
    return tries


def test_a_converter_is_tried_again_for_the_time_of_the_config(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks.create_topic()
    tasks.produce('{"a":1}')
    tries = away(monkeypatch, JsonConverter, "decode", 2)
    with tasks.running(sink(tasks, errors__retry__timeout="-1", errors__retry__delay__max__ms="1")) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the record was not taken")
    assert (len(tries) >= 3, out(tasks).read_text()) == (True, '{"a":1}\n')


def test_records_are_no_dead_letters_because_a_registry_is_away(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks.create_topic()
    append(tasks, b"1\n")
    config = {"file": str(tasks.folder / "in.txt"), "topic": tasks.topic, **tolerant(tasks)}
    away(monkeypatch, StringConverter, "encode", 1)
    job = tasks.job("FileStreamSource", "source", config)
    task = tasks.start(job)
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert (task.failure() or "").endswith("the registry is away")
    tasks.stop(task)
    with tasks.running(job) as again:  # as the engine does
        tasks.until(lambda: tasks.values() == [b"1"], again, "the line did not come")
    assert letters(tasks) == []


def test_the_time_of_tries_is_a_number(tasks: Tasks) -> None:
    with pytest.raises(ConfigError, match=r"errors\.retry\.timeout: Not a number of type LONG"):
        tasks.start(sink(tasks, errors__retry__timeout="soon"))


def test_a_header_that_cannot_be_converted_goes_to_the_dead_letters(tasks: Tasks) -> None:
    tasks.create_topic()
    producer = Producer(tasks.settings)
    for number, header in enumerate((b"1", b"{no")):
        producer.produce(tasks.topic, f'{{"a":{number}}}', headers=[("h", header)])
    assert producer.flush(30) == 0
    config = {"header.converter": PLAIN["value.converter"], "header.converter.schemas.enable": "false"}
    with tasks.running(sink(tasks, **tolerant(tasks), **config)) as task:
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the records were not taken")
    assert out(tasks).read_text() == '{"a":0}\n'
    ((value, headers),) = letters(tasks)
    assert (value, headers["h"], headers["__connect.errors.stage"]) == (b'{"a":1}', "{no", "HEADER_CONVERTER")


def test_headers_of_a_source_are_written_by_the_header_converter(tasks: Tasks) -> None:
    tasks.create_topic()
    append(tasks, b"x\n")
    config = {
        "file": str(tasks.folder / "in.txt"), "topic": tasks.topic, "transforms": "h", "transforms.h.type": "InsertHeader",
        "transforms.h.header": "n", "transforms.h.value.literal": "1.0",
    }  # fmt: skip
    worker = {**STRINGS, "header.converter": PLAIN["value.converter"]}
    with tasks.running(tasks.job("FileStreamSource", "source", config, worker)) as task:
        tasks.until(lambda: tasks.values() == [b"x"], task, "the line did not come")
    (found,) = records_of(tasks._client, tasks.topic)
    assert list(found.headers) == [("n", b'{"schema":{"type":"int8","optional":false},"payload":1}')]
