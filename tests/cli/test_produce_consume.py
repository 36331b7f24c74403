"""`barnabas produce` and `barnabas consume`, against each other."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli import consume
from barnabas.cli.consume import ByGroup, ByPartition
from barnabas.cli.errors import Failure
from barnabas.cli.produce import Sender, pace, split
from barnabas.cli.records import Record
from barnabas.testing import Broker
from tests.cli.conftest import Command, eventually, ignoring_sigint
from tests.waiting import wait_until


def test_lines_come_back(kafka_command: Command, topic: str) -> None:
    assert kafka_command("produce", topic, "-p", 1, stdin=b"one\ntwo\nthree").code == 0
    assert kafka_command("consume", topic).lines == ["one", "two", "three"]


def test_an_empty_topic_ends_at_once(kafka_command: Command, topic: str) -> None:
    ended = kafka_command("consume", topic)
    assert (ended.code, ended.out, ended.err) == (0, b"", "")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec(kafka_command: Command, topic: str, codec: str) -> None:
    lines = [f"{n} " + "x" * 50 for n in range(200)]
    assert kafka_command("produce", topic, "-p", 0, "-z", codec, stdin="\n".join(lines).encode()).code == 0
    assert kafka_command("consume", topic, "-p", 0).lines == lines


def test_json_carries_everything_to_another_topic(kafka_command: Command, topic: str) -> None:
    records = (
        b'{"key": "k", "value": "v", "headers": [{"key": "h", "value": "1"}, {"key": "n"}], "timestamp": 1700000000000}\n'
        b'{"key": null, "value_base64": "/w==", "timestamp": 1700000000001}\n'
        b'{"key": "gone", "value": null, "timestamp": 1700000000002}\n'
    )
    assert kafka_command("produce", topic, "-f", "json", "-p", 0, stdin=records).code == 0
    first = kafka_command("consume", topic, "--json")
    assert kafka_command("produce", topic, "-f", "json", "-p", 1, stdin=first.out).code == 0
    template = r"%T %k %S %h\n"
    copies = [kafka_command("consume", topic, "-p", p, "-f", template).lines for p in (0, 1)]
    assert copies[0] == ["1700000000000 k 1 h=1,n=", "1700000000001  1 ", "1700000000002 gone -1 "]
    assert copies[0] == copies[1]


def test_partitions_are_kept_when_asked(kafka_command: Command, topic: str) -> None:
    assert kafka_command("produce", topic, "-f", "json", "--keep-partitions", stdin=b'{"value": "x", "partition": 1}').code == 0
    assert kafka_command("consume", topic, "-p", 1).lines == ["x"]


def test_keys_headers_and_tombstones(kafka_command: Command, topic: str) -> None:
    assert kafka_command("produce", topic, "-K", ":", "-H", "a=1", "-H", "b=2", "-p", 0, stdin=b"k1:v1\nk2:v:2\n").code == 0
    assert kafka_command("produce", topic, "-k", "k1", "--tombstone", "-p", 0).code == 0
    ended = kafka_command("consume", topic, "-f", r"%k=%v %S %h\n")
    assert ended.lines == ["k1=v1 2 a=1,b=2", "k2=v:2 3 a=1,b=2", "k1= -1 "]
    assert kafka_command("consume", topic, "-K", "|", "--null", "NULL").lines == ["k1|v1", "k2|v:2", "k1|NULL"]


def test_files_and_whole_files(kafka_command: Command, topic: str, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"a;b;")
    (tmp_path / "two").write_bytes(b"c")
    assert kafka_command("produce", topic, tmp_path / "one", tmp_path / "two", "-D", ";", "-p", 0).code == 0
    assert kafka_command("produce", topic, tmp_path / "one", "--whole-files", "-p", 0).code == 0
    assert kafka_command("consume", topic).lines == ["a", "b", "c", "a;b;"]
    assert kafka_command("produce", topic, tmp_path / "missing").code == 2


def test_json_tells_what_was_written(kafka_command: Command, topic: str) -> None:
    ended = kafka_command("produce", topic, "-p", 1, "--json", stdin=b"a\nb\n")
    assert ended.json == {"topic": topic, "records": 2, "partitions": [{"partition": 1, "first_offset": 0, "last_offset": 1}]}


def test_a_bad_line_ends_it_and_what_came_before_is_written(kafka_command: Command, topic: str) -> None:
    ended = kafka_command("produce", topic, "-f", "json", "-p", 0, stdin=b'{"value": "good"}\nbad\n{"value": "late"}\n')
    assert ended.code == 2
    assert ended.err.startswith("barnabas: record 2: not JSON")
    assert kafka_command("consume", topic).lines == ["good"]


def test_records_that_are_not_written_are_counted(kafka_command: Command, topic: str) -> None:
    ended = kafka_command("produce", topic, "-p", 77, stdin=b"a\n")
    assert ended.code == 1
    assert "UNKNOWN_PARTITION" in ended.err
    assert kafka_command("topic", "alter", topic, "--set", "max.message.bytes=100").code == 0
    ended = kafka_command("produce", topic, "-p", 0, stdin=b"x" * 1_000 + b"\n")
    assert ended.code == 1
    assert "1 of 1 records were not written" in ended.err


def test_nothing_more_is_sent_after_a_record_that_was_not_confirmed() -> None:
    class Timing:
        """Every fifth record times out."""

        taken = 0

        def produce(self, topic: str, value: bytes, key: bytes | None, **_: Any) -> None:
            self.taken += 1

        def poll(self, timeout_s: float) -> None:
            if self.taken == 5:
                sender.receive_report(KafkaError(KafkaError._MSG_TIMED_OUT), None)

        def purge(self, *, in_queue: bool, in_flight: bool) -> None:
            assert (in_queue, in_flight) == (True, False)

        def flush(self) -> int:
            return 0

    producer: Any = Timing()
    sender = Sender(producer, "t", ())

    def send_all() -> None:
        for number in range(100):
            sender.polled_s = -1e9  # the sender must poll the delivery reports now
            sender.send(Record(None, b"%d" % number, []))

    with pytest.raises(Failure, match="1 of 5 records were not written"):
        send_all()
    assert producer.taken == 5


@pytest.mark.parametrize("where", ["poll", "poll while the queue is full", "flush"])
@pytest.mark.parametrize("how", ["an exception", "no exception", "behind it"])
def test_a_producer_that_may_go_on_no_more_ends_in_one_line(where: str, how: str) -> None:
    """A fatal error of librdkafka is raised by every call that looks at the reports. Python has another text for a report that comes after
    it."""

    class Ended:
        def produce(self, *_: Any, **__: Any) -> None:
            if "full" in where:
                raise BufferError

        def poll(self, timeout_s: float) -> None:
            end()

        def flush(self) -> int:
            end()
            return 0

    def end() -> None:
        fatal = KafkaError(KafkaError._FATAL, "out of step")
        error = KafkaException(fatal)
        if how == "behind it":
            raise SystemError("returned a result with an exception set") from error
        if how == "no exception" and sys.version_info < (3, 12):  # later versions refuse this call
            ctypes.pythonapi.PyErr_SetObject(ctypes.py_object(KafkaError), ctypes.py_object(fatal))
        raise error

    producer: Any = Ended()
    sender = Sender(producer, "t", (KafkaException, SystemError))
    with pytest.raises(Failure, match=r"topic t: out of step \(the client's _FATAL\)"):
        sender.finish() if where == "flush" else sender.send(Record(None, b"v", []))


def test_what_came_before_an_error_is_written(kafka_command: Command, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\n")
    ended = kafka_command("produce", topic, "-p", 0, str(tmp_path / "a"), str(tmp_path / "missing"))
    assert (ended.code, "cannot read" in ended.err) == (2, True)
    ended = kafka_command("produce", topic, "-p", 0, stdin=b"three\n" + b"x" * 2_000_000 + b"\n")
    assert (ended.code, "too large" in ended.err) == (1, True)
    assert kafka_command("consume", topic, "-p", 0).lines == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"value": "\\ud83d"}', "value has half of a surrogate pair"),
        (b'{"value": ["\\ud83d"]}', "value has half of a surrogate pair"),
        (b'{"value": "v", "headers": {"\\ud83d": "1"}}', "a header has half of a surrogate pair"),
        (b'{"value": "v", "partition": 3000000000}', "whole numbers of 0 or more"),
        (b'{"value": "v", "timestamp": -5}', "whole numbers of 0 or more"),
    ],
)
def test_what_is_no_record_is_bad_input(kafka_command: Command, topic: str, line: bytes, reason: str) -> None:
    ended = kafka_command("produce", topic, "-f", "json", "--keep-partitions", stdin=line + b"\n")
    assert (ended.code, reason in ended.err) == (2, True), ended.err


def test_whole_standard_input_is_one_record(kafka_command: Command, topic: str) -> None:
    assert kafka_command("produce", topic, "-p", 0, "--whole-files", stdin=b"a\nb\n").code == 0
    assert kafka_command("consume", topic, "-f", "hex").lines == [b"a\nb\n".hex()]


def test_a_template_s_partition_counts(kafka_command: Command, topic: str) -> None:
    assert kafka_command("produce", topic, "-f", "%p %k %v", stdin=b"1 k v\n0 k w\n").code == 0
    assert sorted(kafka_command("consume", topic, "-f", "%p %v\\n").lines) == ["0 w", "1 v"]


def test_headers_may_have_one_name_and_keep_their_spaces(kafka_command: Command, topic: str) -> None:
    assert kafka_command("produce", topic, "-p", 0, "-H", "trace=a", "-H", "trace= b ", stdin=b"v\n").code == 0
    (found,) = kafka_command("consume", topic, "--json").lines
    assert json.loads(found)["headers"] == [{"key": "trace", "value": "a"}, {"key": "trace", "value": " b "}]


def test_a_member_goes_on_after_a_rebalance() -> None:
    stored: list[Any] = []
    consumer: Any = SimpleNamespace(
        subscribe=lambda *_, **__: None,
        store_offsets=lambda offsets: stored.extend(offsets),
        position=lambda places: [TopicPartition(each.topic, each.partition, 8) for each in places],
    )
    reader = ByGroup(consumer, ["t"], follow=False, commit=True)
    places = [TopicPartition("t", 0), TopicPartition("t", 1)]
    reader._receive_assignment(consumer, places)
    reader._receive_revocation(consumer, places)
    assert not reader.is_finished(), "what it gets next is not known"
    reader._receive_assignment(consumer, places[:1])
    taken: Any = [SimpleNamespace(topic=lambda: "t", partition=lambda p=p: p, offset=lambda: 7) for p in (0, 1)]
    reader.receive_printed(taken, {})
    assert [(each.topic, each.partition, each.offset) for each in stored] == [("t", 0, 8)]
    reader.receive_end(("t", 0))
    assert reader.is_finished()


def test_two_groups_are_bad_input(kafka_command: Command, topic: str) -> None:
    ended = kafka_command("consume", topic, "-g", "one", "-X", "group.id=two")
    assert (ended.code, "are two groups" in ended.err) == (2, True)


def test_contradictions_are_bad_input(kafka_command: Command, topic: str) -> None:
    assert kafka_command("produce", topic, "-k", "a", "-K", ":").code == 2
    assert kafka_command("produce", topic, "--tombstone").code == 2
    assert kafka_command("produce", topic, "-f", "xml").code == 2
    assert kafka_command("consume", topic, "--follow", "--to", "latest").code == 2
    assert kafka_command("consume", topic, "-g", "g", "-p", 0).code == 2
    assert kafka_command("consume", topic, "-g", "g", "--from", "5").code == 2
    assert kafka_command("consume", topic, "-p", 9).code == 1


def test_positions(kafka_command: Command, topic: str) -> None:
    lines = b"".join(b'{"value": "%d", "timestamp": %d}\n' % (n, 1_700_000_000_000 + n * 1_000) for n in range(10))
    assert kafka_command("produce", topic, "-f", "json", "-p", 0, stdin=lines).code == 0

    def values(*options: object) -> list[int]:
        return [int(line) for line in kafka_command("consume", topic, *options).lines]

    assert values("--from", "earliest") == list(range(10))
    assert values("--from", "latest") == []
    assert values("--from", 7) == [7, 8, 9]
    assert values("--from", -2, "-p", 0) == [8, 9]
    assert values("--from", "@1700000004500") == [5, 6, 7, 8, 9]
    assert values("--from", "2023-11-14T22:13:22+00:00", "-p", 0) == [2, 3, 4, 5, 6, 7, 8, 9]
    assert values("--from", "-5m") == []
    assert values("--from", 2, "--to", 4) == [2, 3]
    assert values("-n", 3) == [0, 1, 2]
    assert values("--from", 1_000) == []


def test_a_group_goes_on_where_it_stopped(kafka_command: Command, topic: str) -> None:
    assert kafka_command("produce", topic, "-p", 0, stdin=b"1\n2\n3\n").code == 0
    group = f"group-{topic}"
    assert kafka_command("consume", topic, "-g", group, "--no-commit").lines == ["1", "2", "3"]
    assert kafka_command("consume", topic, "-g", group, "-n", 2).lines == ["1", "2"]
    assert kafka_command("consume", topic, "-g", group).lines == ["3"]
    assert kafka_command("consume", topic, "-g", group).lines == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_follow_prints_what_comes_until_a_signal_ends_it(
    kafka_command: Command, topic: str, bootstrap: str, number: signal.Signals
) -> None:
    arguments = [sys.executable, "-m", "barnabas.cli", "consume", topic, "-b", bootstrap, "--follow", "-f", r"%v\n"]
    assert kafka_command("produce", topic, "-p", 0, stdin=b"before\n").code == 0
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "before\n"
            assert kafka_command("produce", topic, "-p", 1, stdin=b"after\n").code == 0
            assert process.stdout.readline() == "after\n"
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "", "")


def test_follow_takes_up_partitions_that_are_added(
    kafka_command: Command, topic: str, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From their first record on, also where it is not offset 0 and librdkafka was told to leave out what it does not find."""
    monkeypatch.setattr(consume, "LOOK_AGAIN_S", 0.0)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "auto.offset.reset": "latest"})
    reader = ByPartition(consumer, {(topic, 0): 0, (topic, 1): 0}, None, grows=True)
    reader.look_for_more()
    assert reader.open == {(topic, 0), (topic, 1)}
    assert kafka_command("topic", "alter", topic, "--partitions", 3).code == 0
    assert kafka_command("produce", topic, "-p", 2, stdin=b"gone\nlater\n").code == 0
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(topic, 2, 1)]).values()
    assert deleted.result(30).low_watermark == 1
    reader.look_for_more()
    message = consumer.poll(30)
    assert message is not None
    assert (message.partition(), message.value()) == (2, b"later")
    consumer.close()


