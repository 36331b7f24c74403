"""Finds out at once when the process of another broker is gone.

Owns a connection to every other active broker, on which nothing is said. When a process ends in whatever way, its machine closes
its connections; when a new one is refused then, nobody listens there any more, and the member is told (`cluster/burial.py`). A machine
or a network that fails says nothing: then the broker is given up when its session ends.

Rules
  1. Only who was reached under a registration is found dead under it. A broker whose address refuses from the beginning (a firewall,
     a wrong advertised listener) is never.
  2. Refused means refused, twice: time that runs out, a host that cannot be reached, or a connection that is closed after it was made
     say nothing.
  3. Who was found dead is asked on, for as long as it is registered: where it is reached after all, that is taken back.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from barnabas.config.listeners import has_tls
from barnabas.server.peers import address_of, inter_broker_endpoint, inter_broker_listener

if TYPE_CHECKING:
    from barnabas.client.asynchronous import Address
    from barnabas.cluster.member import Member
    from barnabas.server.broker import Broker

# Between two attempts, at first and at most; twice as long each time. While a process ends it may take a connection and drop it at once.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0
CONNECT_TIMEOUT_S = 10.0
log = logging.getLogger(__name__)
Registered = tuple[int, int]  # broker, epoch of its registration


class Lookout:
    """Runs until `close`."""

    def __init__(self, broker: Broker, member: Member) -> None:
        self._member = member
        self._broker_id = broker.config.broker_id
        self._listener = inter_broker_listener(broker.config)
        self._tls = broker.tls.for_peers if has_tls(inter_broker_endpoint(broker.config).protocol) else None
        self._loop = broker.loop
        self._watches: dict[Registered, asyncio.Task[None]] = {}
        self.reached: set[Registered] = set()  # of those that are watched
        self._dead: set[Registered] = set()  # as the member was told
        self._task = broker.loop.create_task(self._follow(), name="lookout")

    async def close(self) -> None:
        tasks = [self._task, *self._watches.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self) -> None:
        """Watch whom the image has."""
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
            seen = image.brokers
            await self._member.wait_for(lambda now, seen=seen: now.brokers is not seen)  # type: ignore[misc]

    async def _watch(self, registered: Registered, address: Address) -> None:
        refusals, pause_s = 0, FIRST_PAUSE_S
        while True:
            began_s = self._loop.time()
            try:
                await self._stay_connected(registered, address)
                refusals = 0
            except ConnectionRefusedError:
                refusals += 1
                if registered in self.reached and refusals > 1:
                    self._found_dead(registered)
            except OSError:  # TimeoutError too
                refusals = 0
            if not refusals and self._loop.time() - began_s > LONGEST_PAUSE_S:
                pause_s = FIRST_PAUSE_S
                continue
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _stay_connected(self, registered: Registered, address: Address) -> None:
        """Until the connection is over; raises OSError where there is none."""
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            tls: dict[str, Any] = {} if self._tls is None else {"ssl": self._tls()}
            transport, silence = await self._loop.create_connection(_Silence, *address, **tls)
        self.reached.add(registered)
        self._found_alive(registered)
        try:
            await silence.ended.wait()
        finally:
            transport.abort()  # with TLS a close would wait for the other side's goodbye

    def _found_dead(self, registered: Registered) -> None:
        if registered not in self._dead:
            self._dead.add(registered)
            log.warning("event=broker-found-dead broker=%d epoch=%d", *registered)
            self._member.tell_dead(*registered)

    def _found_alive(self, registered: Registered) -> None:
        if registered in self._dead:
            self._dead.discard(registered)
            log.warning("event=broker-found-alive broker=%d epoch=%d", *registered)
            self._member.take_back_dead(*registered)


class _Silence(asyncio.BufferedProtocol):
    """Takes nothing in, and says when the connection is over."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._buffer = bytearray(64)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()
