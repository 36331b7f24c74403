"""kcat (Debian package of that name)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.differential.plain import plain
from tests.differential.script.common import fetch
from tests.differential.wire import Line
from tests.interop.conftest import Server
from tests.interop.messages import BASE_TIME_MS, CODECS, MEGABYTE

Unique = Callable[[str], str]
FETCH_VERSION = 11
WAIT_S = 60


def kcat(server: Server, *arguments: str, data: bytes = b"") -> str:
    program = shutil.which("kcat")
    assert program is not None, "these tests need kcat (Debian package: kcat)"
    done = subprocess.run(
        [program, "-b", server.bootstrap, *arguments], input=data, capture_output=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def codecs_stored(server: Server, topic: str) -> set[str]:
    """The codecs of a topic's batches. A client that mistrusts the broker silently compresses nothing."""
    host, _, port = server.bootstrap.rpartition(":")
    with Line((host, int(port))) as line:
        line.send(fetch(topic), FETCH_VERSION)
        answer = plain(line.receive(), FETCH_VERSION)
    return {batch["codec"] for batch in answer["responses"][0]["partitions"][0]["records"]}


@pytest.mark.parametrize("codec", CODECS)
def test_produce_and_consume(codec: str, server: Server, unique: Unique) -> None:
    topic = unique("topic")
    value = "value " * 40  # each value shrinks with every codec, even alone in a batch
    lines = "".join(f"key{index}:{value}{index}\n" for index in range(100)).encode()
    kcat(server, "-P", "-t", topic, "-K:", "-z", codec, "-X", "linger.ms=200", "-H", "one=1", "-H", "two=2", data=lines)
    found = kcat(server, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%k:%s %h\n")
    assert found.splitlines() == [f"key{index}:{value}{index} one=1,two=2" for index in range(100)]
    assert codecs_stored(server, topic) == {codec}


def test_tombstones_and_json(server: Server, unique: Unique) -> None:
    topic = unique("topic")
    kcat(server, "-P", "-t", topic, "-K:", "-Z", data=b"gone:\nthere:1\n")
    found = [json.loads(line) for line in kcat(server, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J").splitlines()]
    assert [(each["key"], each["payload"], each["offset"]) for each in found] == [("gone", None, 0), ("there", "1", 1)]


def test_one_megabyte(server: Server, unique: Unique) -> None:
    topic = unique("topic")
    kcat(server, "-P", "-t", topic, "-D", "|", "-X", "message.max.bytes=2000000", data=MEGABYTE)
    assert kcat(server, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%S\n").strip() == str(len(MEGABYTE))


def test_offsets_by_time_and_from_the_end(server: Server, unique: Unique) -> None:
    topic = unique("topic")
    kcat(server, "-P", "-t", topic, data=b"a\nb\nc\nd\n")
    assert kcat(server, "-C", "-t", topic, "-o", "-2", "-e", "-q").split() == ["c", "d"]
    assert kcat(server, "-C", "-t", topic, "-o", "1", "-c", "1", "-q").split() == ["b"]
    assert kcat(server, "-C", "-t", topic, "-o", f"s@{BASE_TIME_MS}", "-e", "-q").split() == ["a", "b", "c", "d"]
    assert kcat(server, "-Q", "-t", f"{topic}:0:{BASE_TIME_MS}").split() == [topic, "[0]", "offset", "0"]


def test_a_group(server: Server, unique: Unique) -> None:
    topic, group = unique("topic"), unique("group")
    kcat(server, "-P", "-t", topic, data=b"a\nb\n")
    first = kcat(server, "-G", group, "-X", "auto.offset.reset=earliest", "-c", "2", "-q", topic)
    assert first.split() == ["a", "b"]
    kcat(server, "-P", "-t", topic, data=b"c\n")
    assert kcat(server, "-G", group, "-X", "auto.offset.reset=earliest", "-c", "1", "-q", topic).split() == ["c"]


def test_idempotent_producer(server: Server, unique: Unique) -> None:
    topic = unique("topic")
    lines = [str(index) for index in range(1000)]
    kcat(server, "-P", "-t", topic, "-X", "enable.idempotence=true", data="\n".join(lines).encode())
    assert kcat(server, "-C", "-t", topic, "-o", "beginning", "-e", "-q").split() == lines


def test_metadata(server: Server, unique: Unique) -> None:
    topic = unique("topic")
    kcat(server, "-P", "-t", topic, data=b"a\n")
    found = json.loads(kcat(server, "-L", "-J"))
    assert topic in {each["topic"] for each in found["topics"]}
    assert len(found["brokers"]) == 1
