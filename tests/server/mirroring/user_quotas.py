"""Quotas of users, for tests of links that copy them."""

from __future__ import annotations

from barnabas.cli.connection import Connection
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, OpData, RequestEntryData
from barnabas.protocol.messages.alter_client_quotas import RequestEntityData as Entity
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest


def limit(servers: str, user: str, rate: float | None) -> None:
    change = OpData(key="producer_byte_rate", value=rate or 0.0, remove=rate is None)
    entry = RequestEntryData(entity=[Entity(entity_type="user", entity_name=user)], ops=[change])
    with Connection(servers).wire() as wire:
        (answer,) = wire.request(AlterClientQuotasRequest(entries=[entry])).entries
    assert answer.error_code == 0


def quotas(servers: str) -> dict[str | None, float]:
    with Connection(servers).wire() as wire:
        answer = wire.request(DescribeClientQuotasRequest(components=[]))
    return {entry.entity[0].entity_name: entry.values[0].value for entry in answer.entries or ()}
