"""Registering a broker, and recognising its own registration.

A registration is an ephemeral entry: it ends with the broker's session, and then the broker counts as gone. Each registration
gets a unique epoch from a counter in the same commit. It separates a broker's messages from those before the registration.

Cases, by the entry at the broker's path:
    no entry                    register
    an entry of this process    replace it: it is from an earlier session that ends soon, or the answer to its commit was lost
    an entry of a former one    replace it, and also remove the controller's entry if the former one was controller: it had the
                                same log directories, which this process has locked, so it is dead and only its session is left
    an entry of another one     refuse: the id is in use
"""

from __future__ import annotations

from msgspec.structs import replace

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerRegistration
from barnabas.cluster.planning.plan import Versions
from barnabas.cluster.store.interface import ABSENT, Operation, Put, Remove
from barnabas.errors import BarnabasError


class BrokerIdInUse(BarnabasError):
    """Another live broker has this id."""

    def __init__(self, other: BrokerRegistration) -> None:
        super().__init__(other)
        self.other = other

    def __str__(self) -> str:
        where = ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in self.other.endpoints) or "an unknown address"
        return f"broker id {self.other.broker_id} is in use by a live broker at {where} (broker epoch {self.other.epoch})"


def register(
    broker: BrokerRegistration, found: BrokerRegistration | None, last_epoch: int, versions: Versions
) -> tuple[BrokerRegistration, list[Operation]]:
    """The registration with its epoch, and the operations that create it.

    Args:
        found: the entry in the store for this id.
        last_epoch: the last epoch that was given to any broker.

    Raises:
        BrokerIdInUse: another process has the id.
    """
    if found is not None and found.incarnation != broker.incarnation and not is_former_self(broker, found):
        raise BrokerIdInUse(found)
    registered = replace(broker, epoch=last_epoch + 1)
    path = store_entries.broker_path(broker.broker_id)
    operations: list[Operation] = []
    if found is not None:
        operations.append(Remove(path, versions.expected(path)))
    operations += [
        Put(path, store_entries.encode_broker(registered), ABSENT, ephemeral=True),
        Put(store_entries.BROKER_EPOCH, store_entries.encode(registered.epoch), versions.expected(store_entries.BROKER_EPOCH)),
    ]
    return registered, operations


def is_former_self(broker: BrokerRegistration, found: BrokerRegistration) -> bool:
    """Whether `found` is from a dead process that had a directory of `broker`: two live processes cannot lock the same
    directory."""
    return not set(broker.log_dirs).isdisjoint(found.log_dirs)


def update(broker: BrokerRegistration, versions: Versions) -> list[Operation]:
    """Change the content (state, addresses) of the existing registration; the commit conflicts if the registration is gone."""
    path = store_entries.broker_path(broker.broker_id)
    return [Put(path, store_entries.encode_broker(broker), versions.expected(path))]
