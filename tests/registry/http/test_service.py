"""Whole registries over the topic of a real broker: restart, failover, forwarding, a killed broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from confluent_kafka.admin import AdminClient

from barnabas import limits
from barnabas.registry.service import RegistryService
from barnabas.testing import Broker
from barnabas.web.service import ServiceError
from tests.registry.http.asking import ask, service
from tests.waiting import until

QUICK = {"group.initial.rebalance.delay.ms": 0}


@asynccontextmanager
async def started(made: RegistryService) -> AsyncIterator[RegistryService]:
    try:
        await made.start()
        yield made
    finally:
        await made.close()
        await made.close()


@asynccontextmanager
async def served(bootstrap_servers: str) -> AsyncIterator[RegistryService]:
    """A registry behind a server of a few lines, so that others can forward to it."""
    holder: list[RegistryService] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, url, _ = head[0].split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:]) if name}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        made = await ask(holder[0].router, method, url, body, x_forward=headers["x-forward"])
        data = json.dumps(made.body, separators=(",", ":")).encode()
        told = (
            f"HTTP/1.1 {made.status} OK\r\nconnection: close\r\ncontent-type: {made.media}\r\ncontent-length: {len(data)}\r\n\r\n"
        )
        writer.write(told.encode() + data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, started(service(bootstrap_servers, f"http://127.0.0.1:{port}")) as made:
        holder.append(made)
        yield made


def test_a_restarted_registry_and_a_killed_broker_lose_nothing() -> None:
    async def scenario(broker: Broker) -> None:
        async with started(service(broker.bootstrap_servers)) as first:
            assert first.is_ready()
            assert first.is_leader
            for number in range(3):
                made = await ask(first.router, "POST", f"/subjects/s{number}/versions", {"schema": f'{{"f{number}":"int"}}'})
                assert made.body["id"] == number + 1
            await asyncio.to_thread(broker.kill)
            waiting = asyncio.create_task(ask(first.router, "POST", "/subjects/s3/versions", {"schema": '{"f3":"int"}'}))
            await asyncio.to_thread(broker.start)
            assert (await waiting).body["id"] == 4
        async with started(service(broker.bootstrap_servers)) as second:
            found = await ask(second.router, "GET", "/schemas")
            assert [each["id"] for each in found.body] == [1, 2, 3, 4]
            made = await ask(second.router, "POST", "/subjects/s9/versions", {"schema": '{"f9":"int"}'})
            assert made.body["id"] == 5
            cluster = await ask(second.router, "GET", "/v1/metadata/id")
            assert cluster.body["scope"]["clusters"]["kafka-cluster"]

    with Broker(QUICK) as broker:
        asyncio.run(scenario(broker))


def test_others_forward_to_the_leader_and_follow_it() -> None:
    async def scenario(broker: Broker) -> None:
        servers = broker.bootstrap_servers
        async with served(servers) as first, served(servers) as second:
            both = (first, second)
            await until(lambda: sum(each.is_leader for each in both) == 1)
            made = [
                await ask(each.router, "POST", f"/subjects/s{i}/versions", {"schema": f'{{"f{i}":"int"}}'})
                for i, each in enumerate(both)
            ]
            assert [each.body.get("id") for each in made] == [1, 2], made
            refused = [await ask(each.router, "PUT", "/mode", {"mode": "odd"}) for each in both]
            assert [each.body["error_code"] for each in refused] == [42204, 42204]
            await until(lambda: all(len(each.registry.state.subjects) == 2 for each in both))
            leader, other = both if first.is_leader else both[::-1]
            await leader.close()
            made_later = await ask(other.router, "POST", "/subjects/s2/versions", {"schema": '{"f2":"int"}'})
            assert made_later.body.get("id") == 3, made_later

    with Broker(QUICK) as broker:
        asyncio.run(scenario(broker))


def test_a_registry_without_its_topic_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCHEMAS_STALE_S", 1.0)

    async def scenario(broker: Broker) -> None:
        async with started(service(broker.bootstrap_servers)) as made:
            assert made.is_ready()
            await asyncio.to_thread(broker.kill)
            await until(lambda: not made.is_ready(), "a registry without a cluster is ready")
            await asyncio.to_thread(broker.start)
            await until(made.is_ready, "the registry did not find its topic again")
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            await asyncio.to_thread(admin.delete_topics(["_schemas"])["_schemas"].result)
            await until(lambda: not made.is_ready(), "a registry without its topic is ready")

    with Broker(QUICK) as broker:
        asyncio.run(scenario(broker))


def test_no_cluster_is_one_line() -> None:
    async def scenario() -> None:
        made = service("127.0.0.1:1", default_api_timeout_ms="300")
        with pytest.raises(ServiceError, match="_schemas"):
            async with started(made):
                pass

    asyncio.run(scenario())
