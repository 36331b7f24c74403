"""Finds out that the process of another broker has ended, or that it hangs.

Owns a connection to every other active broker. When a process ends, its machine closes its connections. If the machine then refuses a
connection, no process listens there any more, and the prober tells the member (`cluster/controller/dead_brokers.py`). A failed machine, a
failed network or a process that hangs refuses nothing. So the prober regularly asks for a sign of life on each connection. It tells the
member which brokers are silent for too long (`cluster/membership/failure_detector.py`).

Rules
  1. A broker is found dead only in a registration in which the prober has reached it. A broker whose address refuses from the beginning (a
     firewall, a wrong advertised listener) is never found dead.
  2. Only two refused connections count. A timeout, an unreachable host, or a connection that closes after it was made prove nothing.
  3. The prober continues to ask a broker that was found dead, as long as it is registered. If the prober reaches it or gets an answer, it
     takes the finding back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.client.asynchronous import AsyncConnection
from barnabas.client.errors import ClientError
from barnabas.client.plans import Call
from barnabas.cluster.membership.failure_detector import FailureDetector, Registered
from barnabas.errors import BarnabasError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from barnabas.server.cluster.peers import address_of, client_config, inter_broker_listener

if TYPE_CHECKING:
    from barnabas.client.config import Address
    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.server.services import Services

# The pause between attempts doubles up to the second value. A process that ends may accept a connection and drop it at once.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0
CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_MS = 60_000  # then the prober makes another connection
ASKED_IN_A_HEARTBEAT = 20  # probes in one `broker.heartbeat.interval.ms`
# the interval is this much longer, because the loop answers there and may be busy (`liveness_responder.py`)
TIMES_OVER_TLS = 2
# For a broker that does not announce BrokerHeartbeat: it knows this request, which changes nothing
OLDER_SIGN_OF_LIFE = Call(WriteTxnMarkersRequest(markers=[]))
logger = logging.getLogger(__name__)


class LivenessProber:
    """Probes the other brokers until `close`."""

    def __init__(self, services: Services, member: Member) -> None:
        config = services.config
        self._member = member
        self._broker_id = config.broker_id
        self._sign_of_life = Call(BrokerHeartbeatRequest(broker_id=config.broker_id))
        self._listener = inter_broker_listener(config)
        self._client = client_config(services, "lookout", ANSWER_TIMEOUT_MS)
        self._loop = services.loop
        self._watches: dict[Registered, asyncio.Task[None]] = {}
        self._connections: dict[Registered, AsyncConnection] = {}
        self._questions: set[asyncio.Future[object]] = set()
        interval_ms = config.broker_heartbeat_interval_ms / ASKED_IN_A_HEARTBEAT
        if self._client.tls is not None:
            interval_ms *= TIMES_OVER_TLS
        self._silence = FailureDetector(interval_ms, config.metadata_session_timeout_ms)
        self.reached: set[Registered] = set()  # watched brokers that were reached
        self._dead: set[Registered] = set()  # brokers that the member was told are dead
        self._tasks = [
            services.loop.create_task(self._follow(), name="lookout"),
            services.loop.create_task(self._ask_for_ever(), name="lookout"),
        ]

    async def close(self) -> None:
        tasks: list[asyncio.Future[Any]] = [*self._tasks, *self._watches.values(), *self._questions]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self) -> None:
        """Watch the brokers that the image has."""
        while True:
            image = self._member.image
            wanted: dict[Registered, Address] = {}
            for each in image.brokers.values():
                address = address_of(image, each.broker_id, self._listener)
                if each.is_active and each.broker_id != self._broker_id and address is not None:
                    wanted[each.broker_id, each.epoch] = address
            for registered in self._watches.keys() - wanted.keys():
                self._watches.pop(registered).cancel()
                self.reached.discard(registered)
                self._dead.discard(registered)
            for registered in wanted.keys() - self._watches.keys():
                self._watches[registered] = self._loop.create_task(self._watch(registered, wanted[registered]), name="lookout")
            self._silence.changed(len(wanted) + 1, _replicas(image) // (len(wanted) + 1))
            seen = image.brokers
            await self._member.wait_for(_other_brokers_than(seen))

    # Connections

    async def _watch(self, registered: Registered, address: Address) -> None:
        refusals, pause_s = 0, FIRST_PAUSE_S
        while True:
            began_s = self._loop.time()
            try:
                await self._stay_connected(registered, address)
                refusals = 0
            except (BarnabasError, OSError) as error:  # includes TimeoutError
                refusals = refusals + 1 if isinstance(error.__cause__, ConnectionRefusedError) else 0
                if registered in self.reached and refusals > 1:
                    self._found_dead(registered, "refuses connections")
            if not refusals and self._loop.time() - began_s > LONGEST_PAUSE_S:
                pause_s = FIRST_PAUSE_S
                continue
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _stay_connected(self, registered: Registered, address: Address) -> None:
        """Connect, and wait until the connection is lost; raises BarnabasError or OSError if it cannot connect."""
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            connection = await AsyncConnection.open(address, self._client)
        try:
            self.reached.add(registered)
            self._connections[registered] = connection
            self._silence.reached(registered)
            self._found_alive(registered)
            await connection.wait_lost()
        finally:
            self._connections.pop(registered, None)
            self._silence.lost(registered)
            connection.close()

    # Signs of life

    async def _ask_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._silence.interval_ms / 1000)
            look = self._silence.look(self._loop.time() * 1000)
            for registered in look.silent:
                self._found_dead(registered, "is silent")
            for registered in look.ask:
                self._ask(registered, self._connections[registered])

    def _ask(self, registered: Registered, connection: AsyncConnection) -> None:
        call = self._sign_of_life if ApiKey.BROKER_HEARTBEAT in connection.wire.versions else OLDER_SIGN_OF_LIFE
        try:
            question = connection.request_at_once(call)
        except ClientError:
            return  # `_watch` learns that the connection is lost
        if question is None:
            question = self._loop.create_task(connection.request(call))
        self._questions.add(question)
        question.add_done_callback(partial(self._heard, registered, connection))

    def _heard(self, registered: Registered, connection: AsyncConnection, question: asyncio.Future[object]) -> None:
        self._questions.discard(question)
        if question.cancelled() or question.exception() is not None or self._connections.get(registered) is not connection:
            return
        self._silence.answered(registered, self._loop.time() * 1000)
        self._found_alive(registered)

    # Reports to the member

    def _found_dead(self, registered: Registered, why: str) -> None:
        if registered not in self._dead:
            self._dead.add(registered)
            logger.warning("event=broker-found-dead broker=%d epoch=%d reason=%r", *registered, why)
            self._member.tell_dead(*registered)

    def _found_alive(self, registered: Registered) -> None:
        if registered in self._dead:
            self._dead.discard(registered)
            logger.warning("event=broker-found-alive broker=%d epoch=%d", *registered)
            self._member.take_back_dead(*registered)


def _other_brokers_than(seen: object) -> Callable[[MetadataImage], bool]:
    return lambda image: image.brokers is not seen


def _replicas(image: MetadataImage) -> int:
    return sum(len(state.replicas) for topic in image.topics.values() for state in topic.partitions)
