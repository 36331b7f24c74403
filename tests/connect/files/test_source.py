"""Files of a folder come into a topic, each once."""

from __future__ import annotations

import bz2
import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.connect.config_types import ConfigError
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.files.folder import Folder
from barnabas.connect.plugins.files.source import FileSource
from barnabas.connect.runtime.opening import config_of
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.connect.runtime.transaction import TransactionalWriter
from barnabas.engine.jobs import Job
from tests.connect.files import fake_s3
from tests.connect.runtime.tasks import STRINGS, Tasks
from tests.connect.runtime.test_kills import die_at_the_end, die_once
from tests.waiting import wait_until

JSON = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def folder(tasks: Tasks) -> Path:
    made = tasks.folder / "in"
    made.mkdir(exist_ok=True)
    return made


def source(tasks: Tasks, **config: str) -> Job:
    return job_of(tasks, config, JSON)


def lines(tasks: Tasks, **config: str) -> Job:
    return job_of(tasks, config, STRINGS)


def job_of(tasks: Tasks, config: Mapping[str, str], worker: Mapping[str, str]) -> Job:
    given = {"input.path": str(folder(tasks)), "topic": tasks.topic, "file.minimum.age.ms": "0", "empty.poll.wait.ms": "10"}
    own = {key.replace("__", "."): each for key, each in config.items()}
    return tasks.job("barnabas.FileSource", "source", {**given, **own}, worker)


def write(tasks: Tasks, name: str, data: str | bytes) -> Path:
    """A file that appears at once, as one that was renamed does."""
    path = folder(tasks) / name
    path.parent.mkdir(exist_ok=True)
    other = tasks.folder / "being-written"
    other.write_bytes(data if isinstance(data, bytes) else data.encode())
    other.replace(path)
    return path


def rows(tasks: Tasks) -> list[Any]:
    return [json.loads(each) for each in tasks.values() if each is not None]


def offsets(tasks: Tasks) -> dict[str, Any]:
    """The last offset by the name of the file."""
    found: dict[str, Any] = {}
    for each in records_of(tasks._client, "connect-offsets"):
        name, partition = msgspec.json.decode(each.key or b"")
        if name == tasks.name:
            found[Path(partition["path"]).name] = None if each.value is None else msgspec.json.decode(each.value)
    return found


def test_each_file_comes_once_in_the_order_of_names(tasks: Tasks) -> None:
    write(tasks, "b.txt", "3\n4\n")
    write(tasks, "a.txt", "1\r\n2")
    write(tasks, ".hidden", "no\n")
    with tasks.running(lines(tasks)) as task:
        tasks.until(lambda: tasks.values() == [b"1", b"2", b"3", b"4"], task, "the lines did not come")
        write(tasks, "c.txt", "5\n")
        tasks.until(lambda: tasks.values()[4:] == [b"5"], task, "the file did not come")
    write(tasks, "d.txt", "6\n")
    with tasks.running(lines(tasks)) as task:
        tasks.until(lambda: tasks.values()[5:] == [b"6"], task, "the source did not go on")
    assert offsets(tasks)["a.txt"]["done"] is True


def test_a_csv_file_has_fields_of_inferred_types(tasks: Tasks) -> None:
    write(tasks, "a.csv", '\ufeffid,name,price,paid\n1,"a ""b""\nc",1.5,true\n2,,,false\n')
    with tasks.running(source(tasks, format="csv")) as task:
        tasks.until(lambda: len(tasks.values()) == 2, task, "the rows did not come")
    assert rows(tasks) == [
        {"id": 1, "name": 'a "b"\nc', "price": 1.5, "paid": True},
        {"id": 2, "name": "", "price": None, "paid": False},
    ]


def test_a_csv_file_has_the_fields_that_are_declared(tasks: Tasks) -> None:
    write(tasks, "a.csv", "# made today\n007;x;2025-01-01\n")
    config = {
        "format": "csv", "csv.first.row.as.header": "false", "csv.separator.char": "59", "csv.skip.lines": "1",
        "value.schema": "id STRING, name STRING, day DATE",
    }  # fmt: skip
    with tasks.running(source(tasks, **config)) as task:
        tasks.until(lambda: len(tasks.values()) == 1, task, "the row did not come")
    assert rows(tasks) == [{"id": "007", "name": "x", "day": 20089}]


