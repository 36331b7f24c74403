"""The state after a stop, in the fewest steps that the simulator found."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import pytest

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.results import NewTopic
from barnabas.protocol.records.batch import build_batch
from barnabas.testing.simulation.clients import client_config
from barnabas.testing.simulation.loop import World, new_loop
from barnabas.testing.simulation.node import Node

R = TypeVar("R")


@pytest.mark.parametrize("seed", range(8))
def test_a_stop_right_after_a_deletion_leaves_no_file_open(seed: int) -> None:
    world = World(seed)
    problems: list[str] = []
    node = Node(world, 1, {}, problems.append)
    loop = new_loop(world, "client", "client", problems.append)

    def finish(task: asyncio.Task[R]) -> R:
        world.run_until(task.done)
        return task.result()

    async def make_and_delete() -> None:
        client = AsyncClient(client_config(node.address, "client"))
        await client.create_topics([NewTopic("t", 3, 1)])
        for partition in range(3):
            await client.produce("t", partition, build_batch([(None, b"value")]))
        await client.delete_topics(["t"])
        await client.close()

    finish(node.start())
    finish(loop.create_task(make_and_delete()))
    finish(node.stop())
    assert node.gone() == 0
    assert problems == []
