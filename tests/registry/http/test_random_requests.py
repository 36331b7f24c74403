"""Random requests made from the OpenAPI document, right ones and wrong ones: no answer is a fault, or differs from the document.

`tests/interop/test_schemathesis.py` does the same for longer, over HTTP.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from barnabas.registry.formats.table import format_of
from tests.registry.http import described
from tests.registry.http.asking import InMemory

RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WIDER = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}'
KNOWN = {
    "schema": [RECORD, WIDER, '"string"', '{"type":"object"}', 'syntax = "proto3"; message M { int32 a = 1; }', "{", ""],
    "schemaType": ["AVRO", "JSON", "PROTOBUF", "XML"],
    "subject": ["s", "t", ":.c:s", ":.c:", ":*:", "a/b", "__GLOBAL", "\x01", "nick"],
    "version": ["1", "2", "latest", "-1", "0", "x", "99999999999"],
    "id": ["1", "2", "99", "x", "-1", "99999999999"],
    "context": [".", ".c", "c", "a:b"],
    "compatibility": ["BACKWARD", "FULL", "NONE", "odd"],
    "mode": ["READWRITE", "READONLY", "IMPORT", "FORWARD", "odd"],
    "kind": ["CONDITION", "TRANSFORM"],
    "format": ["", "resolved", "serialized", "ignore_extensions"],
    "alias": ["s", "nick"],
    "entityPath": [".R.a", ".R", "a", "$"],
    "entityType": ["SR_FIELD", "SR_RECORD"],
    "associationType": ["key", "value"],
    "lifecycle": ["STRONG", "WEAK"],
    "resourceId": ["r", "q"],
}
ODD: list[Any] = [None, True, 0, -1, 2**31, 10**400, 1.5, "", "x", "\ud7ff\x00", [], [None], {}, {"a": {}}]


class Requests:
    """Requests of one operation."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def value(self, schema: Any, name: str = "") -> Any:
        """A value of a schema, and sometimes one that is not."""
        random = self._random
        if random.random() < 0.06:
            return random.choice(ODD)
        if "$ref" in schema:
            return self.value(described.document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]], name)
        if "anyOf" in schema:
            return self.value(random.choice(schema["anyOf"]), name)
        kind = schema.get("type")
        kind = random.choice(kind) if isinstance(kind, list) else kind
        if name in KNOWN and kind == "string":
            return random.choice(KNOWN[name])
        match kind:
            case "object" if "properties" in schema:
                return {key: self.value(each, key) for key, each in schema["properties"].items() if random.random() < 0.5}
            case "object":
                return {random.choice("abc"): self.value(schema.get("additionalProperties", {}))}
            case "array":
                return [self.value(schema["items"]) for _ in range(random.randrange(3))]
            case "integer":
                return random.choice([0, 1, 2, -1, 50])
            case "boolean":
                return random.random() < 0.5
            case "null":
                return None
        return random.choice(["a", "b", ".R.a"])

    def url(self, path: str, operation: Any) -> str:
        """The path and the query."""
        random, pairs = self._random, []
        for parameter in operation["parameters"]:
            name = parameter["name"]
            if parameter["in"] == "path":
                path = path.replace(f"{{{name}}}", quote(random.choice(KNOWN.get(name, ["r", "q"])), safe=":"))
            elif random.random() < 0.3:
                pairs.append((name, str(self.value(parameter["schema"], name)).lower()))
        return f"{path}?{urlencode(pairs, errors='replace')}" if pairs else path


@pytest.mark.parametrize("seed", range(3))
def test_no_answer_is_a_fault(seed: int) -> None:
    random = Random(seed)
    requests, registry = Requests(random), InMemory(formats=format_of)
    operations = [
        (method.upper(), path, operation)
        for path, methods in described.document()["paths"].items()
        for method, operation in methods.items()
        for _ in range(4 if method == "post" else 2)
    ]
    registry("POST", "/subjects/s/versions", {"schema": RECORD})
    for _ in range(2):
        random.shuffle(operations)
        for method, path, operation in operations:
            url, body = requests.url(path, operation), None
            if "requestBody" in operation:
                body = requests.value(operation["requestBody"]["content"]["application/json"]["schema"])
                if body is None:
                    body = b"null"
            answer = registry(method, url, body)
            assert answer.status < 500, (method, url, json.dumps(body) if not isinstance(body, bytes) else body, answer)
        registry("PUT", "/mode", {"mode": "READWRITE"})
    registry.close()
