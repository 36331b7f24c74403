"""Brokers whose processes were found dead: removes their registrations, so that the cluster does not wait for the end of their
sessions.

A session ends some seconds after the last message of its broker, since a silent broker may be alive. But if a process ends,
the machine closes the connections of the process and refuses others. A broker that detects this reports it with the epoch of
the registration (`tell`). It withdraws the report if a process listens there after all (`take_back`). The plans of this module
have the same effect as the end of the session.

Rules
  1. Such a report is a hint and may be wrong: removing the registration of a live broker has the same effect as a session that
     ends too early. The controller elects leaders in higher epochs, and the fence refuses the broker's writes as controller.
     The broker stands down and registers again when it sees that its registration is gone.
  2. The controller unregisters other brokers. If the controller is dead, every broker tries, and the first successful commit
     makes its broker the successor.
  3. Only an ACTIVE registration with exactly this epoch is removed. A broker that is SHUTTING_DOWN closes its sockets in order.
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
    """A candidate for controller, and the operations of its claim."""

    broker_id: int
    claim: tuple[Operation, ...]


class DeadBrokers:
    """The epochs of brokers that were reported dead and are still registered."""

    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}  # broker id -> reported epoch

    def tell(self, broker_id: int, epoch: int) -> None:
        """Record that the process with this broker epoch is dead."""
        self._epochs[broker_id] = epoch

    def take_back(self, broker_id: int, epoch: int) -> None:
        """Withdraw a report; otherwise this broker would unregister a live broker when it becomes controller, since it keeps
        reports until then."""
        if self._epochs.get(broker_id) == epoch:
            del self._epochs[broker_id]

    def among(self, brokers: Mapping[int, BrokerRegistration]) -> list[BrokerRegistration]:
        """The registrations to remove; drops reports about brokers that are gone."""
        self._epochs = {i: epoch for i, epoch in self._epochs.items() if i in brokers and brokers[i].epoch == epoch}
        return [brokers[broker_id] for broker_id in self._epochs if brokers[broker_id].is_active]


def remove_registration(broker: BrokerRegistration, versions: Versions, *, successor: Successor | None) -> Plan:
    """Plan the removal of the registration, and of the controller's entry if the broker is controller.

    The commit conflicts if a broker has registered or a controller was elected since the image was made. Then the caller
    checks again.

    Args:
        successor: the next controller, if the dead broker was controller; None if the planning broker is controller.
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
