"""Leaderships of a broker that has come back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.cluster.controller import returned_brokers
from barnabas.errors import ErrorCode
from barnabas.server.cluster import cluster_session
from tests.server.cluster.in_process import create, running


async def test_a_broker_that_is_back_leads_again_without_waiting_for_the_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(returned_brokers, "STABLE_MS", 1_000)
    monkeypatch.setattr(cluster_session, "GIVEN_BACK_EVERY_MS", 100)
    async with running(tmp_path, leader_imbalance_check_interval_seconds="3600") as cluster:
        back = cluster.others[0]
        client = cluster.clients[cluster.controller.config.broker_id]
        assert await create(client, "t", partitions=6) == ErrorCode.NONE
        preferred = [state.replicas[0] for state in cluster.controller.metadata.topics["t"].partitions]
        assert back in preferred

        def leaders() -> list[int]:
            return [state.leader for state in cluster.controller.metadata.topics["t"].partitions]

        await cluster.until(lambda: leaders() == preferred)
        await cluster.stop(back)
        await cluster.until(lambda: back not in leaders())
        await cluster.start(back)
        await cluster.until(lambda: leaders() == preferred)


@pytest.mark.parametrize("is_on", [True, False])
async def test_leaderships_are_given_back_where_they_are_balanced_at_all(tmp_path: Path, is_on: bool) -> None:
    settings = {"auto_leader_rebalance_enable": str(is_on).lower()}
    async with running(tmp_path, count=1, **settings):
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert {"leaders-given-back", "leader-balance"} & names == ({"leaders-given-back", "leader-balance"} if is_on else set())
