"""Associations of subjects with topics: rows of requests as in `test_interface.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.registry.http.asking import InMemory, Row, play

A, B = '{"a":"int"}', '{"b":"int"}'


@pytest.fixture
def registry() -> Iterator[InMemory]:
    made = InMemory()
    for subject, text in (("s", A), ("t", B)):
        made("POST", f"/subjects/{subject}/versions", {"schema": text})
    yield made
    made.close()


def item(subject: str | None = "s", kind: str | None = "key", lifecycle: str | None = "WEAK", **more: Any) -> dict[str, Any]:
    fields = {"subject": subject, "associationType": kind, "lifecycle": lifecycle, "frozen": False, **more}
    return {name: value for name, value in fields.items() if value is not None}


def request(*items: dict[str, Any], resource: str | None = "1", **more: Any) -> dict[str, Any]:
    fields = {"resourceName": f"topic{resource or ''}", "resourceNamespace": "k", "resourceId": resource}
    return {**fields, "resourceType": "topic", "associations": list(items), **more}


KEY, VALUE = item(), item("t", "value", "STRONG")
FROZEN = item(None, "key", "STRONG", frozen=True, schema={"schema": A})
RESOURCE = {"resourceName": "topic1", "resourceNamespace": "k", "resourceId": "1", "resourceType": "topic"}

ROWS: dict[str, list[Row]] = {
    "what a request holds": [
        ("POST", "/associations", request(KEY, resource=None), 422, 42212),
        ("POST", "/associations", request(), 422, 42212),
        ("POST", "/associations", request(KEY, resourceName=""), 422, 42212),
        ("POST", "/associations", request(KEY, resourceNamespace=None), 422, 42212),
        ("POST", "/associations", request(KEY, resourceType="group"), 422, 42212),
        ("POST", "/associations", request(KEY, KEY), 422, 42212),
        ("POST", "/associations", request(item(kind="both")), 422, 42212),
        ("POST", "/associations", request(item(lifecycle="LONG")), 422, 42212),
        ("POST", "/associations", request(item(subject="\1")), 422, 42212),
        ("POST", "/associations", request(item(schema={"schema": A})), 422, 42212),
        ("POST", "/associations", request(item(frozen=True)), 422, 42212),
        ("POST", "/associations", request(item(lifecycle="STRONG", schema={"schema": A})), 422, 42212),
        ("POST", "/associations", request(item(lifecycle="STRONG", frozen=True), VALUE), 422, 42212),
        ("PUT", "/associations/resources/2", request(KEY), 422, 42212),
        ("POST", "/associations:batchGet", {"requests": []}, 422, 42212),
        ("POST", "/associations:batchMutate", {}, 422, 42212),
        ("POST", "/associations", request(item("none")), 409, 40907),
        ("DELETE", "/associations/resources/1", None, 404, 40410),
    ],
    "creating, changing and deleting": [
        ("POST", "/associations?dryRun=true", request(KEY, VALUE, resource=None), 200, {"resourceName": "topic"}),
        ("POST", "/associations", request(KEY, VALUE), 200, {**RESOURCE, "associations": [KEY, VALUE]}),
        ("POST", "/associations", request(KEY), 200, {"associations": [KEY]}),
        ("POST", "/associations", request(item(lifecycle="STRONG")), 409, 40903),
        ("GET", "/associations/subjects/s?resourceType=topic&lifecycle=WEAK", None, 200, None),
        ("GET", "/associations/subjects/s?lifecycle=STRONG", None, 200, []),
        ("GET", "/associations/resources/k/topic1?associationType=other", None, 200, []),
        ("PUT", "/associations/resources/1?dryRun=true", request(item(lifecycle="STRONG")), 200, RESOURCE),
        ("PUT", "/associations/resources/1", request(item(lifecycle="STRONG")), 200, None),
        ("PUT", "/associations/resources/1", request(item("t")), 409, 40903),
        ("PUT", "/associations/resources/1", request(item(lifecycle="STRONG", frozen=True)), 422, 42212),
        ("PUT", "/associations/resources/1", request(item(lifecycle=None)), 200, {"associations": [item(lifecycle="STRONG")]}),
        ("DELETE", "/associations/resources/1?associationType=key&dryRun=true", None, 204, None),
        ("DELETE", "/associations/resources/1?associationType=key", None, 204, None),
        ("GET", "/associations/subjects/s", None, 200, []),
        ("GET", "/subjects?deleted=true", None, 200, ["s", "t"]),
        ("DELETE", "/associations/resources/1?cascadeLifecycle=true", None, 204, None),
        ("GET", "/subjects?deleted=true", None, 200, ["s"]),
    ],
    "owners of a subject": [
        ("POST", "/associations", request(KEY), 200, None),
        ("POST", "/associations", request(item(kind="value"), resource="2"), 200, None),
        ("POST", "/associations", request(item(kind="value", lifecycle="STRONG"), resource="3"), 409, 40904),
        ("POST", "/associations", request(VALUE), 200, None),
        ("POST", "/associations", request(item("t"), resource="2"), 409, 40905),
    ],
    "frozen ones": [
        ("POST", "/associations", request(item(None, "key", "STRONG", frozen=True)), 422, 42212),
        ("POST", "/associations", request({**FROZEN, "subject": "s"}), 422, 42212),
        ("POST", "/associations", request(FROZEN, {**FROZEN, "associationType": "value", "schema": {"schema": B}}), 200, None),
        ("GET", "/subjects/:.k:topic1-key/versions/1", None, 200, {"id": 1, "schema": A}),
        ("GET", "/subjects/:.k:topic1-value/versions/1", None, 200, {"id": 2, "schema": B}),
        ("PUT", "/associations/resources/1", request({"associationType": "key", "lifecycle": "WEAK"}), 409, 40908),
        ("PUT", "/associations/resources/1", request({"associationType": "key", "frozen": False}), 409, 40908),
        ("DELETE", "/associations/resources/1?associationType=key", None, 409, 40908),
        ("DELETE", "/associations/resources/1?associationType=key&cascadeLifecycle=true", None, 204, None),
        ("GET", "/subjects/:.k:topic1-key/versions", None, 404, 40401),
    ],
    "batches": [
        ("POST", "/associations", request(KEY), 200, None),
        (
            "POST",
            "/associations:batchMutate",
            {
                "requests": [
                    request(
                        {**VALUE, "opType": "CREATE"}, {**KEY, "opType": "UPSERT"}, {"opType": "DELETE", "associationType": "key"}
                    ),
                    request({**VALUE, "opType": "CREATE"}, resource="2"),
                    request({"opType": "DELETE", "associationType": "key"}, resource="3"),
                    request({**KEY, "opType": "RENAME"}, resource="3"),
                ]
            },
            207,
            None,
        ),
        ("GET", "/associations/resources/1?associationType=key&associationType=value", None, 200, None),
        ("GET", "/associations/subjects/s", None, 200, []),
        (
            "POST",
            "/associations:batchGet",
            {
                "requests": [
                    {"resourceId": "1"},
                    {"resourceId": "1", "lifecycle": "WEAK"},
                    {"resourceName": "x", "resourceNamespace": "k"},
                ]
            },
            207,
            {
                "results": [
                    {"result": {**RESOURCE, "associations": [VALUE]}},
                    {"result": {"resourceId": "1", "resourceType": "topic"}},
                    {"result": {"resourceName": "x", "resourceNamespace": "k", "resourceType": "topic"}},
                ]
            },
        ),
    ],
}


@pytest.mark.parametrize("name", ROWS)
def test_associations(registry: InMemory, name: str) -> None:
    play(registry, ROWS[name])


def test_the_answers_of_a_batch(registry: InMemory) -> None:
    steps = [{**VALUE, "opType": "CREATE"}, {**KEY, "opType": "CREATE"}, {"opType": "DELETE", "associationType": "key"}]
    body = {"requests": [request(*steps), request({**VALUE, "opType": "CREATE"}, resource="2")]}
    done, refused = registry("POST", "/associations:batchMutate", body).body["results"]
    assert done == {"result": {**RESOURCE, "associations": [VALUE]}}
    assert refused["error"]["error_code"] == 40905
    found = registry("POST", "/associations:batchGet?includeSchemas=true", {"requests": [{"resourceId": "1"}]}).body
    assert found["results"][0]["result"]["associations"][0]["schema"]["schema"] == B


def test_a_change_keeps_when_an_association_was_made(registry: InMemory) -> None:
    registry("POST", "/associations", request(KEY))
    (made,) = registry("GET", "/associations/resources/-/topic1").body
    assert made.items() >= {**RESOURCE, **KEY, "createTs": made["updateTs"]}.items()
    registry("PUT", "/associations/resources/1", request(item(lifecycle="STRONG")))
    (changed,) = registry("GET", "/associations/subjects/s").body
    assert changed == {**made, "lifecycle": "STRONG", "updateTs": changed["updateTs"]}
    again = InMemory(registry.store.log)
    assert again("GET", "/associations/subjects/s").body == [changed]
    again.close()


def test_a_value_of_nothing_deletes(registry: InMemory) -> None:
    registry("PUT", "/config/s", {"compatibility": "FULL"})
    registry.registry.replay(b'{"keytype":"CONFIG","subject":"s","magic":0}', b'""')
    assert registry("GET", "/config/s").status == 404
