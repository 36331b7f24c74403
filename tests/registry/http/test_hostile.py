"""Hostile requests over HTTP: a clear error, and meanwhile others get their answers."""

from __future__ import annotations

import http.client
import json
import threading
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from barnabas import limits
from barnabas.testing import Broker

RECURSIVE = {
    "AVRO": '{"type":"record","name":"N","fields":[{"name":"next","type":["null","N"]},{"name":"all","type":{"type":"map","values":"N"}}]}',
    "JSON": '{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a","properties":{"p":{"$ref":"#"}}}',
    "PROTOBUF": 'syntax = "proto3"; message N { N next = 1; map<string, N> all = 2; }',
}
PATTERN = json.dumps(
    {
        "type": "object",
        "properties": {"a" * 60 + "!": {"type": "integer", "pattern": "^(a+)+$"}},
        "patternProperties": {"^(a+)+$": {"type": "string"}, "(x{1000}){1000}": {}},
        "additionalProperties": False,
    }
)


class Client:
    """One connection."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=100)

    def __call__(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        given = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
        self.connection.request(method, path, body, given)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Broker() as broker:
        yield broker.schema_registry_url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    made = Client(url)
    yield made
    made.connection.close()


def schema(text: str, kind: str = "AVRO", **more: Any) -> bytes:
    return json.dumps({"schema": text, "schemaType": kind, **more}).encode()


def wide_record(fields: int) -> str:
    members = [{"name": f"f{number}", "type": ["null", "string"], "default": None} for number in range(fields)]
    return json.dumps({"type": "record", "name": "R", "fields": members})


def choices(count: int, name: str) -> str:
    return json.dumps(
        {"oneOf": [{"type": "object", "properties": {f"{name}{each}": {"type": "string"}}} for each in range(count)]}
    )


REFUSED: dict[str, tuple[bytes, int, int]] = {
    "an Avro schema of 10 MB": (schema('"' + "a" * 9_900_000 + '"'), 422, 42201),
    "a JSON Schema of 10 MB": (schema('"' + "a" * 9_900_000 + '"', "JSON"), 422, 42201),
    "a Protobuf schema of 10 MB": (schema("//" + "a" * 9_900_000, "PROTOBUF"), 422, 42201),
    "a schema of more": (schema("a" * (limits.MAX_SCHEMA_CHARACTERS + 1)), 422, 42209),
    "a body that is too large": (schema("a" * limits.MAX_SERVICE_BODY_BYTES), 413, 413),
    "100,000 brackets": (b"[" * 100_000 + b"]" * 100_000, 400, 400),
    "100,000 braces": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 400, 400),
    "100,000 braces in a field": (b'{"schema":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, 400, 400),
    "an Avro schema of 100,000 levels": (schema('{"type":"array","items":' * 100_000 + '"int"' + "}" * 100_000), 422, 42201),
    "an Avro schema of 200 levels": (schema('{"type":"array","items":' * 200 + '"int"' + "}" * 200), 422, 42201),
    "a JSON Schema of 100,000 levels": (schema('{"not":' * 100_000 + "{}" + "}" * 100_000, "JSON"), 422, 42201),
    "a Protobuf schema of 100,000 levels": (schema("message M { " * 80_000, "PROTOBUF"), 422, 42201),
    "a reference to a file": (schema('{"$ref":"file:///etc/passwd"}', "JSON"), 422, 42201),
    "a reference to a server": (schema('{"$ref":"http://127.0.0.1:1/a.json"}', "JSON"), 422, 42201),
    "an import of a file": (schema('syntax="proto3"; import "/etc/passwd"; message M {}', "PROTOBUF"), 422, 42201),
    "a schema that refers to itself": (
        schema('"x"', references=[{"name": "x", "subject": "refused", "version": -1}]), 422, 42201,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_clear_error(client: Client, name: str) -> None:
    body, status, code = REFUSED[name]
    answer = client("POST", "/subjects/refused/versions", body)
    assert (answer[0], answer[1]["error_code"]) == (status, code)
    assert 5 < len(answer[1]["message"]) < 1_000, answer[1]["message"][:2_000]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_a_compressed_body_is_not_unpacked(client: Client, encoding: str) -> None:
    bomb = zlib.compress(b'{"schema":"' + b" " * 50_000_000 + b'"}')
    status, body = client("POST", "/subjects/refused/versions", bomb, content_encoding=encoding)
    assert (status, body["error_code"]) == (415, 415)
    assert encoding in body["message"]


@pytest.mark.parametrize("kind", RECURSIVE)
def test_recursive_types_are_compared(client: Client, kind: str) -> None:
    body = schema(RECURSIVE[kind], kind)
    assert client("POST", f"/subjects/recursive-{kind}/versions?normalize=true", body)[0] == 200
    for path in (
        f"/compatibility/subjects/recursive-{kind}/versions/latest",
        f"/compatibility/subjects/recursive-{kind}/versions",
    ):
        assert client("POST", path, body) == (200, {"is_compatible": True})


def test_a_pattern_that_explodes_is_matched_in_linear_time(client: Client) -> None:
    assert client("POST", "/subjects/pattern/versions", schema(PATTERN, "JSON"))[0] == 200
    other = PATTERN.replace("integer", "string")
    assert client("POST", "/compatibility/subjects/pattern/versions/latest", schema(other, "JSON"))[0] == 200


@pytest.mark.parametrize(
    ("path", "first", "body"),
    [
        ("/subjects/wide?normalize=true", None, schema(wide_record(6_000))),
        ("/subjects/wide/versions", None, schema(wide_record(8_000))),
        ("/compatibility/subjects/wide2/versions/latest", schema(wide_record(10)), schema(wide_record(6_000))),
        ("/compatibility/subjects/choices/versions/latest", schema(choices(150, "a"), "JSON"), schema(choices(150, "b"), "JSON")),
    ],
)
def test_others_get_answers_while_a_large_schema_is_at_work(
    url: str, client: Client, path: str, first: bytes | None, body: bytes
) -> None:
    if first is not None:
        assert client("POST", f"/subjects/{path.split('/')[3]}/versions", first)[0] == 200
    made: list[int] = []
    large = Client(url)
    working = threading.Thread(target=lambda: made.append(large("POST", path, body)[0]))
    working.start()
    answered = 0
    while working.is_alive():
        assert client("GET", "/schemas/types")[0] == 200
        answered += 1
    working.join()
    large.connection.close()
    assert made[0] in {200, 404, 422}
    assert answered > 3  # without the threads there is none before the large one has ended


def test_a_client_that_stops_inside_a_body_holds_up_nobody(url: str, client: Client) -> None:
    half = Client(url)
    half.connection.putrequest("POST", "/subjects/slow/versions")
    half.connection.putheader("Content-Length", "100")
    half.connection.endheaders(b'{"schema"')
    assert client("GET", "/subjects")[0] == 200
    half.connection.close()
    assert client("GET", "/subjects/slow/versions")[0] == 404
