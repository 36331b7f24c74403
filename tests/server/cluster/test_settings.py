"""Settings of brokers of a cluster: who is asked, and for whom they hold."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol.messages import incremental_alter_configs as alter_configs
from tests.server.cluster.in_process import create, running
from tests.server.in_process import Client

TOPIC, BROKER, LOGGER = 2, 4, 8


@pytest.mark.parametrize("kind", ["the controller", "another"])
async def test_levels_of_loggers_are_altered_on_the_spot_and_the_rest_by_the_controller(tmp_path: Path, kind: str) -> None:
    async with running(tmp_path, count=2) as cluster:
        asked = cluster.controller.config.broker_id if kind == "the controller" else cluster.others[0]
        client = cluster.clients[asked]
        assert await create(client, "t", 1, 1) == ErrorCode.NONE
        logger = logging.getLogger(f"{__name__}.{kind}")
        wanted = [
            (TOPIC, "t", "retention.ms", "5"),
            (LOGGER, str(asked), logger.name, "ERROR"),
            (LOGGER, "9", logger.name, "DEBUG"),
            (TOPIC, "nobody's", "retention.ms", "5"),
        ]
        answer = await alter(client, wanted)
        assert [(each.resource_type, each.resource_name, each.error_code) for each in answer] == [
            (TOPIC, "t", ErrorCode.NONE),
            (LOGGER, str(asked), ErrorCode.NONE),
            (LOGGER, "9", ErrorCode.INVALID_REQUEST),
            (TOPIC, "nobody's", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]
        assert logger.level == logging.ERROR
        await cluster.until(lambda: all(b.controller.topic_config("t").retention_ms == 5 for b in cluster.brokers.values()))


async def test_numbers_of_threads_are_held_against_those_of_the_broker_that_is_named(tmp_path: Path) -> None:
    async with running(tmp_path, count=1) as cluster:
        await cluster.start(2, **{"num.io.threads": "40"})
        first, named = cluster.clients[1], cluster.clients[2]
        await cluster.until(lambda: len(cluster.brokers[1].metadata.brokers) == 2)

        async def set_to(client: Client, threads: int) -> int:
            (told,) = await alter(client, [(BROKER, "2", "num.io.threads", str(threads))])
            return int(told.error_code)

        assert [await set_to(named, threads) for threads in (81, 19, 80)] == [ErrorCode.INVALID_REQUEST] * 2 + [0]
        await cluster.until(lambda: cluster.brokers[2].controller.config.num_io_threads == 80)
        for client in (first, named):
            assert [await set_to(client, threads) for threads in (161, 39, 80)] == [ErrorCode.INVALID_REQUEST] * 2 + [0]
        (told,) = await alter(first, [(BROKER, "1", "num.io.threads", "17")])
        assert told.error_code == ErrorCode.INVALID_REQUEST


async def alter(
    client: Client, wanted: Sequence[tuple[int, str, str, str]]
) -> Sequence[alter_configs.AlterConfigsResourceResponse]:
    """Each a kind of resource, its name, a key and its value."""
    resources = [
        alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[alter_configs.AlterableConfig(name=key, config_operation=0, value=value)],
        )
        for kind, name, key, value in wanted
    ]
    request = alter_configs.IncrementalAlterConfigsRequest(resources=resources)
    answer = await client.ask((44, 1), request, alter_configs.IncrementalAlterConfigsResponse)
    told: Sequence[alter_configs.AlterConfigsResourceResponse] = answer.responses
    return told