def test_json_lines_keep_their_values(tasks: Tasks) -> None:
    write(tasks, "a.jsonl", '{"a":1,"at":"2025-01-01T00:00:00Z"}\n\n{"a":2,"b":[1,2]}\n')
    with tasks.running(source(tasks, format="json")) as task:
        tasks.until(lambda: len(tasks.values()) == 2, task, "the rows did not come")
    assert rows(tasks) == [{"a": 1, "at": "2025-01-01T00:00:00Z", "b": None}, {"a": 2, "at": None, "b": [1, 2]}]


def test_parquet_and_avro_files_come_with_their_types(tasks: Tasks) -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})
    pq.write_table(table, tasks.folder / "p", row_group_size=2)
    write(tasks, "a.parquet", (tasks.folder / "p").read_bytes())
    with tasks.running(source(tasks, format="parquet", input__file__pattern=r".*\.parquet")) as task:
        tasks.until(lambda: rows(tasks) == table.to_pylist(), task, "the rows did not come")
        assert offsets(tasks)["a.parquet"]["position"] == 3
    with (tasks.folder / "a").open("wb") as file:
        schema = {
            "type": "record",
            "name": "r",
            "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"]}],
        }
        fastavro.writer(file, fastavro.parse_schema(schema), table.to_pylist())
    write(tasks, "a.avro", (tasks.folder / "a").read_bytes())
    with tasks.running(source(tasks, format="avro", input__file__pattern=r".*\.avro")) as task:
        tasks.until(lambda: rows(tasks) == table.to_pylist() * 2, task, "the rows did not come")


def test_compressed_files_are_read(tasks: Tasks) -> None:
    write(tasks, "a.txt.gz", gzip.compress(b"1\n") + gzip.compress(b"2\n"))
    write(tasks, "b.txt.bz2", bz2.compress(b"3\n4"))
    with tasks.running(lines(tasks)) as task:
        tasks.until(lambda: len(tasks.values()) >= 4, task, "the lines did not come")
    assert tasks.values() == [b"1", b"2", b"3", b"4"]


def test_globs_find_files_in_folders_below(tasks: Tasks) -> None:
    for name in ("a.csv", "x/b.csv", "x/c.txt"):
        write(tasks, name, f"{name}\n")
    job = lines(tasks, input__path=f"{folder(tasks)}/**/*.csv")
    with tasks.running(job) as task:
        tasks.until(lambda: len(tasks.values()) >= 2, task, "the files did not come")
    assert tasks.values() == [b"a.csv", b"x/b.csv"]


def test_a_followed_file_waits_for_its_line_feed_and_starts_anew_when_it_is_rotated(tasks: Tasks) -> None:
    path = write(tasks, "app.log", "1\n2")
    with tasks.running(lines(tasks, follow="true", input__file__pattern=r".*\.log")) as task:
        tasks.until(lambda: tasks.values() == [b"1"], task, "the line did not come")
        with path.open("a") as file:
            file.write("\n3\n")
        tasks.until(lambda: tasks.values() == [b"1", b"2", b"3"], task, "the other lines did not come")
        path.rename(path.with_name("app.log.1"))
        write(tasks, "app.log", "other 1\nother 2\n")
        tasks.until(lambda: len(tasks.values()) >= 5, task, "the next file did not come")
    assert tasks.values() == [b"1", b"2", b"3", b"other 1", b"other 2"]


def test_a_finished_file_that_grows_goes_on_where_it_was(tasks: Tasks) -> None:
    path = write(tasks, "a.txt", "1\n")
    with tasks.running(lines(tasks)) as task:
        tasks.until(lambda: tasks.values() == [b"1"], task, "the line did not come")
    with path.open("a") as file:
        file.write("2\n")
    os.utime(path, (1, 1))
    with tasks.running(lines(tasks)) as task:
        tasks.until(lambda: len(tasks.values()) >= 2, task, "the line did not come")
        write(tasks, "b.txt", "3\n")
        tasks.until(lambda: len(tasks.values()) >= 3, task, "the line did not come")
    assert tasks.values() == [b"1", b"2", b"3"]


@pytest.mark.parametrize("policy", ["move", "DELETE"])
def test_a_file_is_tidied_up_when_its_records_are_in_the_log(tasks: Tasks, policy: str) -> None:
    write(tasks, "a.txt", "1\n")
    done = folder(tasks) / "done"
    job = lines(tasks, cleanup__policy=policy, finished__path=str(done), input__path__walk__recursively="true")
    with tasks.running(job) as task:
        tasks.until(lambda: tasks.values() == [b"1"] and offsets(tasks) == {"a.txt": None}, task, "the file was not forgotten")
        write(tasks, "a.txt", "1\n2\n")
        tasks.until(lambda: tasks.values() == [b"1", b"1", b"2"], task, "the next file of the name did not come")
        tasks.until(lambda: not (folder(tasks) / "a.txt").exists(), task, "it is there still")
    expected = [("a.txt", "1\n"), ("a.txt.1", "1\n2\n")] if policy == "move" else []
    assert sorted((each.name, each.read_text()) for each in done.glob("*")) == expected


