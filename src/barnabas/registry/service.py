"""The schema registry as a service: connects its parts with a cluster.

One registry of a group writes. Before the first election, a registry that finds the group empty becomes the writer at once.
This is safe, because the store fences the earlier writer, and then no request waits for the election.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.operations import refresh
from barnabas.digits import is_number
from barnabas.errors import ConfigError
from barnabas.registry.core import errors
from barnabas.registry.core.commands import Command
from barnabas.registry.core.registry import Registry
from barnabas.registry.core.state import DEFAULT_LEVEL
from barnabas.registry.http.exchange import V1, encode
from barnabas.registry.http.forwarding import FORWARDED, forward
from barnabas.registry.http.routes import router_for
from barnabas.registry.http.surface import Forwarded, Surface
from barnabas.registry.store.election import Election
from barnabas.registry.store.interface import ReadOnly, Store, StoreFailed
from barnabas.registry.store.topic import REPLICAS, TopicStore
from barnabas.registry.store.writer import NotTheWriter, Writer
from barnabas.security.rights import ClusterRights
from barnabas.web.routing import HttpError, Request, Response, Router
from barnabas.web.service import ServiceContext, ServiceError

logger = logging.getLogger(__name__)
TOPIC = "kafkastore.topic"
GROUP = "schema.registry.group.id"
LEVEL = "schema.compatibility.level"
REPLICATION = "kafkastore.topic.replication.factor"
RETRY_S = 0.5  # between two attempts to reach a leader
# the longest wait of a write for a leader; an election takes group.initial.rebalance.delay.ms, 3 s by default
LEADER_WITHIN_S = 15.0


class RegistryService:
    """A registry over a topic; see `web/service.py: Service`.

    Args:
        context: the context of the host. Settings: `kafkastore.topic`, `schema.registry.group.id`, `schema.compatibility.level`,
            `kafkastore.topic.replication.factor`.
        registry, store: replace those that the service creates; for tests.
    """

    ready_lines: Sequence[str] = ()  # it has no other port

    def __init__(self, context: ServiceContext, registry: Registry | None = None, store: Store | None = None) -> None:
        self._context = context
        self._group = context.settings.get(GROUP, "schema-registry")
        topic = context.settings.get(TOPIC, "_schemas")
        self.registry = registry or Registry(default_level=_level(context.settings))
        self._store = store or TopicStore(context.client, topic, f"{self._group}-{topic}", _replicas(context.settings))
        self._writer = Writer(self.registry, self._store)
        self._election = Election(context.client, self._group, context.listener, self._leader_changed)
        self._client = AsyncClient(context.client)
        self._leader: str | None = None
        self._changed = asyncio.Event()
        self._taking_over: asyncio.Task[None] | None = None
        self._started = False
        self._elected = False
        self._closed = False
        self._read_only = ""  # why the store accepts no records
        self._rights = ClusterRights(context.client, context.settings) if context.secured else None
        self.router: Router = router_for(Surface(self.registry, self, self._rights))

    async def start(self) -> None:
        """Read all schemas, and take part in the election."""
        try:
            await self._store.start(self.registry.replay)
        except StoreFailed as error:
            raise ServiceError(str(error)) from error
        if await self._election.is_alone():
            self._leader = self._context.listener
            if not await self._is_read_only():
                await self._take_over()
        self._election.start()
        self._started = True

    async def close(self) -> None:
        """Leave the group, and stop."""
        self._started, self._closed = False, True
        self._changed.set()
        await self._election.close()
        task, self._taking_over = self._taking_over, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._writer.close()
        await self._store.close()
        await self._client.close()
        if self._rights is not None:
            await self._rights.close()

    def is_ready(self) -> bool:
        """Whether reads are answered and records of other registries still arrive."""
        return self._started and self._store.is_following()

    def error(self, error: HttpError) -> Response:
        """An error in the form of Confluent's registry."""
        body = encode({"error_code": error.code, "message": error.message})
        return Response(body, error.status, ((b"content-type", V1.encode()),))

    async def metrics(self) -> bytes:
        return b""

    @property
    def is_leader(self) -> bool:
        """Whether this registry writes."""
        return self._writer.is_writer

    # --- for the handlers

    async def write(self, request: Request, command: Command) -> Any:
        """Write, or let the leader answer."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LEADER_WITHIN_S
        while True:
            self._changed.clear()
            if self._writer.is_writer:
                with contextlib.suppress(NotTheWriter):
                    return await self._writer.submit(command)
            if self._elected and self._leader == self._context.listener:  # another registry wrote, or a write failed
                self._begin_to_write()
            if self._read_only and self._leader == self._context.listener:
                return self._answer_without_writing(command)
            leader = self._leader
            if leader is not None and leader != self._context.listener and FORWARDED not in request.headers:
                response = await forward(leader, request, self._peers())
                if response is not None:
                    raise Forwarded(response)
            if self._closed or loop.time() >= deadline:
                raise errors.no_leader()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(RETRY_S, deadline - loop.time())):
                    await self._changed.wait()

    def _answer_without_writing(self, command: Command) -> Any:
        """The answer to a command that changes nothing, such as the registration of a schema that exists; refuses all others."""
        outcome = self.registry.handle(command)
        if outcome.records:
            raise errors.not_permitted(f"The registry is in read-only mode: {self._read_only}")
        return outcome.answer

    def _peers(self) -> ssl.SSLContext | None:
        """The TLS context of connections to the leader; its files are read each time, since certificates may be renewed."""
        return None if self._context.peers is None else self._context.peers()

    async def cluster_id(self) -> str:
        """The id of the cluster."""
        if self._client.cluster.cluster_id is None:
            await self._client.run(refresh(self._client.config, self._client.cluster, []))
        return self._client.cluster.cluster_id or ""

    def group(self) -> str:
        """The id of the group."""
        return self._group

    # --- the election

    def _leader_changed(self, url: str | None) -> None:
        if url != self._leader:
            logger.info("event=registry-leader-changed leader=%s", url or "none")
        self._leader, self._elected = url, url is not None
        if url == self._context.listener:
            self._begin_to_write()
        elif url is not None:
            self._writer.step_down()
        self._changed.set()

    def _begin_to_write(self) -> None:
        if not self._writer.is_writer and (self._taking_over is None or self._taking_over.done()):
            self._taking_over = asyncio.create_task(self._take_over())

    async def _is_read_only(self) -> bool:
        """Try once to become the writer; whether the store is a copy that nobody writes to here."""
        try:
            await self._writer.take_over()
        except ReadOnly as error:
            self._read_only = str(error)
            logger.info("event=registry-read-only reason=%r", self._read_only)
            self._begin_to_write()
        except StoreFailed as error:
            logger.warning("event=registry-writer-refused reason=%r", str(error))
        return bool(self._read_only)

    async def _take_over(self) -> None:
        """Become the writer, and stay the writer while this registry is the leader."""
        while self._leader == self._context.listener and not self._writer.is_writer:
            try:
                await self._writer.take_over()
                self._read_only = ""
            except ReadOnly as error:
                if str(error) != self._read_only:
                    logger.info("event=registry-read-only reason=%r", str(error))
                self._read_only = str(error)
                self._changed.set()
                await asyncio.sleep(1)
            except StoreFailed as error:
                logger.warning("event=registry-writer-refused reason=%r", str(error))
                await asyncio.sleep(1)
        self._changed.set()


def _level(settings: Mapping[str, str]) -> str:
    """The compatibility level while clients have set none. Raises ConfigError."""
    level = settings.get(LEVEL, DEFAULT_LEVEL)
    if level.upper() not in errors.LEVELS:
        raise ConfigError(LEVEL, level, f"one of {', '.join(each.lower() for each in errors.LEVELS)}")
    return level.upper()


def _replicas(settings: Mapping[str, str]) -> int:
    """The number of replicas of the topic, if the registry creates it. Raises ConfigError."""
    text = settings.get(REPLICATION, str(REPLICAS))
    if not is_number(text, 2**15 - 1) or not int(text):
        raise ConfigError(REPLICATION, text, "a number from 1 on")
    return int(text)
