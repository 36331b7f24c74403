"""Entities come back as they were kept; what Kafka says of wrong ones is compared in tests/differential."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import KafkaError
from barnabas.quota.entities import check_entity, check_quota, decode_all, decode_entity, encode_entity, entity_of

NAMES = st.none() | st.text(min_size=1)


@given(st.dictionaries(st.sampled_from(["user", "client-id", "ip", "group"]), NAMES, min_size=1))
def test_an_entity_comes_back_whatever_order_it_was_given_in(names: dict[str, str | None]) -> None:
    entity = entity_of(names.items())
    assert entity == entity_of(reversed(names.items()))
    assert decode_entity(encode_entity(entity)) == entity


def test_those_with_fewer_types_are_told_first() -> None:
    keys = [encode_entity(entity_of(names.items())) for names in ({"user": "b", "client-id": "a"}, {"user": None}, {"user": "a"})]
    assert [dict(entity) for entity in decode_all({key: {"x": 1.0} for key in keys})] == [
        {"user": None},
        {"user": "a"},
        {"client-id": "a", "user": "b"},
    ]


def test_a_group_is_an_entity_of_ours() -> None:
    check_entity((("group", "g"),))
    check_quota((("group", None),), "consumer_byte_rate", 5.0)
    for wrong in ((("user", "u"), ("group", "g")), (("ip", "10.0.0.1"), ("group", "g")), (("group", ""),)):
        with pytest.raises(KafkaError):
            check_entity(wrong)
    with pytest.raises(KafkaError, match="Invalid configuration key producer_byte_rate"):
        check_quota((("group", "g"),), "producer_byte_rate", 5.0)
