"""Clients with versions that Kafka 4 dropped are counted and logged, within a bound."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas import limits
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.protocol.request_headers import RequestHeader
from barnabas.server.connection import Connection
from barnabas.server.old_requests import LABELS, NAME, OTHERS, UNKNOWN, OldRequest, OldRequests
from tests.server.in_process import Client, running
from tests.server.scraped import render

PRODUCE, METADATA, API_VERSIONS = 0, 3, 18


def _shown(client: Client) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(render(client.broker).decode())
    (family,) = (each for each in families if each.name == NAME.removesuffix("_total"))
    return {tuple(sample.labels[label] for label in LABELS[NAME]): sample.value for sample in family.samples}


async def test_requests_that_kafka_4_would_refuse_are_counted_by_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running([tmp_path]) as client:
        with caplog.at_level(logging.INFO, "barnabas.server.old_requests"):
            for _ in range(3):
                await client.ask((PRODUCE, 2), ProduceRequest(acks=1), ProduceResponse)
            await client.ask((PRODUCE, 3), ProduceRequest(acks=1), ProduceResponse)
            await client.ask((METADATA, 0), MetadataRequest(topics=[]), MetadataResponse)  # Kafka 4 supports this version
            await client.ask((API_VERSIONS, 0), ApiVersionsRequest(), ApiVersionsResponse)
        shown = _shown(client)
        assert [(api, version, software, count) for (api, version, _, software), count in shown.items()] == [
            ("Produce", "2", UNKNOWN, 3.0)
        ]
    (line,) = (each.getMessage() for each in caplog.records if each.name == "barnabas.server.old_requests")
    assert line.startswith("event=old-client client=")
    assert "peer=127.0.0.1:" in line
    assert line.endswith("api=Produce version=2")


def _observe(counted: OldRequests, client_id: str | None, software: tuple[str, str] = (UNKNOWN, UNKNOWN)) -> None:
    connection = SimpleNamespace(client_software=software, peer="127.0.0.1:1", principal="User:ANONYMOUS")
    counted.observe(cast(Connection, connection), RequestHeader(PRODUCE, 0, 1, client_id, 0))


def test_clients_that_say_what_they_are_made_with_are_told_apart() -> None:
    counted = OldRequests()
    _observe(counted, "a", ("sarama", "1.40.0"))
    _observe(counted, "a")
    _observe(counted, None)
    assert counted.counts == {
        OldRequest(PRODUCE, 0, "a", "sarama 1.40.0"): 1,
        OldRequest(PRODUCE, 0, "a", UNKNOWN): 1,
        OldRequest(PRODUCE, 0, "", UNKNOWN): 1,
    }


def test_a_peer_cannot_make_the_counts_grow(caplog: pytest.LogCaptureFixture) -> None:
    counted = OldRequests()
    with caplog.at_level(logging.INFO, "barnabas.server.old_requests"):
        for number in range(limits.MAX_OLD_CLIENTS + 50):
            for _ in range(2):
                _observe(counted, f"{number}" + "x" * 30_000)
    assert len(counted.counts) == limits.MAX_OLD_CLIENTS + 1
    assert counted.counts[OldRequest(PRODUCE, 0, OTHERS, UNKNOWN)] == 100
    assert max(len(each.client_id) for each in counted.counts) == limits.MAX_OLD_CLIENT_NAME
    assert len(caplog.records) == limits.MAX_OLD_CLIENTS
