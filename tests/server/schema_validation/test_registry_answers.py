"""Which answers of a registry mean that an id is registered, by cases."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.schemas.registry_client import RegistryClient, RegistryError
from barnabas.server.schema_validation.registry_answers import verdict_of
from barnabas.server.schema_validation.subject import Question, SubjectRule, Verdict
from tests.server.schema_validation.small_registry import SmallRegistry, small_registry

BY_TOPIC, BY_RECORD, BY_BOTH = SubjectRule("t-value", False), SubjectRule("", True), SubjectRule("t-", True)
ORDER = {"schema": '{"type":"record","name":"Order","namespace":"shop","fields":[]}'}
FILE = b"\x12\x04shop\x22\x07\x0a\x05First\x22\x07\x0a\x05Order"


def named(number: int) -> bytes:
    return b"\0" + number.to_bytes(4)


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as registry:
        yield registry


@pytest.mark.parametrize(
    ("rule", "setup", "verdict"),
    [
        (BY_TOPIC, {}, Verdict(False, "t-value")),
        (BY_TOPIC, {"subjects": {7: ["a", "t-value"]}}, Verdict(True, "t-value")),
        (BY_TOPIC, {"subjects": {7: ["a", "t-key"]}}, Verdict(False, "t-value")),
        (BY_TOPIC, {"subjects": {7: ["a"]}, "aliases": {"t-value": "a"}}, Verdict(True, "t-value")),
        (BY_TOPIC, {"subjects": {7: ["a"]}, "aliases": {"t-value": "b"}}, Verdict(False, "t-value")),
        (BY_TOPIC, {"subjects": {7: [f"s{n:04}" for n in range(2_500)] + ["t-value"]}}, Verdict(True, "t-value")),
        (BY_RECORD, {}, Verdict(False, "<name of the record>")),
        (BY_RECORD, {"subjects": {7: ["shop.Order"]}, "schemas": {7: ORDER}}, Verdict(True, "shop.Order")),
        (BY_RECORD, {"subjects": {7: ["t-value"]}, "schemas": {7: ORDER}}, Verdict(False, "shop.Order")),
        (BY_BOTH, {"subjects": {7: ["t-shop.Order"]}, "schemas": {7: ORDER}}, Verdict(True, "t-shop.Order")),
        (BY_BOTH, {"subjects": {7: ["t-x"]}, "schemas": {7: {"schema": '["null"]'}}}, Verdict(False, "t-<name of the record>")),
        (
            BY_RECORD,
            {"subjects": {7: ["Event"]}, "schemas": {7: {"schemaType": "JSON", "schema": '{"title":"Event"}'}}},
            Verdict(True, "Event"),
        ),
        (
            BY_RECORD,
            {
                "subjects": {7: ["shop.Order"]},
                "schemas": {7: {"schemaType": "PROTOBUF", "schema": "message …"}},
                "serialized": {7: b64encode(FILE).decode()},
            },
            Verdict(True, "shop.First or shop.Order"),
        ),
    ],
)
def test_verdicts(registry: SmallRegistry, rule: SubjectRule, setup: dict[str, Any], verdict: Verdict) -> None:
    for name, value in setup.items():
        setattr(registry, name, value)
    with RegistryClient(registry.url) as client:
        assert verdict_of(client, Question(named(7), rule)) == verdict


def test_a_guid_stands_for_the_id_of_the_default_context(registry: SmallRegistry) -> None:
    registry.subjects[7] = ["t-value"]
    registry.guids["00010203-0405-0607-0809-0a0b0c0d0e0f"] = [{"context": ".c", "id": 1}, {"context": ".", "id": 7}]
    guid = b"\1" + bytes(range(16))
    with RegistryClient(registry.url) as client:
        assert verdict_of(client, Question(guid, BY_TOPIC)) == Verdict(True, "t-value")
        assert verdict_of(client, Question(guid[:-1] + b"\0", BY_TOPIC)) == Verdict(False, "t-value")


def test_a_negative_id_is_not_asked_about(registry: SmallRegistry) -> None:
    with RegistryClient(registry.url) as client:
        assert verdict_of(client, Question(b"\0\xff\xff\xff\xff", BY_TOPIC)) == Verdict(False, "t-value")
    assert registry.asked == []


def test_an_id_that_a_registry_finds_invalid_is_not_registered(registry: SmallRegistry) -> None:
    registry.status = 422
    with RegistryClient(registry.url) as client:
        assert verdict_of(client, Question(named(7), BY_TOPIC)) == Verdict(False, "t-value")


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_registry_that_refuses_has_not_answered(registry: SmallRegistry, status: int) -> None:
    registry.status = status
    with RegistryClient(registry.url) as client, pytest.raises(RegistryError):
        verdict_of(client, Question(named(7), BY_TOPIC))