def test_follow_goes_on_where_a_look_for_partitions_finds_no_broker(
    command: Command, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(consume, "LOOKUP_S", 0.1)
    with Broker() as broker:
        server = "-b", broker.bootstrap_servers
        assert command("topic", "create", name, "-p", 1, *server).code == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "unused", "log_level": 0})
        reader = ByPartition(consumer, {(name, 0): 0}, None, grows=True)
        broker.stop()
        reader.look_for_more()
        assert reader.open == {(name, 0)}
        broker.start()
        assert command("topic", "alter", name, "--partitions", 2, *server).code == 0

        def has_found_it() -> bool:
            reader.look_for_more()
            return (name, 1) in reader.open

        wait_until(has_found_it)
        consumer.close()


def test_a_look_for_partitions_that_fails_is_not_made_for_the_other_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume, "LOOK_AGAIN_S", 0.0)
    asked: list[str] = []
    assigned: list[TopicPartition] = []

    def list_topics(topic: str, timeout_s: float) -> Any:
        asked.append(topic)
        if len(asked) == 2:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions={0: None, 1: None})})

    consumer: Any = SimpleNamespace(assign=lambda _: None, list_topics=list_topics, incremental_assign=assigned.extend)
    reader = ByPartition(consumer, {(topic, 0): 7 for topic in "abc"}, None, grows=True)
    reader.look_for_more()
    assert len(asked) == 2
    assert [(each.topic, each.partition, each.offset) for each in assigned] == [(asked[0], 1, OFFSET_BEGINNING)]