def test_a_bad_line_ends_the_task_with_its_place_and_nothing_is_lost(tasks: Tasks) -> None:
    tasks.create_topic()
    path = write(tasks, "a.csv", "id,name\n1,a\n2\n3,c\n")
    task = tasks.start(source(tasks, format="csv"))
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert task.failure() == f"{path} at the position 12: 2 columns were expected, and 1 are there"
    assert tasks.values() == []
    tasks.stop(task)
    write(tasks, "a.csv", "id,name\n1,a\n2,b\n3,c\n")
    with tasks.running(source(tasks, format="csv")) as task:
        tasks.until(lambda: [each["id"] for each in rows(tasks)] == [1, 2, 3], task, "the rows did not come")


@pytest.mark.parametrize(
    ("form", "data", "bad"),
    [
        ("csv", "id\n1\nx,y\n3\n", b"x,y"), ("json", '{"id":1}\n{"id":\n{"id":3}\n', b'{"id":'),
        ("csv", "id\n1\n\n3\n2,", b"2,"),
    ],
)  # fmt: skip
def test_tolerated_bad_lines_become_dead_letters(tasks: Tasks, form: str, data: str, bad: bytes) -> None:
    path, queue = write(tasks, "a", data), f"dlq-{tasks.name}"
    config = {
        "errors.tolerance": "all", "errors.deadletterqueue.topic.name": queue,
        "errors.deadletterqueue.context.headers.enable": "true", "format": form,
    }  # fmt: skip
    with tasks.running(source(tasks, **config)) as task:
        tasks.until(lambda: [each["id"] for each in rows(tasks)] == [1, 3], task, "the rows did not come")
        tasks.until(lambda: len(list(records_of(tasks._client, queue))) == 1, task, "the letter did not come")
    (letter,) = records_of(tasks._client, queue)
    headers = {name: bytes(value or b"").decode() for name, value in letter.headers}
    assert bytes(letter.value or b"") == bad
    assert headers["__connect.errors.stage"] == "TASK_POLL"
    assert headers["__connect.errors.exception.message"].startswith(f"{path} at the position ")


def test_a_value_that_does_not_fit_to_its_type_is_a_bad_line(tasks: Tasks) -> None:
    tasks.create_topic()
    write(tasks, "a.csv", "id\n1\nsecret\n")
    task = tasks.start(source(tasks, format="csv", value__schema="id BIGINT"))
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert str(task.failure()).endswith("at the position 5: In CSV column #0: CSV conversion error to int64")


@pytest.mark.parametrize(
    ("name", "form", "data"),
    [
        ("a.parquet", "parquet", b"PAR1 no"),
        ("a.avro", "avro", b"Obj\x01 no"),
        ("a.gz", "lines", b"\x1f\x8b no"),
        ("a", "csv", b"a,a\n"),
    ],
)
def test_a_file_that_cannot_be_read_is_set_aside(tasks: Tasks, name: str, form: str, data: bytes) -> None:
    tasks.create_topic()
    write(tasks, name, data)
    aside = tasks.folder / "aside"
    config = {"format": form, "halt.on.error": "false", "error.path": str(aside)}
    with tasks.running(source(tasks, **config)) as task:
        tasks.until(lambda: [each.name for each in aside.glob("*")] == [name], task, "the file was not set aside")
    assert tasks.values() == []


def test_a_damaged_file_ends_the_task_by_default(tasks: Tasks) -> None:
    tasks.create_topic()
    path = write(tasks, "a.parquet", b"no")
    task = tasks.start(source(tasks, format="parquet"))
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert str(task.failure()).startswith(f"{path} cannot be read: no Parquet file: ")


def test_a_folder_that_goes_away_ends_the_task_and_the_next_one_goes_on(tasks: Tasks) -> None:
    write(tasks, "a.txt", "1\n")
    job = lines(tasks)
    task = tasks.start(job)
    tasks.until(lambda: tasks.values() == [b"1"], task, "the line did not come")
    away = folder(tasks).rename(tasks.folder / "away")
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert task.failure() == f"the folder {tasks.folder / 'in'} cannot be read: No such file or directory"
    tasks.stop(task)
    away.rename(tasks.folder / "in")
    write(tasks, "b.txt", "2\n")
    with tasks.running(job) as task:
        tasks.until(lambda: tasks.values() == [b"1", b"2"], task, "the source did not go on")


