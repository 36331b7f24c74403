"""Records of topics come into files, each into one."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest

from barnabas.connect.config_types import ConfigError
from barnabas.connect.plugins.files.folder import Folder
from barnabas.connect.plugins.files.sink import FileSink
from barnabas.connect.runtime.opening import config_of
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.engine.jobs import Job
from tests.connect.files import fake_s3
from tests.connect.files.test_source import JSON
from tests.connect.runtime.tasks import Tasks
from tests.connect.runtime.test_kills import die_once
from tests.waiting import wait_until


def sink(tasks: Tasks, **config: str) -> Job:
    """A job; a key with an empty value is left out."""
    given = {"store.url": str(tasks.folder / "out"), "topics": tasks.topic, "flush.size": "2"}
    given |= {key.replace("__", "."): each for key, each in config.items()}
    return tasks.job("barnabas.FileSink", "sink", {key: each for key, each in given.items() if each}, JSON)


def objects(*names: str | int) -> list[str]:
    return [json.dumps({"id": each}) for each in names]


def files(tasks: Tasks, folder: str = "out") -> dict[str, bytes]:
    """By their names below the folder of the topic."""
    root = tasks.folder / folder / "topics" / tasks.topic
    return {str(each.relative_to(root)): each.read_bytes() for each in sorted(root.rglob("*")) if each.is_file()}


def name(tasks: Tasks, offset: int, extension: str = "json", partition: int = 0) -> str:
    return f"partition={partition}/{tasks.topic}+{partition}+{offset:010d}.{extension}"


def test_files_have_the_names_and_the_sizes_of_confluents_sink(tasks: Tasks) -> None:
    tasks.create_topic(2)
    tasks.produce(*objects(1, 2, 3, 4, 5))
    tasks.produce(*objects(6, 7), partition=1)
    with tasks.running(sink(tasks)) as task:
        tasks.until(lambda: tasks.committed(2) == {0: (4, ""), 1: (2, "")}, task, "the offsets were not committed")
        assert files(tasks) == {
            name(tasks, 0): b'{"id":1}\n{"id":2}\n', name(tasks, 2): b'{"id":3}\n{"id":4}\n',
            name(tasks, 0, partition=1): b'{"id":6}\n{"id":7}\n',
        }  # fmt: skip
        tasks.produce(*objects(8))
        tasks.until(lambda: tasks.committed(2)[0] == (6, ""), task, "the offset was not committed")
        assert files(tasks)[name(tasks, 4)] == b'{"id":5}\n{"id":8}\n'


def test_a_schedule_writes_what_is_there(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1))
    with tasks.running(sink(tasks, rotate__schedule__interval__ms="50")) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the offset was not committed")
    assert files(tasks) == {name(tasks, 0): b'{"id":1}\n'}


@pytest.mark.parametrize("form", ["parquet", "io.confluent.connect.s3.format.avro.AvroFormat", "csv", "json", "lines"])
def test_formats(tasks: Tasks, form: str) -> None:
    tasks.create_topic()
    tasks.produce('{"a":1,"b":"x","c":[1]}', '{"a":null,"b":null,"d":{"e":true}}')
    with tasks.running(sink(tasks, format__class=form, parquet__codec="zstd", compression__type="gzip")) as task:
        tasks.until(lambda: len(files(tasks)) == 1, task, "there is no file")
    ((path, data),) = files(tasks).items()
    rows = [{"a": 1, "b": "x", "c": [1], "d": None}, {"a": None, "b": None, "c": None, "d": {"e": True}}]
    match form:
        case "parquet":
            assert path.endswith(".zstd.parquet")
            assert pq.read_table(io.BytesIO(data)).to_pylist() == rows
        case "csv":
            assert gzip.decompress(data).decode() == '"a","b","c","d"\n1,"x","[1]",\n,,,"{""e"":true}"\n'
        case "json" | "lines":
            assert [json.loads(each) for each in gzip.decompress(data).splitlines()] == rows
        case _:
            assert path.endswith(".avro")
            assert list(fastavro.reader(io.BytesIO(data))) == rows


def test_fields_name_folders(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"a":"x/../y","n":1}', '{"a":null,"n":1}', '{"a":"x/../y","n":1}')
    config = {"partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner", "partition.field.name": "a,n"}
    with tasks.running(sink(tasks, **config)) as task:
        tasks.until(lambda: len(files(tasks)) == 2, task, "there are no files")
    assert list(files(tasks)) == [
        f"a=__HIVE_DEFAULT_PARTITION__/n=1/{tasks.topic}+0+0000000001.json", f"a=x%2F..%2Fy/n=1/{tasks.topic}+0+0000000000.json",
    ]  # fmt: skip


def test_times_name_folders_and_end_files(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce(
        *(json.dumps({"at": each}) for each in ("2025-03-30T00:59:00Z", "2025-03-30T01:00:00Z", "2025-03-30T01:59:00Z"))
    )
    config = {
        "partitioner.class": "TimeBased", "path.format": "'day'=YYYY-MM-dd/HH", "timezone": "Europe/Berlin",
        "timestamp.extractor": "RecordField", "timestamp.field": "at", "flush.size": "100", "rotate.interval.ms": "3600000",
    }  # fmt: skip
    with tasks.running(sink(tasks, **config)) as task:
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
    assert list(files(tasks)) == [
        f"day=2025-03-30/01/{tasks.topic}+0+0000000000.json", f"day=2025-03-30/03/{tasks.topic}+0+0000000001.json",
    ]  # fmt: skip


def test_a_renamed_topic_names_the_folder(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2))
    config = {
        "transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": ".*", "transforms.r.replacement": "other",
    }  # fmt: skip
    with tasks.running(sink(tasks, **config)) as task:
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
    assert (tasks.folder / "out/topics/other/partition=0/other+0+0000000000.json").exists()


def test_records_without_a_value_are_dead_letters_or_left_out(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1), None, *objects(2))
    letters = f"dlq-{tasks.name}"
    with tasks.running(sink(tasks, errors__tolerance="all", errors__deadletterqueue__topic__name=letters)) as task:
        tasks.until(lambda: tasks.committed() == {0: (3, "")}, task, "the offset was not committed")
    assert files(tasks) == {name(tasks, 0): b'{"id":1}\n{"id":2}\n'}
    assert len(list(records_of(tasks._client, letters))) == 1
    failing = tasks.start(sink(tasks, consumer__override__group__id="x"))
    wait_until(lambda: failing.failure() is not None, "it did not fail")
    assert "it has no value" in str(failing.failure())
    tasks.stop(failing)
    ignoring = {
        "consumer.override.group.id": "y",
        "behavior.on.null.values": "ignore",
        "store.url": str(tasks.folder / "ignoring"),
    }
    with tasks.running(sink(tasks, **ignoring)) as task:
        tasks.until(lambda: files(tasks, "ignoring") == files(tasks), task, "the file is not there")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("place", ["put", "move"])
def test_a_record_is_in_one_file_whenever_the_sink_dies(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, place: str, *, after: bool
) -> None:  # fmt: skip
    tasks.create_topic()
    tasks.produce(*(json.dumps({"id": each, "kind": each % 2}) for each in range(9)))
    config = {"partitioner.class": "Field", "partition.field.name": "kind"}
    with monkeypatch.context() as dying:
        owner, call = (Folder, "put") if place == "put" else (Path, "replace")
        died = die_once(dying, owner, call, after=after)
        task = tasks.start(sink(tasks, **config))
        wait_until(lambda: died and task.failure() is not None, "it did not die")
        tasks.stop(task)
    tasks.produce('{"id":9,"kind":1}')
    with tasks.running(sink(tasks, rotate__schedule__interval__ms="100", **config)) as again:
        tasks.until(lambda: tasks.committed() == {0: (10, "")}, again, "the sink did not go on")
    found = files(tasks)
    assert sorted(json.loads(line)["id"] for data in found.values() for line in data.splitlines()) == list(range(10))
    assert not [each for each in found if "/." in each]


def test_a_full_disk_fails_the_task_and_loses_nothing(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as filled:
        filled.setattr(os, "fsync", full)
        task = tasks.start(sink(tasks))
        wait_until(lambda: task.failure() is not None, "it did not fail")
    tasks.stop(task)
    assert str(task.failure()).endswith("0000000000.json cannot be written: No space left on device")
    assert files(tasks) == {}
    with tasks.running(sink(tasks)) as again:
        tasks.until(lambda: files(tasks) == {name(tasks, 0): b'{"id":1}\n{"id":2}\n'}, again, "the file is not there")


@pytest.fixture
def s3() -> Iterator[fake_s3.FakeS3]:
    with fake_s3.running() as made:
        yield made


def test_files_are_objects_and_a_store_that_is_away_is_waited_for(tasks: Tasks, s3: fake_s3.FakeS3) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2))
    s3.refusals = 6  # more than the library tries again
    with tasks.running(sink(tasks, **s3.options, **{"store.url": "s3://bucket/a"})) as task:
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
    assert s3.objects == {f"a/topics/{tasks.topic}/{name(tasks, 0)}": b'{"id":1}\n{"id":2}\n'}


def test_the_keys_of_confluents_sink_name_bucket_server_and_secret(tasks: Tasks, s3: fake_s3.FakeS3) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2))
    config = {
        "s3.bucket.name": "bucket", "store.url": s3.options["store.endpoint"], "s3.region": "us-east-1", "aws.access.key.id": fake_s3.KEY,
        "aws.secret.access.key": fake_s3.SECRET, "storage.class": "io.confluent.connect.s3.storage.S3Storage", "s3.part.size": "5242880",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat", "schema.compatibility": "NONE",
        "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
    }  # fmt: skip
    with tasks.running(sink(tasks, **config)) as task:
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
    assert s3.objects == {f"topics/{tasks.topic}/{name(tasks, 0)}": b'{"id":1}\n{"id":2}\n'}


def test_wrong_credentials_fail_the_task(tasks: Tasks, s3: fake_s3.FakeS3) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2))
    config = {
        **s3.options,
        "store.access_key_id": "nobody",
        "s3.bucket.name": "bucket",
        "s3.region": "us-east-1",
        "store.url": "",
    }
    task = tasks.start(sink(tasks, **config))
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert str(task.failure()).startswith("the store refuses to write s3://bucket/topics/")
    assert fake_s3.SECRET not in str(task.failure())


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"store.url": "out"}, "an absolute path or a URL"), ({"flush.size": "0"}, "at least 1"),
        ({"format.class": "xml"}, "one of parquet, json"), ({"partitioner.class": "Hash"}, "one of Default, Field"),
        ({"partitioner.class": "Field"}, "partition.field.name is needed"), ({"timezone": "Mars"}, "Invalid time zone"),
        ({"path.format": "QQ"}, "has no meaning"), ({"path.format": "../YYYY"}, "leaves its folder"),
        ({"topics.dir": "../x"}, "does not leave"), ({"file.delim": "/"}, "no slash"),
    ],
)  # fmt: skip
def test_a_wrong_config_is_refused(config: Mapping[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        config_of(FileSink(), {"store.url": "/out", "flush.size": "1", **config})


def test_a_sink_without_a_place_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"store\.url is needed, or s3\.bucket\.name"):
        config_of(FileSink(), {"flush.size": "1"})
