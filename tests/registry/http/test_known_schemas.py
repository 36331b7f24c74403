"""Schemas that count as registered already, with the real formats: rows of requests as in `test_interface.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.registry.formats.table import format_of
from tests.registry.http.asking import InMemory, Row, play

S, VERSIONS = "/subjects/s", "/subjects/s/versions"


@pytest.fixture
def registry() -> Iterator[InMemory]:
    made = InMemory(formats=format_of)
    made("PUT", "/config", {"compatibility": "NONE"})
    yield made
    made.close()


def record(name: str = "R", *fields: dict[str, Any], **more: Any) -> str:
    given = list(fields) or [{"name": "f", "type": "string"}]
    return json.dumps({"type": "record", "name": name, **more, "fields": given}, separators=(",", ":"))


def body(schema: str, **more: Any) -> dict[str, Any]:
    return {"schema": schema, **more}


def properties(**values: str) -> dict[str, Any]:
    return {"properties": values}


def tagged(version: int) -> dict[str, Any]:
    return {"properties": {"confluent:version": str(version)}}


R = record()
MINE = properties(mine="yes")
INNER = record("Inner", namespace="inner")
OUTER = record("Outer", {"name": "i", "type": "inner.Inner"})
WHOLE = record("Outer", {"name": "i", "type": json.loads(INNER)})
TO_INNER = [{"name": "inner.Inner", "subject": "inner", "version": 1}]
DECIMAL = record("D", {"name": "d", "type": {"type": "bytes", "scale": 4, "precision": 17, "logicalType": "decimal"}})
BAD_DEFAULT = record("R", {"name": "f", "type": "string", "default": None})
BAD_NAMESPACE = record("R", namespace="a-b.c")
ROWS: dict[str, list[Row]] = {
    "the property that tells the version": [
        ("POST", VERSIONS, body(R), 200, {"id": 1, "version": 1}),
        ("POST", VERSIONS, body(R, version=-1), 200, {"id": 1, "version": 1}),
        ("POST", VERSIONS, body(R, version=2), 200, {"id": 2, "version": 2, "metadata": tagged(2)}),
        ("POST", VERSIONS, body(R, version=-1), 200, {"id": 2}),
        ("POST", S, body(R), 200, {"version": 1}),
        ("POST", S, body(R, metadata=tagged(1)), 200, {"version": 1}),
        ("POST", S, body(R, metadata=tagged(2)), 200, {"version": 2}),
        ("POST", S, body(R, metadata=tagged(3)), 404, 40403),
        ("DELETE", f"{VERSIONS}/1", None, 200, 1),
        ("POST", S, body(R), 200, {"version": 2}),
        ("POST", VERSIONS, body(R), 200, {"id": 2}),
        ("POST", VERSIONS, body(R, version=2), 422, 42201),
        ("POST", VERSIONS, body(R, version=3), 200, {"id": 3}),
        ("POST", VERSIONS, body(R, metadata=tagged(-1)), 200, {"id": 4, "metadata": tagged(4)}),
        ("POST", VERSIONS, body(R, metadata=tagged(2)), 200, {"id": 2}),
        ("POST", VERSIONS, body(R, metadata={}), 200, {"id": 4}),
        ("POST", VERSIONS, body(R, metadata=MINE), 200, {"id": 5, "metadata": MINE}),
        ("POST", VERSIONS, body(R, version=-1), 200, {"id": 6}),
        ("DELETE", f"{VERSIONS}/5", None, 200, 5),
        ("POST", S, body(R, metadata=MINE), 200, {"version": 6}),
        ("POST", S, body(record("R", doc="other"), version=-1), 404, 40403),
    ],
    "metadata of the version before": [
        ("POST", VERSIONS, body(R, metadata=MINE), 200, {"id": 1}),
        ("POST", VERSIONS, body(R), 200, {"id": 1}),
        ("POST", S, body(R), 200, {"version": 1}),
    ],
    "referred types in the text": [
        ("POST", "/subjects/inner/versions", body(INNER), 200, {"id": 1}),
        ("POST", VERSIONS, body(OUTER, references=TO_INNER), 200, {"id": 2}),
        ("POST", S, body(WHOLE), 200, {"version": 1, "schema": OUTER}),
        ("POST", VERSIONS, body(WHOLE), 200, {"id": 2}),
        ("POST", S, body(WHOLE, metadata=MINE), 404, 40403),
        ("POST", S, body(OUTER, references=[{**TO_INNER[0], "version": -1}]), 200, {"version": 1}),
        ("POST", S, body(record("Other", {"name": "i", "type": json.loads(INNER)})), 404, 40403),
    ],
    "the order of references in the normal form": [
        ("POST", "/subjects/a/versions", body(record("A")), 200, {"id": 1}),
        ("POST", "/subjects/b/versions", body(record("B")), 200, {"id": 2}),
        *(
            (
                "POST",
                f"{VERSIONS}?normalize=true",
                body(
                    record("R", {"name": "a", "type": "A"}, {"name": "b", "type": "B"}),
                    references=[{"name": name.upper(), "subject": name, "version": 1} for name in order],
                ),
                200,
                {"id": 3, "version": 1},
            )
            for order in ("ab", "ba", "aba")
        ),
    ],
    "references to deleted versions": [
        ("POST", "/subjects/:.c:inner/versions", body(INNER), 200, {"id": 1}),
        ("POST", "/subjects/:.c:s/versions", body(OUTER, references=TO_INNER), 200, {"id": 2}),
        (
            "GET",
            "/subjects/:.c:s/versions/1?referenceFormat=qualified",
            None,
            200,
            {"references": [{**TO_INNER[0], "subject": ":.c:inner"}]},
        ),
        (
            "GET",
            "/schemas/ids/2?subject=:.c:s&referenceFormat=qualified",
            None,
            200,
            {"references": [{**TO_INNER[0], "subject": ":.c:inner"}]},
        ),
        ("GET", "/subjects/:.c:s/versions/1", None, 200, {"references": TO_INNER}),
        ("DELETE", "/subjects/:.c:s/versions/1", None, 200, 1),
        ("DELETE", "/subjects/:.c:inner/versions/1", None, 200, 1),
        ("POST", "/subjects/:.c:s/versions", body(OUTER, references=TO_INNER), 422, 42201),
        ("POST", "/subjects/:.c:s?deleted=true", body(OUTER, references=TO_INNER), 200, {"version": 1}),
        ("DELETE", "/subjects/:.c:inner/versions/1?permanent=true", None, 200, 1),
        ("POST", "/subjects/:.c:s/versions", body(OUTER, references=TO_INNER), 422, 42201),
    ],
    "a reference that another context cannot resolve": [
        ("POST", VERSIONS, body(R), 200, None),
        ("POST", "/subjects/:.c:s/versions", body(R), 200, None),
        ("POST", S, body(record("O"), references=[{"name": "R", "subject": "s", "version": 1}]), 404, 40403),
        ("DELETE", VERSIONS + "/1", None, 200, 1),
        ("POST", S, body(R), 200, {"subject": ":.c:s"}),
    ],
    "importing one schema under several ids": [
        ("PUT", "/mode", {"mode": "IMPORT"}, 200, None),
        ("POST", VERSIONS, body(DECIMAL, id=100, version=1), 200, {"id": 100, "version": 1}),
        ("POST", VERSIONS, body(DECIMAL, id=200, version=2), 200, {"id": 200, "version": 2}),
        ("POST", "/subjects/t/versions", body(DECIMAL, id=300, version=1), 200, {"id": 300}),
        ("GET", f"{VERSIONS}/2", None, 200, {"id": 200, "schema": DECIMAL}),
        ("POST", S, body(DECIMAL), 200, {"version": 2, "id": 200}),
        ("POST", "/subjects/t", body(DECIMAL), 200, {"version": 1, "id": 300}),
        ("POST", "/subjects/t/versions", body(DECIMAL), 200, {"id": 300}),
        ("POST", "/subjects/u/versions", body(DECIMAL), 422, 42205),
        ("POST", "/subjects/t/versions", body(R, id=300, version=2), 422, 42205),
        ("POST", "/subjects/t/versions", body(DECIMAL, id=300, version=4), 200, {"version": 4}),
        ("POST", "/subjects/t/versions", body(DECIMAL, id=300, version=1), 200, {"version": 1}),
        ("GET", "/subjects/t/versions", None, 200, [1, 4]),
    ],
    "registering again while nothing may be written": [
        ("POST", VERSIONS, body(R), 200, {"id": 1}),
        ("PUT", "/mode", {"mode": "READONLY"}, 200, None),
        ("POST", VERSIONS, body(R), 200, {"id": 1}),
        ("POST", VERSIONS, body(DECIMAL), 422, 42205),
        ("PUT", "/config", {"compatibility": "FULL"}, 422, 42205),
        ("DELETE", "/config", None, 422, 42205),
        ("PUT", "/mode", {"mode": None}, 200, {}),
        ("GET", "/mode", None, 200, {"mode": "READWRITE"}),
        ("PUT", "/mode/:.__GLOBAL:", {"mode": "READONLY"}, 200, None),
        ("GET", "/mode", None, 200, {"mode": "READWRITE"}),
        ("GET", "/mode?defaultToGlobal=true", None, 200, {"mode": "READONLY"}),
        ("POST", VERSIONS, body(DECIMAL), 422, 42205),
    ],
    "names and defaults": [
        ("POST", VERSIONS, body(BAD_DEFAULT), 422, 42201),
        ("POST", VERSIONS, body(BAD_NAMESPACE), 422, 42201),
        ("POST", "/compatibility/subjects/s/versions/latest", body(BAD_DEFAULT), 422, 42201),
        ("POST", "/compatibility/subjects/s/versions?verbose=true", body(BAD_DEFAULT), 200, {"is_compatible": False}),
        ("PUT", "/config", {"validateNames": False}, 200, {"compatibility": "NONE", "validateNames": False}),
        ("POST", VERSIONS, body(BAD_NAMESPACE), 200, {"id": 1}),
    ],
    "modes removed with those below": [
        ("PUT", "/mode/:.c:a", {"mode": "READONLY"}, 200, None),
        ("DELETE", "/mode/:.c:", None, 404, 40401),
        ("DELETE", "/mode/:.c:?recursive=true", None, 200, {}),
        ("GET", "/mode/:.c:a", None, 404, 40409),
    ],
}


@pytest.mark.parametrize("name", ROWS)
def test_known_schemas(registry: InMemory, name: str) -> None:
    play(registry, ROWS[name])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_encodings_of_bodies(registry: InMemory, encoding: str) -> None:
    assert registry("PUT", "/config/s", '{"compatibility": "FULL"}'.encode(encoding)).body == {"compatibility": "FULL"}


@pytest.mark.parametrize(
    ("url", "listed"),
    [
        ("/schemas?subjectPrefix=nick", []),
        ("/schemas?subjectPrefix=nick&aliases=true", [("target", ["nick1", "nick2"])]),
        ("/schemas?subjectPrefix=oth&aliases=true", [("other", None)]),
        ("/schemas?subjectPrefix=:*:&aliases=true", [("other", None), ("target", [":.c:nick/3", "nick1", "nick2"])]),
        ("/contexts/.c/schemas?aliases=true", [("target", [":.c:nick/3"])]),
        ("/contexts/.c/schemas", []),
    ],
)
def test_lists_with_aliases(registry: InMemory, url: str, listed: list[tuple[str, list[str] | None]]) -> None:
    for subject in ("target", "other"):
        registry("POST", f"/subjects/{subject}/versions", body(R))
    for name, target in (("nick2", "target"), ("nick1", "target"), (":.c:nick%2F3", ":.:target")):
        registry("PUT", f"/config/{name}", {"alias": target})
    assert [(each["subject"], each.get("aliases")) for each in registry("GET", url).body] == listed
