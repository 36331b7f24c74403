"""Callers with few rights: what each operation needs, and that no route shows or changes more than that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.registry.http import associations, schemas, settings, subjects
from barnabas.registry.http.rights import OTHERWISE, RULES, resource_of
from barnabas.security.acls import CLUSTER, CLUSTER_NAME, Acl, Operation, PatternType, Permission, Resource, ResourceType
from barnabas.security.authorizer import Authorizer, Session
from barnabas.security.rights import RightsUnknown
from barnabas.web.routing import Caller
from tests.registry.http.asking import InMemory

TOPIC, EVERYTHING = ResourceType.TOPIC, ResourceType.CLUSTER
READER, WRITER, OWNER, STRANGER, GOD = (f"User:{name}" for name in ("reader", "writer", "owner", "stranger", "god"))
A, B = '{"alpha":"int"}', '{"beta":"int"}'
TABLES = (*subjects.TABLE, *schemas.TABLE, *settings.TABLE, *associations.TABLE)


def binding(principal: str, operation: Operation, name: str, kind: ResourceType = TOPIC) -> Acl:
    return Acl(kind, name, PatternType.LITERAL, principal, "*", operation, Permission.ALLOW)


BINDINGS = [
    binding(READER, Operation.READ, "orders"),
    binding(READER, Operation.DESCRIBE_CONFIGS, "orders"),
    binding(WRITER, Operation.WRITE, "orders"),
    binding(OWNER, Operation.ALL, "orders"),
    binding(OWNER, Operation.ALL, ":.staging:orders"),
    binding(OWNER, Operation.DESCRIBE_CONFIGS, CLUSTER_NAME, EVERYTHING),
]


class Given:
    """Rights by bindings of the test."""

    def __init__(self) -> None:
        self.failure: RightsUnknown | None = None
        self.later: list[Acl] = []  # the next reading adds these
        self._authorizer = Authorizer(BINDINGS, super_users=[GOD])

    async def refresh(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def renew(self) -> bool:
        for acl in self.later:
            self._authorizer.add(acl)
        return bool(self.later)

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        return self._authorizer.is_allowed(Session(principal, host), operation, resource)


class Asked:
    """A registry with a subject of the topic `orders`, one of `secret`, and one in a context."""

    def __init__(self) -> None:
        self.rights = Given()
        self.registry = InMemory(rights=self.rights)

    def fill(self) -> None:
        assert self("POST", "/subjects/orders-value/versions", {"schema": A}).status == 200
        assert self("POST", "/subjects/secret-value/versions", {"schema": B}).status == 200
        assert self("POST", "/subjects/:.hidden:secret-value/versions", {"schema": B}).status == 200
        assert self("PUT", "/config/secret-value", {"compatibility": "NONE"}).status == 200
        one = {
            "resourceName": "secret",
            "resourceNamespace": "n",
            "resourceId": "id",
            "associations": [{"subject": "secret-value"}],
        }
        assert self("POST", "/associations", one).status == 200

    def __call__(self, method: str, url: str, body: object = None, who: str = GOD) -> Any:
        return self.registry(method, url, body, caller=Caller(who, "127.0.0.1"), any_query=True)

    def image(self) -> str:
        state = self.registry.registry.state
        return repr((state.subjects, state.configs, state.modes, state.associations))


@pytest.fixture
def asked() -> Iterator[Asked]:
    made = Asked()
    try:
        made.fill()
        yield made
    finally:
        made.registry.close()


@pytest.mark.parametrize(
    ("subject", "resource"),
    [
        ("orders-value", Resource(TOPIC, "orders")), ("orders-key", Resource(TOPIC, "orders")), ("orders", Resource(TOPIC, "orders")),
        ("com.acme.Order", Resource(TOPIC, "com.acme.Order")), ("-value", Resource(TOPIC, "-value")),
        (":.staging:orders-value", Resource(TOPIC, ":.staging:orders")), (":.staging:", Resource(TOPIC, ":.staging:")),
        ("", CLUSTER), (":.__GLOBAL:", CLUSTER), (":.__GLOBAL:orders-value", CLUSTER),
    ],
)  # fmt: skip
def test_a_subject_belongs_to_a_topic(subject: str, resource: Resource) -> None:
    assert resource_of(subject) == resource


ORDERS = "/subjects/orders-value"
ROWS: list[tuple[str, str, Any, dict[str, int]]] = [
    ("GET", ORDERS + "/versions", None, {READER: 200, WRITER: 200, OWNER: 200, STRANGER: 40301}),
    ("GET", ORDERS + "/versions/latest", None, {READER: 200, STRANGER: 40301}),
    ("GET", ORDERS + "/versions/1/schema", None, {READER: 200, STRANGER: 40301}),
    ("GET", "/contexts/.staging" + ORDERS + "/versions", None, {READER: 40301, OWNER: 40401}),
    ("POST", ORDERS, {"schema": A}, {READER: 200, WRITER: 200, STRANGER: 40301}),
    ("GET", "/schemas/ids/1", None, {READER: 200, WRITER: 200, STRANGER: 40301}),
    ("GET", "/schemas/ids/1/schema", None, {READER: 200, STRANGER: 40301}),
    ("GET", "/schemas/ids/2", None, {READER: 40301, OWNER: 40301, GOD: 200}),
    ("POST", ORDERS + "/versions", {"schema": A}, {READER: 40301, WRITER: 200, OWNER: 200, STRANGER: 40301}),
    ("POST", "/compatibility" + ORDERS + "/versions/latest", {"schema": A}, {READER: 40301, WRITER: 200, STRANGER: 40301}),
    ("GET", "/config/orders-value?defaultToGlobal=true", None, {READER: 200, WRITER: 40301, OWNER: 200, STRANGER: 40301}),
    ("PUT", "/config/orders-value", {"compatibility": "NONE"}, {READER: 40301, WRITER: 40301, OWNER: 200}),
    ("PUT", "/mode/orders-value", {"mode": "READONLY"}, {READER: 40301, WRITER: 40301, OWNER: 200}),
    ("DELETE", "/mode/orders-value", None, {READER: 40301, WRITER: 40301, OWNER: 200}),
    ("GET", "/config", None, {READER: 40301, OWNER: 200, STRANGER: 40301}),
    ("GET", "/mode", None, {READER: 40301, OWNER: 200}),
    ("PUT", "/config", {"compatibility": "NONE"}, {OWNER: 40301, GOD: 200}),
    ("PUT", "/config/:.staging:", {"compatibility": "NONE"}, {OWNER: 40301, GOD: 200}),
    ("DELETE", "/contexts/.staging", None, {OWNER: 40301, READER: 40301}),
    ("DELETE", "/contexts/.staging/contexts/.hidden", None, {OWNER: 40301}),
    ("DELETE", ORDERS + "/versions/1", None, {READER: 40301, WRITER: 40301, OWNER: 200}),
    ("DELETE", ORDERS, None, {READER: 40301, WRITER: 40301, OWNER: 40404, STRANGER: 40301}),
    ("GET", "/", None, {STRANGER: 200}),
]  # fmt: skip


def test_what_each_operation_needs(asked: Asked) -> None:
    for method, url, body, expected in ROWS:
        for who, wanted in expected.items():
            got = asked(method, url, body, who)
            code = got.body["error_code"] if got.status >= 400 else got.status
            assert code == wanted, (method, url, who, got)


def test_the_refusal_is_confluents(asked: Asked) -> None:
    refused = asked("POST", ORDERS + "/versions", {"schema": B}, READER)
    assert refused.status == 403
    assert refused.body == {"error_code": 40301, "message": "User is denied operation Write on Subject: orders-value"}
    assert (
        asked("PUT", "/mode", {"mode": "READONLY"}, READER).body["message"]
        == "User is denied operation WriteCompatibility on this server."
    )


def test_lists_show_what_may_be_read(asked: Asked) -> None:
    assert asked("GET", "/subjects", who=READER).body == ["orders-value"]
    assert asked("GET", "/subjects", who=STRANGER).body == []
    assert [each["subject"] for each in asked("GET", "/schemas", who=READER).body] == ["orders-value"]
    assert asked("GET", "/contexts", who=READER).body == ["."]
    assert asked("GET", "/contexts").body == [".", ".hidden"]


def test_a_reference_to_a_subject_needs_the_right_to_read_it(asked: Asked) -> None:
    body = {"schema": '{"gamma":"int"}', "references": [{"name": "b", "subject": "secret-value", "version": 1}]}
    for method, url in (("POST", ORDERS + "/versions"), ("POST", ORDERS), ("POST", "/compatibility" + ORDERS + "/versions")):
        assert asked(method, url, body, OWNER).body["message"] == "User is denied operation Read on Subject: secret-value"


def test_an_id_is_shown_through_a_subject_that_may_be_read(asked: Asked) -> None:
    asked("POST", "/subjects/another-value/versions", {"schema": A})
    asked("DELETE", "/subjects/orders-value")
    asked("POST", "/subjects/orders-value/versions", {"schema": B})
    assert asked("GET", "/schemas/ids/2", who=READER).body["subject"] == "orders-value"
    assert asked("GET", "/schemas/ids/2/subjects", who=READER).body == ["orders-value"]
    assert asked("GET", "/schemas/ids/2/versions", who=READER).body == [{"subject": "orders-value", "version": 2}]


def test_without_an_answer_of_the_cluster_nobody_has_a_right(asked: Asked) -> None:
    asked.rights.failure = RightsUnknown("it is gone")
    refused = asked("GET", "/subjects", who=GOD)
    assert (refused.status, refused.body["error_code"]) == (500, 50001)


def test_a_right_that_was_just_given_counts(asked: Asked) -> None:
    asked.rights.later = [binding(STRANGER, Operation.WRITE, "orders"), binding(OWNER, Operation.DESCRIBE, "secret")]
    assert asked("POST", ORDERS + "/versions", {"schema": A}, STRANGER).status == 200
    assert asked("GET", "/schemas/ids/2", who=OWNER).status == 200
    assert asked("DELETE", ORDERS, who=STRANGER).status == 403


def test_each_route_has_a_rule() -> None:
    assert {(method, pattern) for method, pattern, _ in TABLES} == set(RULES)
    assert OTHERWISE.right is not None


FILLED = {
    "subjects": "secret-value",
    "versions": "1",
    "ids": "2",
    "contexts": ".hidden",
    "config": "secret-value",
    "mode": "secret-value",
}
BODY = {
    "schema": '{"delta":"int"}', "compatibility": "NONE", "mode": "READONLY", "resourceName": "secret", "resourceNamespace": "n",
    "resourceId": "id", "associations": [{"associationType": "value", "lifecycle": "STRONG", "schema": {"schema": '{"delta":"int"}'}}],
    "requests": [{"resourceName": "secret", "resourceNamespace": "n", "resourceId": "id",
                  "associations": [{"associationType": "value", "lifecycle": "STRONG"}]}],
}  # fmt: skip


def url_of(pattern: str, guid: str) -> str:
    words, before = [], ""
    for word in pattern.split("/"):
        filled = guid if before == "guids" else FILLED.get(before, "id" if before == "resources" else "secret")
        words.append(filled if word == "{}" else word)
        before = word
    return "/".join(words)


@pytest.mark.parametrize("prefix", ["", "/contexts/.hidden"])
@pytest.mark.parametrize(("method", "pattern"), [each[:2] for each in TABLES])
def test_a_stranger_sees_and_changes_nothing(asked: Asked, method: str, pattern: str, prefix: str) -> None:
    guid = asked("GET", "/subjects/secret-value/versions/1").body["guid"]
    before = asked.image()
    for query in ("", "?permanent=true&deleted=true&force=true&recursive=true&cascadeLifecycle=true&aliases=true&verbose=true"):
        got = asked(
            method,
            prefix * (pattern != "/") + url_of(pattern, guid) + query,
            BODY if method in {"POST", "PUT"} else None,
            STRANGER,
        )
        assert "beta" not in json.dumps(got.body)
        refused = got.status == 403 and got.body["error_code"] == 40301
        assert refused or "40301" in json.dumps(got.body) or not _tells(got), got
    assert asked.image() == before


def _tells(answer: Any) -> bool:
    """Whether an answer names something that is registered and that the request did not name itself."""
    text = json.dumps(answer.body)
    return answer.status >= 500 or "hidden" in text or "secret-value" in text
