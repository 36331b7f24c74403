"""The interface, request by request: each table row is a request after those before it, with its status and what the answer has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.registry.http.asking import InMemory, Row, play

A, AB, ABC = '{"a":"int"}', '{"a":"int","b":"int"}', '{"a":"int","b":"int","c":"int"}'
REGISTER = "/subjects/s/versions"


@pytest.fixture
def registry() -> Iterator[InMemory]:
    made = InMemory()
    yield made
    made.close()


def schema(text: str, **more: Any) -> dict[str, Any]:
    return {"schema": text, **more}


ROWS: dict[str, list[Row]] = {
    "an empty registry": [
        ("GET", "/", None, 200, {}),
        ("GET", "/subjects", None, 200, []),
        ("GET", "/schemas", None, 200, []),
        ("GET", "/contexts", None, 200, ["."]),
        ("GET", "/schemas/types", None, 200, ["JSON", "PROTOBUF", "AVRO"]),
        ("GET", "/config", None, 200, {"compatibilityLevel": "BACKWARD"}),
        ("GET", "/mode", None, 200, {"mode": "READWRITE"}),
        ("GET", "/schemas/ids/1", None, 404, 40403),
        ("GET", "/schemas/ids/x", None, 404, 404),
        ("GET", "/schemas/guids/x", None, 404, 40403),
        ("GET", "/nowhere", None, 404, 404),
        ("PATCH", "/subjects", None, 405, 405),
        ("GET", "/subjects/s/versions", None, 404, 40401),
        ("GET", "/subjects/s/versions/1", None, 404, 40401),
        ("DELETE", "/subjects/s", None, 404, 40401),
        ("DELETE", "/subjects/s/versions/1", None, 404, 40401),
        ("POST", "/subjects/s", schema(A), 404, 40401),
        ("POST", "/compatibility/subjects/s/versions/latest", schema(A), 200, {"is_compatible": True}),
        ("POST", "/compatibility/subjects/s/versions", schema(A), 200, {"is_compatible": True}),
        ("POST", "/compatibility/subjects/s/versions/1", schema(A), 404, 40402),
        ("GET", "/config/s", None, 404, 40408),
        ("GET", "/mode/s", None, 404, 40409),
        ("DELETE", "/config/s", None, 404, 40401),
        ("DELETE", "/mode/s", None, 404, 40401),
    ],
    "registering": [
        ("POST", REGISTER, schema(A), 200, {"id": 1, "version": 1, "schemaType": "AVRO", "schema": A}),
        ("POST", REGISTER, schema('{ "a" : "int" }'), 200, {"id": 1, "version": 1}),
        ("POST", "/subjects/t/versions", schema(A), 200, {"id": 1, "version": 1}),
        ("POST", "/subjects/u/versions", schema(A, schemaType="JSON", metadata={"properties": {"x": "y"}}), 200, {"id": 2}),
        ("POST", REGISTER, {}, 200, {"id": 1, "version": 1}),
        ("POST", REGISTER, schema(AB), 409, 40901),
        ("POST", REGISTER, schema("{"), 422, 42201),
        ("POST", "/subjects/new/versions", {}, 422, 42201),
        ("POST", REGISTER, schema(A, schemaType="XML"), 422, 42201),
        ("POST", REGISTER, schema(A, id=7), 422, 42205),
        ("POST", REGISTER, schema('{"?q":"int"}', version=5), 422, 42201),
        ("POST", REGISTER, schema(A, ruleSet={"domainRules": [{"kind": "CONDITION"}]}), 422, 42210),
        ("POST", REGISTER, b"{", 400, 400),
        ("POST", REGISTER, b"[]", 400, 400),
        ("POST", REGISTER, None, 422, 422),
        ("POST", REGISTER, {"schema": [1]}, 422, 422),
        ("POST", "/subjects/%01/versions", schema(A), 422, 42208),
        ("POST", "/subjects/__GLOBAL/versions", schema(A), 422, 42208),
        ("POST", "/subjects/a%2Fb/versions", schema(A), 200, {"id": 1}),
        ("GET", "/subjects", None, 200, ["a/b", "s", "t", "u"]),
        ("GET", "/subjects?subjectPrefix=t", None, 200, ["t"]),
        ("GET", "/subjects?offset=1&limit=2", None, 200, ["s", "t"]),
        ("GET", "/schemas/ids/1", None, 200, {"schema": A, "schemaType": "AVRO"}),
        ("GET", "/schemas/ids/1/schema", None, 200, {"a": "int"}),
        ("GET", "/schemas/ids/1/subjects", None, 200, ["a/b", "s", "t"]),
        ("GET", "/schemas/ids/2/versions", None, 200, [{"subject": "u", "version": 1}]),
        ("GET", "/schemas/ids/1?format=resolved", None, 200, {"schema": "resolved!"}),
        ("GET", "/schemas/ids/1?fetchMaxId=true", None, 200, {"maxId": 2}),
        ("POST", "/subjects/s", schema(A), 200, {"subject": "s", "id": 1, "version": 1}),
        ("POST", "/subjects/s", schema(AB), 404, 40403),
        ("GET", "/subjects/s/versions/0", None, 422, 42202),
        ("GET", "/subjects/s/versions/x", None, 422, 42202),
        ("GET", "/subjects/s/versions/-1", None, 200, {"version": 1}),
        ("GET", "/subjects/s/versions/2", None, 404, 40402),
        ("GET", "/subjects/s/versions/latest/schema", None, 200, {"a": "int"}),
    ],
    "compatibility": [
        ("POST", REGISTER, schema(AB), 200, {"id": 1}),
        ("POST", REGISTER, schema(A), 200, {"id": 2, "version": 2}),
        ("POST", REGISTER, schema(AB), 200, {"id": 1, "version": 1}),
        ("POST", "/compatibility/subjects/s/versions/latest", schema(ABC), 200, {"is_compatible": False}),
        ("PUT", "/config/s", {"compatibility": "forward"}, 200, {"compatibility": "FORWARD"}),
        ("GET", "/config/s", None, 200, {"compatibilityLevel": "FORWARD"}),
        ("POST", REGISTER, schema(ABC), 200, {"id": 3, "version": 3}),
        ("PUT", "/config/s", {"compatibility": "FULL_TRANSITIVE"}, 200, {"compatibility": "FULL_TRANSITIVE"}),
        ("POST", REGISTER, schema('{"a":"int","x":"int"}'), 409, 40901),
        ("PUT", "/config/s", {"compatibility": "odd"}, 422, 42203),
        ("PUT", "/config", {"compatibility": "NONE"}, 200, {"compatibility": "NONE"}),
        ("DELETE", "/config/s", None, 200, {"compatibilityLevel": "FULL_TRANSITIVE"}),
        ("GET", "/config/s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "NONE"}),
        ("POST", REGISTER, schema('{"x":"int"}'), 200, {"id": 4, "version": 4}),
        ("PUT", "/config", {"compatibility": "BACKWARD"}, 200, None),
        ("POST", REGISTER, schema('{"x":"int"}', schemaType="JSON"), 200, None),
        ("DELETE", "/config", None, 200, {"compatibilityLevel": "BACKWARD"}),
        ("PUT", "/config/g", {"compatibility": "BACKWARD_TRANSITIVE", "compatibilityGroup": "major"}, 200, None),
        ("POST", "/subjects/g/versions", schema(A, metadata={"properties": {"major": "1"}}), 200, None),
        ("POST", "/subjects/g/versions", schema(ABC, metadata={"properties": {"major": "2"}}), 200, {"version": 2}),
        ("POST", "/subjects/g/versions", schema(ABC, metadata={"properties": {"major": "1"}}), 409, 40901),
    ],
    "deleting": [
        ("POST", REGISTER, schema(AB), 200, {"id": 1}),
        ("POST", REGISTER, schema(A), 200, {"id": 2}),
        ("DELETE", "/subjects/s/versions/2?permanent=true", None, 404, 40407),
        ("DELETE", "/subjects/s/versions/2", None, 200, 2),
        ("DELETE", "/subjects/s/versions/2", None, 404, 40406),
        ("GET", "/subjects/s/versions", None, 200, [1]),
        ("GET", "/subjects/s/versions?deleted=true", None, 200, [1, 2]),
        ("GET", "/subjects/s/versions?deletedOnly=true", None, 200, [2]),
        ("GET", "/subjects/s/versions?deleted=true&deletedAsNegative=true", None, 200, [1, -2]),
        ("GET", "/subjects/s/versions/2", None, 404, 40402),
        ("GET", "/subjects/s/versions/2?deleted=true", None, 200, {"version": 2, "deleted": True}),
        ("GET", "/schemas/ids/2", None, 200, {"schema": A}),
        ("GET", "/schemas/ids/2/subjects", None, 200, []),
        ("GET", "/schemas/ids/2/subjects?deleted=true", None, 200, ["s"]),
        ("POST", "/subjects/s", schema(A), 404, 40403),
        ("POST", "/subjects/s?deleted=true", schema(A), 200, {"version": 2}),
        ("POST", REGISTER, schema(A), 200, {"id": 2, "version": 3}),
        ("GET", "/subjects/s/versions?deleted=true", None, 200, [1, 3]),
        ("DELETE", "/subjects/s?permanent=true", None, 404, 40405),
        ("DELETE", "/subjects/s", None, 200, [1, 3]),
        ("DELETE", "/subjects/s", None, 404, 40404),
        ("GET", "/subjects", None, 200, []),
        ("GET", "/subjects?deleted=true", None, 200, ["s"]),
        ("GET", "/subjects?deletedOnly=true", None, 200, ["s"]),
        ("DELETE", "/subjects/s?permanent=true", None, 200, [1, 3]),
        ("GET", "/subjects?deleted=true", None, 200, []),
        ("GET", "/schemas/ids/2", None, 404, 40403),
        ("POST", REGISTER, schema(ABC), 200, {"id": 3, "version": 1}),
    ],
    "modes": [
        ("PUT", "/mode", {"mode": "odd"}, 422, 42204),
        ("PUT", "/mode", {}, 422, 42204),
        ("PUT", "/mode", {"mode": "READONLY"}, 200, {"mode": "READONLY"}),
        ("POST", REGISTER, schema(A), 422, 42205),
        ("PUT", "/mode/s", {"mode": "READWRITE"}, 200, None),
        ("POST", REGISTER, schema(A), 200, None),
        ("PUT", "/mode", {"mode": "READONLY_OVERRIDE"}, 200, None),
        ("POST", REGISTER, schema(AB), 422, 42205),
        ("DELETE", "/subjects/s", None, 422, 42205),
        ("GET", "/mode/s", None, 200, {"mode": "READONLY_OVERRIDE"}),
        ("PUT", "/mode", {"mode": "READWRITE"}, 200, None),
        ("PUT", "/mode/s", {"mode": "IMPORT"}, 422, 42205),
        ("PUT", "/mode/s?force=true", {"mode": "IMPORT"}, 200, {"mode": "IMPORT"}),
        ("POST", REGISTER, schema(ABC, id=50, version=9), 200, {"id": 50, "version": 9}),
        ("POST", REGISTER, schema(A, id=50, version=10), 422, 42205),
        ("POST", REGISTER, schema(AB), 422, 42205),
        ("PUT", "/mode/t", {"mode": "IMPORT"}, 200, None),
        ("POST", "/subjects/t/versions", schema(ABC, id=50, version=2), 200, {"id": 50, "version": 2}),
        ("PUT", "/mode/t", {"mode": "FORWARD"}, 200, {"mode": "FORWARD"}),
        ("DELETE", "/mode/t", None, 200, {"mode": "FORWARD"}),
        ("GET", "/mode/t?defaultToGlobal=true", None, 200, {"mode": "READWRITE"}),
        ("POST", "/subjects/u/versions", schema('{"u":"int"}'), 200, {"id": 51}),
        ("DELETE", "/mode/s", None, 200, {"mode": "IMPORT"}),
        ("DELETE", "/mode", None, 200, {"mode": "READWRITE"}),
    ],
    "contexts": [
        ("POST", "/subjects/:.c:s/versions", schema(A), 200, {"id": 1}),
        ("POST", "/contexts/.c/subjects/t/versions", schema(AB), 200, {"id": 2}),
        ("POST", REGISTER, schema(ABC), 200, {"id": 1}),
        ("GET", "/contexts", None, 200, [".", ".c"]),
        ("GET", "/subjects", None, 200, [":.c:s", ":.c:t", "s"]),
        ("GET", "/subjects?subjectPrefix=:*:t", None, 200, [":.c:t"]),
        ("GET", "/subjects?subjectPrefix=:.c:", None, 200, [":.c:s", ":.c:t"]),
        ("GET", "/subjects?subjectPrefix=", None, 200, ["s"]),
        ("GET", "/contexts/.c/subjects", None, 200, [":.c:s", ":.c:t"]),
        ("GET", "/contexts/c/subjects/t/versions", None, 200, [1]),
        ("GET", "/contexts/.c/schemas/ids/2", None, 200, {"schema": AB}),
        ("GET", "/schemas/ids/2", None, 404, 40403),
        ("GET", "/schemas/ids/2?subject=:.c:", None, 200, {"schema": AB}),
        ("GET", "/schemas/ids/2?subject=t", None, 200, {"schema": AB}),
        ("GET", "/subjects/t/versions/1", None, 200, {"subject": ":.c:t"}),
        ("GET", "/subjects/:.:s/versions/1", None, 200, {"subject": "s"}),
        ("PUT", "/contexts/.c/config", {"compatibility": "NONE"}, 200, None),
        ("GET", "/config/:.c:", None, 200, {"compatibilityLevel": "NONE"}),
        ("GET", "/config/:.c:t?defaultToGlobal=true", None, 200, {"compatibilityLevel": "NONE"}),
        ("GET", "/config/t?defaultToGlobal=true", None, 200, {"compatibilityLevel": "BACKWARD"}),
        ("PUT", "/mode/:.c:", {"mode": "READONLY"}, 200, None),
        ("POST", "/subjects/:.c:s/versions", schema('{"new":"int"}'), 422, 42205),
        ("PUT", "/contexts/.c/mode", {"mode": "READWRITE"}, 200, None),
        ("GET", "/contexts/a:b/subjects", None, 400, 400),
        ("DELETE", "/contexts/.c", None, 422, 42211),
        ("DELETE", "/subjects/:.c:s", None, 200, [1]),
        ("DELETE", "/subjects/:.c:t", None, 200, [1]),
        ("DELETE", "/subjects/:.c:s?permanent=true", None, 200, [1]),
        ("DELETE", "/subjects/:.c:t?permanent=true", None, 200, [1]),
        ("DELETE", "/contexts/.c", None, 204, None),
        ("GET", "/contexts", None, 200, ["."]),
    ],
    "references": [
        ("POST", "/subjects/base/versions", schema(A), 200, {"id": 1}),
        ("POST", REGISTER, schema(AB, references=[{"name": "b", "subject": "no", "version": 1}]), 422, 42201),
        ("POST", REGISTER, schema(AB, references=[{"name": "b"}]), 422, 42201),
        ("POST", REGISTER, schema(AB, references=[{"name": "b", "subject": "base", "version": 1}]), 200, {"id": 2}),
        (
            "POST",
            "/subjects/t/versions",
            schema(AB, references=[{"name": "b", "subject": "base", "version": -1}]),
            200,
            {"id": 3},
        ),
        ("POST", "/subjects/u/versions", schema(AB), 200, {"id": 4}),
        ("GET", "/subjects/base/versions/1/referencedby", None, 200, [2, 3]),
        ("DELETE", "/subjects/base/versions/1", None, 422, 42206),
        ("DELETE", "/subjects/base", None, 422, 42206),
        ("DELETE", "/subjects/t", None, 200, [1]),
        ("DELETE", "/subjects/s", None, 200, [1]),
        ("GET", "/subjects/base/versions/1/referencedby", None, 200, []),
        ("DELETE", "/subjects/base", None, 200, [1]),
    ],
    "metadata, rules, tags and defaults": [
        ("PUT", "/config/s", {"defaultMetadata": {"properties": {"owner": "x"}}}, 200, None),
        (
            "POST",
            REGISTER,
            schema(A, ruleSet={"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL"}]}),
            200,
            {"id": 1},
        ),
        ("GET", "/subjects/s/versions/1", None, 200, {"metadata": {"properties": {"owner": "x"}}}),
        ("GET", "/subjects/s/metadata?key=owner&value=x", None, 200, {"version": 1}),
        ("GET", "/subjects/s/metadata?key=owner&value=y", None, 404, 40403),
        ("POST", REGISTER, schema(A), 200, {"id": 1, "version": 1}),
        ("POST", REGISTER, schema(A, version=-1), 200, {"version": 2}),
        (
            "POST",
            "/subjects/s/versions/latest/tags",
            {"tagsToAdd": [{"schemaEntity": {"entityPath": ".a", "entityType": "sr_field"}, "tags": ["PII"]}]},
            200,
            {"version": 3, "schema": '{"a":"int#PII"}'},
        ),
        (
            "GET",
            "/subjects/s/versions/3?findTags=*",
            None,
            200,
            {"schemaTags": [{"schemaEntity": {"entityPath": ".a", "entityType": "sr_field"}, "tags": ["PII"]}]},
        ),
        ("POST", "/subjects/no/versions/1/tags", {"tagsToAdd": []}, 404, 40401),
        ("PUT", "/config/nick", {"alias": "s"}, 200, {"alias": "s"}),
        ("GET", "/subjects/nick/versions", None, 200, [1, 2, 3]),
        ("PUT", "/config/nick", {"alias": None}, 200, {}),
        ("GET", "/subjects/nick/versions", None, 404, 40401),
        ("PUT", "/config/n", {"normalize": True}, 200, {"normalize": True}),
        ("POST", "/subjects/n/versions", schema('{"b":"int","a":"int"}'), 200, {"schema": AB}),
        ("POST", "/subjects/n", schema('{"b":"int","a":"int"}'), 200, {"version": 1}),
        ("PUT", "/config/v", {"validateFields": True}, 200, None),
        ("POST", "/subjects/v/versions", schema(A, metadata={"properties": {"confluent:reserved": "a"}}), 409, 40901),
    ],
    "the registry itself": [
        ("GET", "/v1/metadata/version", None, 200, {"version": "8.3.0"}),
        (
            "GET",
            "/v1/metadata/id",
            None,
            200,
            {"scope": {"path": [], "clusters": {"kafka-cluster": "cluster", "schema-registry-cluster": "schema-registry"}}},
        ),
    ],
}


@pytest.mark.parametrize("name", ROWS)
def test_the_interface(registry: InMemory, name: str) -> None:
    play(registry, ROWS[name])


def test_a_restart_shows_the_same(registry: InMemory) -> None:
    for rows in ROWS.values():
        for method, url, body, _, _ in rows:
            registry(method, url, body)
    again = InMemory(registry.store.log)
    for url in ("/schemas?deleted=true", "/subjects?deleted=true", "/contexts", "/config", "/mode", "/schemas/ids/1"):
        assert again("GET", url) == registry("GET", url)
    assert again.registry.state.configs == registry.registry.state.configs
    again.close()


OLD = ("{oldSchemaVersion: 1}", "{oldSchema: '" + A + "'}")


def missing(which: str, name: str) -> str:
    return f"{{errorType:'MISSING', description:'the {which} schema needs {name}'}}"


@pytest.mark.parametrize(
    ("level", "text", "expected"),
    [
        ("BACKWARD", AB, (missing("new", "b"), *OLD)),
        ("FORWARD", '{"b":"int"}', (missing("old", "a"), *OLD)),
        ("FULL", '{"b":"int"}', (missing("old", "a"), missing("new", "b"), *OLD)),
        ("FULL", '{"?b":"int"}', (missing("old", "a"),)),
        ("FULL_TRANSITIVE", '{"b":"int"}', (missing("old", "a"), missing("new", "b"), *OLD)),
    ],
)
def test_messages_of_incompatible_schemas(registry: InMemory, level: str, text: str, expected: tuple[str, ...]) -> None:
    registry("PUT", "/config", {"compatibility": level})
    registry("POST", REGISTER, schema(A))
    refused = registry("POST", REGISTER, schema(text))
    messages = [*expected, f"{{validateFields: 'false', compatibility: '{level}'}}"]
    told = 'Schema being registered is incompatible with an earlier schema for subject "s", details: '
    assert refused.body == {"error_code": 40901, "message": f"{told}[{', '.join(messages)}]"}
    checked = registry("POST", "/compatibility/subjects/s/versions/latest?verbose=true", schema(text))
    assert checked.body == {"is_compatible": False, "messages": messages}


@pytest.mark.parametrize(
    ("accept", "status", "media"),
    [
        ("application/json", 200, "application/json"),
        ("application/vnd.schemaregistry+json; q=0.5, text/html", 200, "application/vnd.schemaregistry+json"),
        ("application/vnd.schemaregistry.v1+json, application/json; q=0.9", 200, "application/vnd.schemaregistry.v1+json"),
        ("*/*", 200, "application/vnd.schemaregistry.v1+json"),
        ("*", 200, "application/vnd.schemaregistry.v1+json"),
        ("text/html, *; q=.2, */*; q=.2", 200, "application/vnd.schemaregistry.v1+json"),
        ("*/anything", 200, "application/vnd.schemaregistry.v1+json"),
        ("application/*", 200, "application/vnd.schemaregistry.v1+json"),
        ("text/*", 406, "application/vnd.schemaregistry.v1+json"),
        ("text/html", 406, "application/vnd.schemaregistry.v1+json"),
        ("application/vnd.schemaregistry.v2+json", 406, "application/vnd.schemaregistry.v1+json"),
    ],
)
def test_media_types(registry: InMemory, accept: str, status: int, media: str) -> None:
    answer = registry("GET", "/subjects", accept=accept)
    assert (answer.status, answer.media) == (status, media)


def test_a_body_of_another_type(registry: InMemory) -> None:
    assert registry("POST", REGISTER, schema(A), content_type="text/xml").status == 415
    assert registry("POST", REGISTER, schema(A), content_type="application/json; charset=utf-8").status == 200


def test_a_guid_names_the_content_in_all_contexts(registry: InMemory) -> None:
    guid = registry("POST", REGISTER, schema(A)).body["guid"]
    registry("POST", "/subjects/:.c:s/versions", schema(AB))
    registry("POST", "/subjects/:.c:t/versions", schema(A))
    assert registry("GET", f"/schemas/guids/{guid}").body["schema"] == A
    assert registry("GET", f"/schemas/guids/{guid}/ids").body == [{"context": ".", "id": 1}, {"context": ".c", "id": 2}]
