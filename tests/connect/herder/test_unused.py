"""Keys that do nothing are named, and so is a config that the definitions accept and no task could start with."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from barnabas.connect.api import Source
from barnabas.connect.catalog import Kind, Plugin
from barnabas.connect.herder.making import making_errors
from barnabas.connect.herder.unused import unused_keys
from barnabas.connect.http.connectors import MOST_CHARACTERS, MOST_WARNINGS, put_config
from barnabas.connect.http.surface import Surface
from barnabas.connect.levels import Levels
from barnabas.connect.references import Resolver
from barnabas.connect.worker import Requests
from barnabas.web.routing import Request

SINK = {"connector.class": "FileStreamSink", "topics": "t", "file": "/f"}
SOURCE = {"connector.class": "FileStreamSource", "topic": "t", "file": "/f"}
CAST = {"transforms": "a", "transforms.a.type": "org.apache.kafka.connect.transforms.Cast$Value", "transforms.a.spec": "x:int32"}


def test_a_key_that_a_capture_does_not_need_is_named_with_the_reason() -> None:
    config = {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector", "schema.history.internal.kafka.topic": "t",
        "include.schema.changes": "true", "nix": "1",
    }  # fmt: skip
    assert unused_keys(config, {}, Resolver({})) == {
        "schema.history.internal.kafka.topic": "the binary log has the names and types of each change",
        "include.schema.changes": "there are no records of changes of schemas",
        "nix": "io.debezium.connector.mariadb.MariaDbConnector has no such key",
    }


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (SINK, []),
        ({**SINK, "flie": "/g"}, ["flie"]),
        ({**SINK, "consumer.override.max.poll.records": "1", "value.converter.schemas.enable": "false"}, []),
        ({**SOURCE, "consumer.override.max.poll.records": "1"}, ["consumer.override.max.poll.records"]),
        ({**SOURCE, "transaction.boundary.interval.ms": "5"}, ["transaction.boundary.interval.ms"]),
        ({**SOURCE, "admin.override.retries": "5"}, ["admin.override.retries"]),
        ({**SINK, **CAST, "transforms.a.spek": "y"}, ["transforms.a.spek"]),
    ],
)
def test_keys_that_do_nothing(config: dict[str, str | None], expected: list[str]) -> None:
    assert [*unused_keys(config, {}, Resolver({}))] == expected


class Numbers(Source):
    """A source of another package, whose batches name no topic."""


def test_the_topic_of_a_source_of_another_package_has_an_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Plugin("example.Numbers", Kind.SOURCE, (), "1", lambda: Numbers)
    monkeypatch.setattr("barnabas.connect.herder.unused.plugin_of", lambda config: found)
    assert [*unused_keys({"connector.class": "example.Numbers", "topic": "t", "topics": "t"}, {}, Resolver({}))] == ["topics"]


def test_aliases_behind_a_reference_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALIASES", "a")
    resolver = Resolver({"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"})
    assert unused_keys({**SINK, **CAST, "transforms": "${env:ALIASES}"}, {}, resolver) == {}


class Writer:
    """Requests that accept any config."""

    def __init__(self, found: dict[str, str]) -> None:
        self.found = found

    def put(self, name: str, config: object) -> tuple[bool, Any]:
        return True, {"name": name, "config": config}

    def unused(self, name: str) -> dict[str, str]:
        del name
        return self.found


def warnings(found: dict[str, str]) -> list[bytes]:
    surface = Surface(cast(Requests, Writer(found)), Levels(), "http://x", "configs", None)
    try:
        request = Request("PUT", "/connectors/a/config", body=b"{}")
        response = asyncio.run(put_config(surface, request, "a"))
    finally:
        surface.close()
    assert response.status == 201
    return [value for name, value in response.headers if name == b"warning"]


def test_a_warning_is_a_header_of_one_line() -> None:
    assert warnings({"a\r\nb": "X has no such key"}) == [b'299 barnabas "a\\r\\nb has no effect: X has no such key"']


def test_warnings_are_limited() -> None:
    found = warnings({f"{number:0999}": "" for number in range(MOST_WARNINGS + 1)})
    assert (len(found), len(found[0])) == (MOST_WARNINGS, len('299 barnabas ""') + MOST_CHARACTERS)


@pytest.mark.parametrize(
    ("config", "key", "says"),
    [
        ({**CAST, "transforms.a.spec": "x:nonsense"}, "transforms.a.spec", "nonsense"),
        ({"value.converter": "FileStreamSink"}, "value.converter", "does not implement the Converter interface"),
        ({"value.converter": "JsonConverter", "value.converter.decimal.format": "roman"}, "value.converter", "decimal.format"),
    ],
)
def test_what_no_task_could_start_with(config: dict[str, str], key: str, says: str) -> None:
    found = making_errors({**SINK, **config}, {})
    assert [*found] == [key]
    assert says in found[key][0]


def test_a_config_that_can_be_made_has_no_errors() -> None:
    assert making_errors({**SINK, **CAST, "value.converter": "JsonConverter"}, {}) == {}
