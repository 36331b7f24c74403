"""A ZooKeeper for several simulated brokers: one tree, sessions that expire in virtual time, notifications of watches with a
delay.

Owns the sessions: which clients can reach the ensemble, and when the sessions of the others expire.

Rules
  1. A client gets events in its own process, some time after they happened, in order.
  2. A client that is cut off gets a notification after at most a third of its session timeout. At the end of the timeout its
     session expires, even if the client cannot learn it. When the client is connected again, it gets the state of its session.
  3. The session of a dead or frozen process exists until its timeout.
  4. Watches of one client can be late (`be_late`). Events of its session come in time, because the client's library measures
     this time. If the client asks to catch up, it gets the late notifications first.

The ensemble itself does not fail: for a client, a lost server has the same effect as being cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from barnabas.cluster.store.interface import Operation, SessionEvent, SessionState, StoreUnavailable
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.testing.simulation.loop import VirtualLoop, World, new_loop

HOST = "zookeeper"


class VirtualStore(MemoryStore):
    """One broker's session; its callbacks run in `loop`."""

    def __init__(self, ensemble: Ensemble, loop: VirtualLoop) -> None:
        self._ensemble = ensemble
        self._loop = loop
        self._is_due = False
        self.late_until_s = 0.0
        super().__init__(ensemble.tree)

    @property
    def session_timeout_ms(self) -> int:
        return int(self._ensemble.session_timeout_s * 1000)

    def commit(self, operations: Sequence[Operation]) -> int:
        is_reachable = self.session.state is SessionState.CONNECTED and not self._ensemble.is_cut_off(self._loop.host)
        try:
            return super().commit(operations)
        except StoreUnavailable:
            if is_reachable:
                self._ensemble.reply_lost(self)
            raise

    def close(self) -> None:
        super().close()
        self._ensemble.forget(self)

    def _check_connected(self) -> None:
        if self._ensemble.is_cut_off(self._loop.host):
            self.suspend()  # the request shows that the connection is lost
        super()._check_connected()

    def _tell(self) -> None:
        late_s = self.late_until_s - self._loop.time()
        if late_s > 0 and any(isinstance(event, SessionEvent) for event in self._events):
            self._loop.call_later(self._ensemble.delay_s(), self._tell_now)
        elif not self._is_due:
            self._is_due = True
            self._loop.call_later(max(late_s, self._ensemble.delay_s()), self._tell_now)

    def _tell_now(self) -> None:
        self._is_due = False
        super()._tell()


class Ensemble:
    """The ensemble that all brokers share.

    Args:
        session_timeout_s: the timeout of every session in seconds.
    """

    def __init__(self, world: World, session_timeout_s: float) -> None:
        self.tree = MemoryTree()
        self.session_timeout_s = session_timeout_s
        self._world = world
        self._random = Random(world.random.getrandbits(64))
        self._stores: dict[str, VirtualStore] = {}  # host -> store of its broker
        self._loop = new_loop(world, HOST, HOST, world.note)
        self._cut_off: dict[str, int] = {}  # host -> number of its last cut
        self._cuts = 0

    def open(self, loop: VirtualLoop) -> VirtualStore:
        store = self._stores[loop.host] = VirtualStore(self, loop)
        if loop.host in self._cut_off:
            store.suspend()
            self._loop.call_later(self.session_timeout_s, self._give_up, loop.host, self._cut_off[loop.host], store)
        return store

    def forget(self, store: VirtualStore) -> None:
        """The session was closed."""
        for host in [host for host, each in self._stores.items() if each is store]:
            del self._stores[host]

    def is_cut_off(self, host: str) -> bool:
        return host in self._cut_off

    def delay_s(self) -> float:
        return self._random.choice((0.0005, 0.0005, 0.005, 0.1)) * (0.5 + self._random.random())

    # --- faults of clients

    def cut_off(self, host: str) -> None:
        """The machine cannot reach the ensemble any more."""
        if host in self._cut_off:
            return
        self._world.note(f"{host} is cut off from {HOST}")
        self._cuts += 1
        self._cut_off[host] = self._cuts
        store = self._stores.get(host)
        if store is not None:
            self._loop.call_later(self.session_timeout_s / 3 * self._random.random(), self._notice, host, self._cuts)
            self._loop.call_later(self.session_timeout_s, self._give_up, host, self._cuts, store)

    def reconnect(self, host: str) -> None:
        if self._cut_off.pop(host, None) is not None:
            self._world.note(f"{host} reaches {HOST} again")
            store = self._stores.get(host)
            if store is not None:
                store.suspend()  # also after a cut that was too short to be noticed
                store.resume()

    def expire(self, host: str) -> None:
        """Expire the session of a machine that is connected."""
        store = self._stores.get(host)
        if store is not None and host not in self._cut_off:
            self._world.note(f"the session of {host} expires")
            store.expire()

    def freeze(self, host: str, while_s: float) -> None:
        """The process on the machine does nothing for `while_s` seconds, and neither does its client. If this is too long, its
        session expires."""
        store = self._stores.get(host)
        if store is None or host in self._cut_off or while_s < self.session_timeout_s:
            return
        self._loop.call_later(self.session_timeout_s, self._miss, host, store)
        self._loop.call_later(while_s, self._come_back, host, store)

    def be_late(self, host: str, while_s: float) -> None:
        """Delay the notifications of the machine's watches for `while_s` seconds; then they come all at once."""
        store = self._stores.get(host)
        if store is not None:
            self._world.note(f"watches of {host} are late")
            store.late_until_s = self._world.now_s + while_s

    def lose_reply(self, host: str) -> None:
        """The connection breaks during the next commit, which is executed or not."""
        store = self._stores.get(host)
        if store is not None and host not in self._cut_off:
            store.lose_next_reply(done=self._random.random() < 0.5)

    def reply_lost(self, store: VirtualStore) -> None:
        """The reply was lost; restore the connection soon."""
        for host in [host for host, each in self._stores.items() if each is store]:
            self._loop.call_later(self.session_timeout_s / 4, self._come_back, host, store)

    def died(self, host: str) -> None:
        """The process on the machine has died."""
        store = self._stores.pop(host, None)
        if store is not None:
            self.tree.clients.remove(store)
            self._loop.call_later(self.session_timeout_s, self.tree.end, store.session.session_id)

    def _notice(self, host: str, cut: int) -> None:
        store = self._stores.get(host)
        if self._cut_off.get(host) == cut and store is not None:
            store.suspend()

    def _give_up(self, host: str, cut: int, store: VirtualStore) -> None:
        if self._cut_off.get(host) == cut:
            store.suspend()
            self.tree.end(store.session.session_id)

    def _miss(self, host: str, store: VirtualStore) -> None:
        if self._stores.get(host) is store:
            store.suspend()
            self.tree.end(store.session.session_id)

    def _come_back(self, host: str, store: VirtualStore) -> None:
        if self._stores.get(host) is store and host not in self._cut_off:
            store.resume()
