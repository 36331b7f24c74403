"""The audit log: principals, hosts, their requests and the decisions; to a file and to the topic `__audit_log`.

Owns the entries that wait to be written, and the sampling of frequent decisions.

Rules
  1. No request waits for the audit log. Entries that come faster than the log can write are dropped; the log gets their number.
  2. The log gets all refusals and changes. Of allowed reads, writes and look-ups it gets an evenly spread share
     (`audit.log.data.sample.rate`). This includes produce requests that a connection repeats and that need no further decision.
  3. When many entries wait, the remaining room is for allowed changes only.
  4. Texts that peers choose are cut. They contain no secret, because only names are written.
  5. The audit log leaves out the brokers' own writes of it and fetches of it, because each entry would make another one. It has an entry
     of its creation if a broker asks the controller for it.
  6. In a cluster a broker writes to a partition that it leads, or sends the batch to the leader of one. After a failure it tries again for
     some seconds, while entries wait.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas import limits
from barnabas.errors import BarnabasError, ErrorCode, KafkaError
from barnabas.protocol.messages import APIS
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.records.batch import build_batch
from barnabas.security.access import Access
from barnabas.security.acls import AUDIT_TOPIC, Operation, ResourceType
from barnabas.server.authorization.access_control import AccessControl
from barnabas.server.cluster.peers import ClientError, Peers, peers_of

if TYPE_CHECKING:
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.security.authorizer import Session
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)
FLUSH_S = 0.2  # entries are collected this long, so that a batch is worth its append
PAUSES_S = (0.1, 0.3, 1.0, 2.0)  # between attempts to write to the topic, while a leader is elected or a broker is down
LONGEST_LAST_PAUSE_S = 0.5  # at a stop, when the broker hands over its partitions or the whole cluster ends
SAMPLED = frozenset(
    {
        Operation.READ,
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.DESCRIBE_TOKENS,
        Operation.CLUSTER_ACTION,
        Operation.IDEMPOTENT_WRITE,
    }
)


class Entry(NamedTuple):
    """One decision."""

    time_ms: int
    session: Session
    api_key: int
    client_id: str | None
    operation: Operation
    resource_type: ResourceType
    name: str
    allowed: bool


class AuditLog:
    """The audit log of one broker."""

    def __init__(self, services: Services) -> None:
        config = services.config
        self._services = services
        self._rate = config.audit_log_data_sample_rate
        self._file = None if config.audit_log_file is None else Path(config.audit_log_file)
        self._uses_topic = config.audit_log_topic_enable
        # of lines in a batch, because a topic takes no batch larger than `message.max.bytes`
        self._enough_bytes = config.message_max_bytes // 2
        self._credit = 0.0
        self._waiting: deque[Entry] = deque()
        self._dropped = 0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._peers: Peers | None = None
        self._is_closing = False

    def note(
        self, session: Session, asked: tuple[int, str | None], what: tuple[Operation, ResourceType, str], allowed: bool
    ) -> None:
        """Add a decision to the log, unless it is left out by sampling.

        Args:
            asked: the API key and the client id of the request.
        """
        is_sampled = what[0] in SAMPLED
        if not (allowed and is_sampled) or self._due(1):
            self._take(session, asked, what, allowed=allowed, is_change=allowed and not is_sampled)

    @property
    def samples(self) -> bool:
        return self._rate > 0

    def note_more(
        self, session: Session, asked: tuple[int, str | None], what: tuple[Operation, ResourceType, str], count: int
    ) -> None:
        """The same as `note`, for `count` requests like one that was allowed."""
        for _ in range(self._due(count)):
            self._take(session, asked, what, allowed=True, is_change=False)

    def _due(self, count: int) -> int:
        """The number of sampled requests among `count`."""
        self._credit += self._rate * count
        due = int(self._credit)
        self._credit -= due
        return due

    def _take(
        self,
        session: Session,
        asked: tuple[int, str | None],
        what: tuple[Operation, ResourceType, str],
        *,
        allowed: bool,
        is_change: bool,
    ) -> None:
        room = limits.MAX_AUDIT_ENTRIES if is_change else limits.MAX_AUDIT_ENTRIES // 2
        if len(self._waiting) >= room:
            self._dropped += 1
            return
        self._waiting.append(Entry(self._services.clock.now_ms(), session, asked[0], asked[1], *what, allowed))
        if self._timer is None and self._writing is None:
            self._timer = self._services.loop.call_later(FLUSH_S, self._begin)

    async def close(self) -> None:
        """Write the waiting entries."""
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await self._writing
        await self._write_all()
        if self._peers is not None:
            await self._peers.close()

    def _begin(self) -> None:
        self._timer = None
        self._writing = self._services.loop.create_task(self._write_all())
        self._writing.add_done_callback(self._end)

    def _end(self, _: asyncio.Task[None]) -> None:
        self._writing = None
        if self._waiting and self._timer is None:
            self._timer = self._services.loop.call_later(FLUSH_S, self._begin)

    async def _write_all(self) -> None:
        while self._waiting or self._dropped:
            lines, size = list[bytes](), 0
            while self._waiting and len(lines) < limits.MAX_AUDIT_BATCH and size < self._enough_bytes:
                lines.append(_line(self._waiting.popleft(), self._services.config.broker_id))
                size += len(lines[-1])
            if self._dropped:
                lines.append(json.dumps({"broker": self._services.config.broker_id, "dropped": self._dropped}).encode())
                self._dropped = 0
            await self._write(lines)

    async def _write(self, lines: Sequence[bytes]) -> None:
        """Write lines to the file and the topic. A failure is only logged, because the clients have their answers already."""
        if self._file is not None:
            try:
                await self._services.loop.run_in_executor(self._services.io_threads, _append, self._file, lines)
            except OSError as error:
                logger.error("event=audit-not-written entries=%d file=%s error=%r", len(lines), self._file, str(error))
        if self._uses_topic:
            try:
                await self._to_topic(lines)
            except BarnabasError as error:
                logger.error("event=audit-not-written entries=%d topic=%s error=%r", len(lines), AUDIT_TOPIC, str(error))

    async def _to_topic(self, lines: Sequence[bytes]) -> None:
        """Append lines to the topic; raises BarnabasError if all attempts fail."""
        batch = bytes(build_batch([(None, line) for line in lines], timestamp_ms=self._services.clock.now_ms()))
        for pause_s in PAUSES_S:
            try:
                await self._append_to_topic(batch)
                return
            except (KafkaError, ClientError) as error:
                if self._is_closing and pause_s > LONGEST_LAST_PAUSE_S:
                    raise
                logger.info("event=audit-waits topic=%s error=%r", AUDIT_TOPIC, str(error))
            await asyncio.sleep(pause_s)
        await self._append_to_topic(batch)

    async def _append_to_topic(self, batch: bytes) -> None:
        services = self._services
        if services.metadata.topic(AUDIT_TOPIC) is None:
            error = (await services.controller.auto_create([AUDIT_TOPIC]))[AUDIT_TOPIC]
            if error is not None:
                raise error
        mine = self._led_here()
        if mine is not None:
            mine.append_as_leader(memoryview(bytearray(batch)), services.clock.now_ms(), acks_all=False)
            return
        state = services.metadata.partition(AUDIT_TOPIC, 0)
        if self._peers is None:
            self._peers = peers_of(lambda: services.metadata, services, "audit")
        data = TopicProduceData(name=AUDIT_TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
        request = ProduceRequest(acks=1, timeout_ms=services.config.request_timeout_ms, topic_data=[data])
        answer = await self._peers.send(-1 if state is None else state.leader, request, at_most=LAST_VERSION_BY_NAME)
        (answered,) = answer.responses[0].partition_responses
        if answered.error_code:
            raise KafkaError(ErrorCode(answered.error_code), answered.error_message)

    def _led_here(self) -> LeaderPartition | None:
        topic = self._services.metadata.topic(AUDIT_TOPIC)
        for index in range(0 if topic is None else len(topic.partitions)):
            found = self._services.partitions.get(AUDIT_TOPIC, index)
            if found is not None and found.is_leader:
                return found
        return None


LAST_VERSION_BY_NAME = 12  # of Produce; later versions name topics by id


def _line(entry: Entry, broker_id: int) -> bytes:
    session = entry.session
    fields: dict[str, Any] = {
        "time": datetime.fromtimestamp(entry.time_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        "broker": broker_id,
        "principal": _cut(session.principal),
        "host": session.host,
        "client_id": None if entry.client_id is None else _cut(entry.client_id),
        "api": APIS[entry.api_key][1],
        "operation": entry.operation.name,
        "resource": entry.resource_type.name,
        "name": _cut(entry.name),
        "allowed": entry.allowed,
    }
    return json.dumps(fields).encode()


def _cut(text: str) -> str:
    return text if len(text) <= limits.MAX_AUDIT_TEXT else text[: limits.MAX_AUDIT_TEXT] + "…"


def _append(path: Path, lines: Sequence[bytes]) -> None:
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))


def audit_of(services: Services, authorizer: AccessControl) -> AuditLog | None:
    """The audit log that the configuration asks for, connected to the authorizer."""
    config = services.config
    if config.audit_log_file is None and not config.audit_log_topic_enable:
        return None
    audit = AuditLog(services)
    authorizer.audited = lambda access, api_key, client_id: AuditedAccess(access, audit, api_key, client_id)
    return audit


class AuditedAccess(Access):
    """The rights of one session for one request; the audit log gets each decision."""

    __slots__ = ("_asked", "_audit", "_inner")

    def __init__(self, inner: Access, audit: AuditLog, api_key: int, client_id: str | None) -> None:
        self.session, self.version = inner.session, inner.version
        self.principal, self.groups = inner.principal, inner.groups
        self._inner = inner
        self._audit = audit
        self._asked = (api_key, client_id)

    @property
    def silent(self) -> Access:
        return self._inner

    def allows(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        allowed = self._inner.allows(operation, kind, name)
        if not (allowed and operation is Operation.WRITE and (kind, name) == (ResourceType.TOPIC, AUDIT_TOPIC)):
            self._audit.note(self.session, self._asked, (operation, kind, name), allowed)
        return allowed

    def sampled(self, operation: Operation, kind: ResourceType, name: str) -> Callable[[int], None] | None:
        if not self._audit.samples or name == AUDIT_TOPIC:
            return None
        return partial(self._audit.note_more, self.session, self._asked, (operation, kind, name))

    def note(self, operation: Operation, kind: ResourceType, name: str) -> None:
        self._audit.note(self.session, self._asked, (operation, kind, name), True)

    def allows_anywhere(self, operation: Operation, kind: ResourceType) -> bool:
        allowed = self._inner.allows_anywhere(operation, kind)
        self._audit.note(self.session, self._asked, (operation, kind, "*"), allowed)
        return allowed

    def operations(self, kind: ResourceType, name: str) -> int:
        return self._inner.operations(kind, name)
