"""A field of any other type is refused or read as text; it never makes a handler fail."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.registry.core import settings
from barnabas.registry.formats.table import format_of
from tests.registry.http.asking import InMemory

SCHEMA = {"schema": '{"type":"record","name":"R","fields":[]}'}
VALUES: list[Any] = [
    None,
    True,
    -1,
    1.5,
    "",
    "x",
    [],
    ["x"],
    [1],
    [None],
    [[]],
    [{}],
    {},
    {"x": 1},
    {"x": None},
    {"x": []},
    {"x": {}},
]
ENTITIES: list[Any] = [
    [{"schemaEntity": "x"}],
    [{"schemaEntity": {"entityPath": 1}}],
    *([{"schemaEntity": {"entityPath": "R", "entityType": "sr_record"}, "tags": tags}] for tags in ("x", 1, [1], {"a": 1})),
]
ASSOCIATION = {"subject": "s", "associationType": "key", "lifecycle": "WEAK"}
RESOURCE = {
    "resourceName": "t",
    "resourceNamespace": "n",
    "resourceId": "1",
    "resourceType": "topic",
    "associations": [ASSOCIATION],
}
RULE = {"name": "r", "type": "T"}
RULE_FIELDS = ("name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure", "disabled")
SCHEMA_FIELDS = (
    "schema",
    "schemaType",
    "references",
    "metadata",
    "ruleSet",
    "version",
    "id",
    "schemaTagsToAdd",
    "schemaTagsToRemove",
    "propagateSchemaTags",
)
Asked = tuple[str, str, Any]


def bodies_of_schemas(value: Any) -> list[Any]:
    return [
        *({**SCHEMA, field: value} for field in SCHEMA_FIELDS),
        *({**SCHEMA, "metadata": {part: value}} for part in ("tags", "properties", "sensitive")),
        *({**SCHEMA, "ruleSet": {part: value}} for part in ("migrationRules", "domainRules", "encodingRules")),
        *({**SCHEMA, "ruleSet": {"domainRules": [{**RULE, field: value}]}} for field in RULE_FIELDS),
        *(
            {**SCHEMA, "references": [{"name": "R", "subject": "s", "version": 1, field: value}]}
            for field in ("name", "subject", "version")
        ),
    ]


def requests_with(value: Any) -> list[Asked]:
    """Requests that have this value where something else is expected."""
    schemas = bodies_of_schemas(value)
    resources = [
        *({**RESOURCE, field: value} for field in RESOURCE),
        *(
            {**RESOURCE, "associations": [{**ASSOCIATION, field: value}]}
            for field in (*ASSOCIATION, "frozen", "schema", "normalize", "opType")
        ),
    ]
    tags = ("tagsToAdd", "tagsToRemove", "metadata", "ruleSet", "rulesToMerge", "rulesToRemove", "newVersion")
    whole = value if value is not None else b"null"
    made: list[Asked] = [
        *(("POST", url, body) for url in ("/subjects/s/versions", "/subjects/s") for body in schemas),
        *(("POST", "/compatibility/subjects/s/versions/latest", body) for body in schemas),
        *(("POST", "/subjects/s/versions/latest/tags", {field: value}) for field in tags),
        *(
            (method, url, body)
            for method, url in (("POST", "/associations"), ("PUT", "/associations/resources/1"))
            for body in resources
        ),
        *(("POST", "/associations:batchMutate", {"requests": [body]}) for body in resources),
        *(("POST", url, {"requests": value}) for url in ("/associations:batchMutate", "/associations:batchGet")),
        *(("POST", url, whole) for url in ("/subjects/s/versions", "/subjects/s", "/associations", "/associations:batchGet")),
        ("PUT", "/mode/s", {"mode": value}),
        ("DELETE", "/mode/s", None),
    ]
    for field in settings.FIELDS:
        made += [
            ("PUT", "/config/s", {field: value}),
            ("POST", "/subjects/s/versions", SCHEMA),
            ("GET", "/subjects/s/versions/latest", None),
        ]
        made.append(("DELETE", "/config/s", None))
    return made


@pytest.mark.parametrize("value", [*VALUES, *ENTITIES], ids=repr)
def test_no_handler_fails(value: Any) -> None:
    registry = InMemory(formats=format_of)
    registry("POST", "/subjects/s/versions", SCHEMA)
    try:
        for asked in requests_with(value):
            answer = registry(*asked)
            assert answer.status < 500, (asked, answer)
    finally:
        registry.close()
