"""Brokers whose processes were found dead: their registrations are taken away, so that nobody waits for their sessions to end.

A session ends some seconds after its broker was last heard, since a silent broker may be alive. That a process is gone is told by its
machine: it ends the process's connections and refuses others. Who finds that out says so, with the epoch of the registration that it
was found under (`tell`), and takes it back where somebody listens there after all (`take_back`). The plans made here do what the end of
the session would.

Rules
  1. That a broker is dead is a hint. It need not be true: whoever takes a living broker's registration away has done what a session that
     ends too early does. Leaders are elected in new epochs, what the broker writes as controller is refused by the fence, and it stands
     down and registers anew when it sees that it is gone.
  2. The controller unregisters the others. Where the controller is dead, everybody does, and the first whose commit is done is its
     successor.
  3. Only an ACTIVE registration with the very epoch is removed. Who says that it is SHUTTING_DOWN closes its sockets in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerRegistration, MetadataDelta
from barnabas.cluster.planning.plan import Plan, Versions
from barnabas.cluster.store.interface import ABSENT, Check, Operation, Remove


class Successor(NamedTuple):
    """A broker that stands for controller, and what it writes for that."""

    broker_id: int
    claim: tuple[Operation, ...]


class DeadBrokers:
    """The broker epochs that were told, as long as they mean something."""

    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}  # by broker

    def tell(self, broker_id: int, epoch: int) -> None:
        """The process that registered under this epoch is gone."""
        self._epochs[broker_id] = epoch

    def take_back(self, broker_id: int, epoch: int) -> None:
        """It was not: who is not controller keeps what it was told, and would unregister a living broker when it becomes controller."""
        if self._epochs.get(broker_id) == epoch:
            del self._epochs[broker_id]

    def among(self, brokers: Mapping[int, BrokerRegistration]) -> list[BrokerRegistration]:
        """The registrations that are to be taken away; forgets who is not there any more."""
        self._epochs = {i: epoch for i, epoch in self._epochs.items() if i in brokers and brokers[i].epoch == epoch}
        return [brokers[broker_id] for broker_id in self._epochs if brokers[broker_id].is_active]


def remove_registration(broker: BrokerRegistration, versions: Versions, *, successor: Successor | None) -> Plan:
    """The registration goes, and with it the office of controller where the broker held that.

    It conflicts when a broker has registered or somebody was elected since the image was made: then it is to be looked at anew.

    Args:
        successor: who takes the office that the broker held; without one the planner has it.
    """
    path = store_entries.broker_path(broker.broker_id)
    operations: list[Operation] = [
        Check(entry, versions.expected(entry))
        for entry in (store_entries.CONTROLLER_EPOCH, store_entries.BROKER_EPOCH)
        if versions.expected(entry) != ABSENT
    ]
    operations.append(Remove(path, versions.expected(path)))
    delta = MetadataDelta(gone_brokers=(broker.broker_id,))
    if successor is not None:
        operations += [Remove(store_entries.CONTROLLER, versions.expected(store_entries.CONTROLLER)), *successor.claim]
        delta = replace(delta, controller_id=successor.broker_id)
    return Plan(tuple(operations), delta, claims_controller=successor is not None)
