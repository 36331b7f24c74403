"""Many subjects, and references that are a thousand schemas deep or lead in a circle."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import limits
from barnabas.registry.core import records
from barnabas.registry.core.entities import Draft, Version
from barnabas.registry.formats.interface import Reference
from barnabas.registry.formats.table import format_of
from tests.registry.http.asking import InMemory


@pytest.fixture
def registry() -> Iterator[InMemory]:
    made = InMemory(formats=format_of)
    yield made
    made.close()


def link(number: int) -> Draft:
    """A record that holds the one before it."""
    if number == 0:
        return Draft('{"type":"record","name":"R0","fields":[]}')
    text = f'{{"type":"record","name":"R{number}","fields":[{{"name":"before","type":"R{number - 1}"}}]}}'
    return Draft(text, references=(Reference(f"R{number - 1}", f"s{number - 1}", 1),))


def put(registry: InMemory, subject: str, number: int, draft: Draft, schema_id: int) -> None:
    """Write a version into the topic, past all checks."""
    record = records.schema_record(Version(subject, number, schema_id, draft, draft.identity))
    key, value = records.encode(record)
    registry.registry.replay(key, value)


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_a_chain_of_references_is_followed_up_to_the_limit(registry: InMemory, kind: str) -> None:
    def texts(number: int) -> tuple[str, str]:
        name, before = f"n{number}", f"n{number - 1}"
        match kind:
            case "JSON":
                return f"{name}.json", f'{{"properties":{{"a":{{"$ref":"{before}.json"}}}}}}' if number else "{}"
            case "PROTOBUF":
                imported = f'import "{before}.proto"; ' if number else ""
                return f"{name}.proto", f'syntax = "proto3"; {imported}message M{number} {{}}'
        field = f'{{"name":"a","type":"{before}"}}' if number else ""
        return name, f'{{"type":"record","name":"{name}","fields":[{field}]}}'

    for number in range(limits.MAX_SCHEMA_REFERENCES + 1):
        references = (Reference(texts(number - 1)[0], f"s{number - 1}", 1),) if number else ()
        put(registry, f"s{number}", 1, Draft(texts(number)[1], kind, references), number + 1)

    def asked(number: int) -> dict[str, object]:
        reference = {"name": texts(number - 1)[0], "subject": f"s{number - 1}", "version": 1}
        return {"schema": texts(number)[1], "schemaType": kind, "references": [reference]}

    few = registry("POST", "/subjects/few/versions", asked(50))
    assert few.status == 200
    most = registry("POST", "/subjects/most/versions", asked(limits.MAX_SCHEMA_REFERENCES))
    assert most.status == 200 or (most.status, most.body["error_code"]) == (422, 42201)
    more = registry("POST", "/subjects/more/versions", asked(limits.MAX_SCHEMA_REFERENCES + 1))
    assert (more.status, more.body["error_code"]) == (422, 42201)
    assert str(limits.MAX_SCHEMA_REFERENCES) in more.body["message"]


def test_a_circle_of_references_is_refused(registry: InMemory) -> None:
    put(registry, "a", 1, Draft('"int"', references=(Reference("b", "b", -1),)), 1)
    put(registry, "b", 1, Draft('"int"', references=(Reference("a", "a", 1),)), 2)
    reference = {"name": "a", "subject": "a", "version": 1}
    refused = registry("POST", "/subjects/c/versions", {"schema": '"int"', "references": [reference]})
    assert (refused.status, refused.body["error_code"]) == (422, 42201)
    assert "lead back" in refused.body["message"]
    for path in ("/subjects/a/versions/1", "/subjects/a/versions/1/referencedby", "/schemas/ids/1", "/schemas"):
        assert registry("GET", path).status == 200


def test_ten_thousand_subjects(registry: InMemory) -> None:
    for number in range(10_000):
        put(registry, f"s{number:05}", 1, Draft(f'{{"type":"fixed","name":"F{number}","size":1}}'), number + 1)
    assert len(registry("GET", "/subjects").body) == 10_000
    assert registry("GET", "/subjects?offset=9998&limit=5").body == ["s09998", "s09999"]
    assert registry("GET", "/subjects?subjectPrefix=s0999").body == [f"s0999{digit}" for digit in range(10)]
    listed = registry("GET", "/schemas").body
    assert len(listed) == limits.MAX_LISTED_SCHEMAS
    assert registry("GET", "/schemas?offset=9999").body[0]["subject"] == "s09999"