def test_tasks_share_the_files() -> None:
    config = FileSource.config.parse({"topic": "t", "input.path": "/in"})
    assert FileSource.tasks(config, 2) == [{"task.number": "0", "task.count": "2"}, {"task.number": "1", "task.count": "2"}]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"input.path": "in"}, "an absolute path or a URL"), ({"format": "xml"}, "String must be one of: lines, csv"),
        ({"csv.separator.char": ";;"}, "one ASCII character"), ({"value.schema": "id"}, "value.schema"),
        ({"input.file.pattern": "("}, "Invalid regex"), ({"cleanup.policy": "move"}, "finished.path is needed"),
        ({"halt.on.error": "false"}, "error.path is needed"), ({"follow": "true", "format": "avro"}, "do not grow"),
        ({"follow": "true", "cleanup.policy": "delete"}, "files that are followed are never finished"),
        ({"input.path": "nope://x"}, "cannot be opened"), ({"input.path": "s3://b", "store.nope": "1"}, "no such option"),
    ],
)  # fmt: skip
def test_a_wrong_config_is_refused(config: Mapping[str, str], says: str) -> None:
    with pytest.raises((ConfigError, ConnectError), match=says):
        next(FileSource().read(config_of(FileSource(), {"topic": "t", "input.path": "/in", **config}), []))


@pytest.mark.parametrize(
    "place", ["before the write", "before the commit", "after the commit", "before the move", "after the move"]
)
def test_each_row_comes_once_whenever_the_source_dies(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    tasks.create_topic()
    for number in range(3):
        write(tasks, f"{number}.csv", f"id\n{number}1\n{number}2\n")
    config = {
        "format": "csv",
        "cleanup.policy": "MOVE",
        "finished.path": str(tasks.folder / "done"),
        "file.buffer.size.bytes": "6",
    }
    with monkeypatch.context() as dying:
        if place == "before the write":
            died = die_once(dying, TransactionalWriter, "write", after=False)
        elif place.endswith("commit"):
            died = die_at_the_end(dying, after=place == "after the commit")
        else:
            died = die_once(dying, Folder, "move", after=place == "after the move")
        task = tasks.start(source(tasks, **config))
        wait_until(lambda: died and task.failure() is not None, "it did not die")
        tasks.stop(task)
    write(tasks, "3.csv", "id\n31\n")
    done = tasks.folder / "done"
    with tasks.running(source(tasks, **config)) as again:
        tasks.until(lambda: done.exists() and len(list(done.iterdir())) == 4, again, "not all files were moved")
    assert [each["id"] for each in rows(tasks)] == [1, 2, 11, 12, 21, 22, 31]


def test_objects_of_a_store_are_read_and_moved(tasks: Tasks) -> None:
    with fake_s3.running() as s3:
        s3.objects |= {"in/a/1.csv": b"id\n1\n", "in/2.csv": b"id\n2\n", "in/3.txt": b"no"}
        config = {
            **s3.options, "input.path": "s3://bucket/in/**/*.csv", "format": "csv", "cleanup.policy": "MOVE",
            "finished.path": "s3://bucket/done",
        }  # fmt: skip
        with tasks.running(source(tasks, **config)) as task:
            tasks.until(
                lambda: sorted(s3.objects) == ["done/2.csv", "done/a/1.csv", "in/3.txt"], task, "the objects were not moved"
            )
        assert [each["id"] for each in rows(tasks)] == [2, 1]


def test_wrong_credentials_of_a_store_fail_the_task(tasks: Tasks) -> None:
    tasks.create_topic()
    with fake_s3.running() as s3:
        task = tasks.start(source(tasks, **{**s3.options, "store.access_key_id": "nobody", "input.path": "s3://bucket/in"}))
        wait_until(lambda: task.failure() is not None, "it did not fail")
    assert str(task.failure()).startswith("the store refuses to list s3://bucket/in/")
    assert fake_s3.SECRET not in str(task.failure())


def test_offsets_that_somebody_sets_are_checked() -> None:
    FileSource.check_offset({}, {"path": "/a"}, {"position": 7})
    FileSource.check_offset({}, {"path": "/a"}, None)
    for partition, offset, says in (
        ({"file": "/a"}, None, "the partition of a file"),
        ({"path": "/a"}, {"position": -1}, "the offset of a file"),
        ({"path": "/a"}, {}, "the offset of a file"),
    ):
        with pytest.raises(ConnectError, match=says):
            FileSource.check_offset({}, partition, offset)
