"""The OpenAPI document has every route and no other; `described.check` compares every answer of the tests of this folder with it."""

from __future__ import annotations

from collections.abc import Iterator

import jsonschema_rs
import pytest

from barnabas.registry.http import openapi
from barnabas.registry.http.operations import OPERATIONS
from barnabas.registry.http.routes import TABLES
from barnabas.web.routing import Request, Response
from tests.registry.http import described
from tests.registry.http.asking import InMemory


@pytest.fixture
def registry() -> Iterator[InMemory]:
    made = InMemory()
    yield made
    made.close()


def test_it_is_served_and_has_every_route_and_only_those(registry: InMemory) -> None:
    answer = registry("GET", "/openapi.json")
    assert (answer.status, answer.media) == (200, "application/json")
    assert answer.body == openapi.document()
    assert described.routes() == registry.router.routes()


def test_no_operation_is_left_over() -> None:
    assert OPERATIONS.keys() == {handler for table in TABLES for _, _, handler in table}


def test_names_of_operations_and_parameters_are_unique() -> None:
    operations = [each for methods in openapi.document()["paths"].values() for each in methods.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    for each in operations:
        named = [(parameter["in"], parameter["name"]) for parameter in each["parameters"]]
        assert len(set(named)) == len(named), each["operationId"]


def test_its_schemas_are_valid() -> None:
    for schema in openapi.document()["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (Request("GET", "/subjects"), Response(b'{"a":1}', 200, described.V1_HEADERS)),
        (Request("GET", "/subjects"), Response(b"[]", 200)),
        (Request("GET", "/subjects"), Response(b"[]", 201, described.V1_HEADERS)),
        (Request("GET", "/subjects", {"odd": "1"}), Response(b"[]", 200, described.V1_HEADERS)),
        (Request("GET", "/nowhere"), Response(b"[]", 200, described.V1_HEADERS)),
        (Request("PUT", "/mode", body=b'{"mode":1}'), Response(b'{"mode":"IMPORT"}', 200, described.V1_HEADERS)),
    ],
)
def test_the_comparison_finds_differences(request_: Request, response: Response) -> None:
    with pytest.raises(AssertionError):
        described.check(request_, response)


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("POST", "/subjects/s/versions", {"schema": "{}", "metadata": {"tags": 5}}),
        ("POST", "/subjects/s/versions", {"schema": "{}", "metadata": {"tags": {"a": [1]}}}),
        ("POST", "/subjects/s/versions", {"schema": "{}", "ruleSet": {"domainRules": [{"name": "r", "params": []}]}}),
        ("POST", "/subjects/s/versions", {"schema": "{}", "ruleSet": {"domainRules": 1}}),
        ("POST", "/subjects/s/versions", {"schema": "{}", "references": [1]}),
        ("POST", "/subjects/s/versions", {"schema": "{}", "id": 2**31}),
        ("POST", "/subjects/s/versions", {"schema": "{}", "version": str(2**31)}),
        ("POST", "/subjects/s/versions", {"schema": "{}", "schemaTagsToAdd": [{"schemaEntity": "x"}]}),
        ("POST", "/subjects/s/versions/1/tags", {"tagsToAdd": 1}),
        ("POST", "/subjects/s/versions/1/tags", {"newVersion": "x"}),
        ("PUT", "/config", {"defaultMetadata": {"properties": 1}}),
        ("PUT", "/config", {"overrideRuleSet": {"domainRules": [1]}}),
        ("PUT", "/config", {"alias": {}}),
        ("PUT", "/config/s", {"compatibilityGroup": 1}),
        ("PUT", "/mode", {"mode": 1}),
        ("POST", "/associations", {"associations": [1]}),
        ("POST", "/associations:batchGet", {"requests": [{"associationTypes": 1}]}),
        ("POST", "/associations:batchMutate", {"requests": [{}] * 1001}),
    ],
)
def test_fields_of_another_type_are_refused(registry: InMemory, method: str, url: str, body: object) -> None:
    registry("POST", "/subjects/s/versions", {"schema": '{"a":"int"}'})
    refused = registry(method, url, body)
    assert (refused.status, refused.body["error_code"]) == (422, 422)
    assert registry("GET", "/config").body == {"compatibilityLevel": "BACKWARD"}
