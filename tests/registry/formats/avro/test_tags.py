"""Fields and tags of a schema's records."""

from __future__ import annotations

import pytest

from barnabas.registry.formats.avro import FORMAT
from barnabas.registry.formats.interface import Entity, InvalidSchema
from tests.registry.formats.avro.records import field, record, text

ORDER = FORMAT.parse(
    text(
        record(
            field("id", "int", **{"confluent:tags": ["KEY", "PII"]}),
            field("lines", {"type": "array", "items": record(field("n", "int"), name="Line", **{"confluent:tags": ["L"]})}),
            name="acme.Order",
        )
    ),
    {},
)
ORDER_ID = Entity("acme.Order.id", "SR_FIELD")
ORDER_RECORD = Entity("acme.Order", "SR_RECORD")
LINE = Entity("acme.Line", "SR_RECORD")
LINE_N = Entity("acme.Line.n", "SR_FIELD")


def test_tags_of_records_and_fields() -> None:
    assert ORDER.tags() == {ORDER_ID: frozenset(("KEY", "PII")), LINE: frozenset("L")}


def test_tags_of_references_and_recursive_records_count_once() -> None:
    schema = FORMAT.parse(text(record(field("o", ["null", "acme.Order", "R"]))), {"o": ORDER.canonical})
    assert schema.tags() == ORDER.tags()


def test_tags_are_added_and_removed() -> None:
    changed = ORDER.with_tags({LINE_N: ["A", "B"], ORDER_RECORD: ["R"], ORDER_ID: ["X"]}, {ORDER_ID: ["PII"], LINE: ["L"]})
    assert changed.tags() == {ORDER_ID: frozenset(("KEY", "X")), LINE_N: frozenset("AB"), ORDER_RECORD: frozenset("R")}
    assert '"name":"n","type":"int","confluent:tags":["A","B"]' in changed.canonical
    assert (
        changed.with_tags({ORDER_ID: ["PII"], LINE: ["L"]}, {LINE_N: ["A", "B"], ORDER_RECORD: ["R"], ORDER_ID: ["X"]}).tags()
        == ORDER.tags()
    )


@pytest.mark.parametrize(
    "entity", [Entity("acme.Order.no", "SR_FIELD"), Entity("acme.No", "SR_RECORD"), Entity("acme.Order", "SR_FIELD")]
)
def test_an_unknown_entity_is_refused(entity: Entity) -> None:
    with pytest.raises(InvalidSchema, match=f"No matching path '{entity.path}' found in the schema"):
        ORDER.with_tags({entity: ["X"]}, {})


def test_a_top_level_field_is_one_of_the_record_at_the_root() -> None:
    assert ORDER.has_top_level_field("id")
    assert not ORDER.has_top_level_field("n")
    assert not FORMAT.parse('"int"', {}).has_top_level_field("id")