def test_who_was_started_with_sigint_ignored_is_ended_by_sigterm_only(kafka_command: Command, topic: str, bootstrap: str) -> None:
    """As a shell does it with what it starts in the background; Kafka's console consumer goes on as well."""
    arguments = [sys.executable, "-m", "barnabas.cli", "consume", topic, "-b", bootstrap, "--follow"]
    assert kafka_command("produce", topic, "-p", 0, stdin=b"before\n").code == 0
    with subprocess.Popen(ignoring_sigint(arguments), stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "before\n"
            process.send_signal(signal.SIGINT)
            assert kafka_command("produce", topic, "-p", 1, stdin=b"after\n").code == 0
            assert process.stdout.readline() == "after\n"
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_a_member_that_is_told_to_end_leaves_its_group(kafka_command: Command, topic: str, bootstrap: str) -> None:
    group = f"left-{topic}"
    assert kafka_command("produce", topic, "-p", 0, stdin=b"a\n").code == 0
    arguments = [sys.executable, "-m", "barnabas.cli", "consume", topic, "-b", bootstrap, "-g", group, "--follow"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"a\n"
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()
    (described,) = kafka_command("group", "describe", group, "--json").json
    assert (described["state"], described["members"]) == ("empty", [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_typed_until_a_signal_is_written(
    kafka_command: Command, topic: str, bootstrap: str, number: signal.Signals
) -> None:
    arguments = [sys.executable, "-m", "barnabas.cli", "produce", topic, "-b", bootstrap, "-p", "0"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdin is not None
            process.stdin.write("typed\n")
            process.stdin.flush()
            eventually(lambda: kafka_command("consume", topic).lines == ["typed"])
            process.stdin.write("unfinished")
            process.stdin.flush()
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, err) == (1, "barnabas: interrupted\n")
    assert kafka_command("consume", topic).lines == ["typed"]


def test_a_reader_that_goes_away_ends_it(kafka_command: Command, topic: str, bootstrap: str) -> None:
    assert kafka_command("produce", topic, "-p", 0, stdin=b"line\n" * 50_000).code == 0
    arguments = [sys.executable, "-m", "barnabas.cli", "consume", topic, "-b", bootstrap]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_idempotence_and_acks(kafka_command: Command, topic: str) -> None:
    assert kafka_command("produce", topic, "-p", 0, "--idempotence", stdin=b"a\n").code == 0
    ended = kafka_command("produce", topic, "-p", 0, "--idempotence", "--acks", 1, stdin=b"a\n")
    assert (ended.code, "a client setting is refused" in ended.err) == (2, True)
    assert kafka_command("produce", topic, "-p", 0, "--acks", 1, stdin=b"b\n").code == 0
    assert kafka_command("produce", topic, "-p", 0, "--acks", 0, stdin=b"c\n").code == 0
    assert kafka_command("consume", topic, "-n", 3, "--follow").lines == ["a", "b", "c"]


def test_a_missing_topic_fails(kafka_command: Command, name: str) -> None:
    ended = kafka_command("consume", name)
    assert ended.code == 1
    assert ended.err.startswith(f"barnabas: topic {name}: ")


def test_pace_holds_records_back() -> None:
    began = time.monotonic()
    assert len(list(pace(iter([Record(None, b"x", [])] * 11), rate=100))) == 11
    assert time.monotonic() - began >= 0.1


@given(st.lists(st.binary(max_size=6).filter(lambda piece: b"<>" not in piece and not piece.endswith(b"<"))), st.booleans())
def test_split_gives_what_stands_between_delimiters(pieces: list[bytes], closed: bool) -> None:
    text = b"<>".join(pieces) + (b"<>" if closed and pieces else b"")
    expected = pieces if closed or (pieces and pieces[-1]) else pieces[:-1]
    assert list(split(BytesIO(text), b"<>")) == expected


def test_lines_keep_carriage_returns_and_empty_lines() -> None:
    assert list(split(BytesIO(b"a\r\n\nb"), b"\n")) == [b"a\r", b"", b"b"]


@pytest.fixture
def in_transactions(bootstrap: str, topic: str) -> Iterator[str]:
    """A topic whose partition 0 holds: two records, their marker, two aborted records and their marker, then an open transaction's two."""
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 0}
    producer = Producer({**settings, "transactional.id": topic})
    producer.init_transactions(30)
    for texts, end in ((("a", "b"), producer.commit_transaction), (("x", "y"), producer.abort_transaction), (("m", "n"), None)):
        producer.begin_transaction()
        for text in texts:
            producer.produce(topic, text, partition=0)
        producer.flush()
        if end is not None:
            end(30)
    yield topic
    producer.abort_transaction(30)


def test_committed_records_end_where_the_first_open_transaction_begins(kafka_command: Command, in_transactions: str) -> None:
    positions = {
        "0": ["a", "b"],
        "1": ["b"],
        "5": [],
        "6": [],
        "7": [],
        "8": [],
        "99": [],
        "latest": [],
        "-1": [],
        "-6": ["a", "b"],
    }
    for position, printed in positions.items():
        ended = kafka_command("consume", in_transactions, "-p", 0, f"--from={position}", "--timeout", 20)
        assert (position, ended.code, ended.err, ended.lines) == (position, 0, "", printed)


def test_all_records_are_read_where_the_settings_ask_for_them(kafka_command: Command, in_transactions: str) -> None:
    read = ("consume", in_transactions, "-p", 0, "-X", "isolation.level=read_uncommitted")
    assert kafka_command(*read, "--from", 4).lines == ["y", "m", "n"]
    assert kafka_command(*read, "--from", 4, "--to", 7).lines == ["y", "m"]


def test_a_group_at_the_end_of_markers_and_aborted_records_has_no_lag(kafka_command: Command, topic: str, bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for partition, end in ((0, producer.commit_transaction), (0, producer.abort_transaction), (1, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, "v", partition=partition)
        producer.flush()
        end(30)
    group = f"markers-{topic}"
    assert kafka_command("consume", topic, "-g", group).lines == ["v"]
    (described,) = kafka_command("group", "describe", group, "--json").json
    assert [(each["partition"], each["committed"], each["lag"]) for each in described["partitions"]] == [(0, 4, 0), (1, 2, 0)]


def test_a_record_that_the_topic_takes_is_sent(kafka_command: Command, topic: str) -> None:
    """librdkafka's own limit is lower."""
    assert kafka_command("produce", topic, "-p", 0, stdin=b"x" * 1_040_000).code == 0
    assert kafka_command("topic", "alter", topic, "--set", "max.message.bytes=5000000").code == 0
    assert kafka_command("produce", topic, "-p", 0, stdin=b"y" * 4_000_000).code == 0
    assert list(map(len, kafka_command("consume", topic, "-p", 0).lines)) == [1_040_000, 4_000_000]


def test_records_that_the_topic_takes_one_by_one_are_not_refused_as_a_batch(kafka_command: Command, topic: str) -> None:
    assert kafka_command("topic", "alter", topic, "--set", "max.message.bytes=300").code == 0
    lines = [f"{number} " + "x" * 50 for number in range(500)]
    ended = kafka_command("produce", topic, "-p", 0, "-H", "name=value", stdin="\n".join(lines).encode())
    assert (ended.code, ended.err) == (0, "")
    assert kafka_command("consume", topic, "-p", 0).lines == lines


def test_a_size_that_is_refused_names_the_setting_that_decided(command: Command) -> None:
    with Broker({"socket.request.max.bytes": 3_000_000, "max.message.bytes": 2_000_000}) as broker:
        server = ("-b", broker.bootstrap_servers)
        assert command("topic", "create", "t", "--config", "max.message.bytes=2000000", *server).code == 0
        for size, options, words in (
            (
                1_500_000,
                ("-X", "message.max.bytes=1200000"),
                ("the client's message.max.bytes (1200000)", "-X message.max.bytes=BYTES"),
            ),
            (2_500_000, (), ("MESSAGE_TOO_LARGE", "the topic's max.message.bytes (2000000)", "topic alter t --set")),
            (4_000_000, ("--timeout", 3), ("_MSG_TIMED_OUT", "the brokers' socket.request.max.bytes (3000000)")),
        ):
            ended = command("produce", "t", *server, *options, stdin=b"x" * size)
            assert (ended.code, ended.err.count("\n")) == (1, 1)
            assert all(word in ended.err for word in (f"a record of {size} bytes", *words)), ended.err
