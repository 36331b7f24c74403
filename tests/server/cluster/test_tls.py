"""Brokers that speak TLS among themselves: replicas follow, requests reach the controller, and a broker that died is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import ErrorCode
from barnabas.testing.certificates import Certificates
from tests.server.cluster.in_process import create, running


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates") / "authority")


def settings(certificates: Certificates) -> dict[str, str]:
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SSL",
        "inter.broker.listener.name": "INSIDE",
        **{f"listener.name.inside.{key}": value for key, value in certificates.broker_settings.items()},
        "listener.name.inside.ssl.client.auth": "required",
    }


async def test_replicas_follow_and_changes_reach_the_controller(tmp_path: Path, certificates: Certificates) -> None:
    async with running(tmp_path, count=3, **settings(certificates)) as cluster:
        client = cluster.clients[cluster.others[0]]
        assert await create(client, "t", partitions=3) == ErrorCode.NONE
        image = cluster.controller.metadata
        for index in range(3):
            leader = image.topics["t"].partitions[index].leader
            assert await cluster.clients[leader].produce(b"x" * 100_000, index, name="t") == ErrorCode.NONE
        logs = [broker.partitions.get("t", index) for broker in cluster.brokers.values() for index in range(3)]
        assert [found is not None and not found.is_offline and found.log.log_end_offset for found in logs] == [1] * 9
        assert all(broker.metrics.tls_handshakes >= 2 for broker in cluster.brokers.values())
        await cluster.until(
            lambda: all(len(b.liveness_prober.reached) == 2 for b in cluster.brokers.values() if b.liveness_prober is not None)
        )
