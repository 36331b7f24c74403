"""Kafka's order of precedence, and who shares what."""

from __future__ import annotations

import pytest

from barnabas.quota.entities import CLIENT_ID, CONSUMER_BYTE_RATE, GROUP, IP, PRODUCER_BYTE_RATE, USER, Entity
from barnabas.quota.table import Applied, QuotaTable

ORDER: list[tuple[Entity, tuple[str, str]]] = [  # most specific entity first; with the user and client id that share the quota
    (((CLIENT_ID, "c"), (USER, "u")), ("u", "c")),
    (((CLIENT_ID, None), (USER, "u")), ("u", "c")),
    (((USER, "u"),), ("u", "")),
    (((CLIENT_ID, "c"), (USER, None)), ("u", "c")),
    (((CLIENT_ID, None), (USER, None)), ("u", "c")),
    (((USER, None),), ("u", "")),
    (((CLIENT_ID, "c"),), ("", "c")),
    (((CLIENT_ID, None),), ("", "c")),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_most_exact_entity_counts(first: int) -> None:
    declared = {entity: {PRODUCER_BYTE_RATE: float(place + 1)} for place, (entity, _) in enumerate(ORDER) if place >= first}
    table = QuotaTable(declared)
    assert table.find(PRODUCER_BYTE_RATE, "u", "c") == Applied(first + 1.0, *ORDER[first][1])


def test_an_entity_without_that_quota_is_passed_over() -> None:
    table = QuotaTable({ORDER[0][0]: {CONSUMER_BYTE_RATE: 1.0}, ORDER[7][0]: {PRODUCER_BYTE_RATE: 2.0}})
    assert table.find(PRODUCER_BYTE_RATE, "u", "c") == Applied(2.0, "", "c")
    assert table.find(PRODUCER_BYTE_RATE, "other", "x") == Applied(2.0, "", "x")
    assert table.find(CONSUMER_BYTE_RATE, "other", "c") is None


def test_addresses_and_groups_have_quotas_of_their_own() -> None:
    rate, bytes_ = "connection_creation_rate", CONSUMER_BYTE_RATE
    table = QuotaTable(
        {((IP, "10.0.0.1"),): {rate: 1.0}, ((IP, None),): {rate: 2.0}, ((GROUP, "g"),): {bytes_: 3.0}, ((USER, "u"),): {}}
    )
    assert (table.connection_rate("10.0.0.1"), table.connection_rate("10.0.0.2")) == (1.0, 2.0)
    assert (table.group_rate("g"), table.group_rate("h")) == (3.0, None)
    assert (table.has_clients, table.has_addresses) == (False, True)
    assert table.groups == {"g"}


def test_an_address_is_the_same_however_it_is_spelled() -> None:
    rate = "connection_creation_rate"
    table = QuotaTable(
        {((IP, "0:0:0:0:0:0:0:1"),): {rate: 1.0}, ((IP, "2001:DB8::1"),): {rate: 3.0}, ((IP, "2001:db8::1"),): {rate: 2.0}}
    )
    assert [table.connection_rate(host) for host in ("::1", "2001:db8::1", "::2")] == [1.0, 2.0, None]
