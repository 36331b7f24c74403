"""Registering a broker, and recognising its own registration.

A registration is an ephemeral entry: it ends with the broker's session, and then the broker counts as gone. Each registration
gets a unique epoch from a counter in the same commit. So a broker's messages can be told from those before it was gone.

Cases, by the entry at the broker's path:
    nothing                         register
    a registration of this process  an earlier session's that is about to vanish, or one whose answer was lost: replace it
    that of a former process        replace it, and also remove the controller's entry if it was controller: it had the same log
                                    directories, which this process has locked, so it is dead and only its session is left
    another process's               the id is in use: refused
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
        BrokerIdInUse: it is another process's.
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
    """Whether `found` is of a dead process whose directories `broker` has: two live processes cannot lock the same
    directory."""
    return not set(broker.log_dirs).isdisjoint(found.log_dirs)


def update(broker: BrokerRegistration, versions: Versions) -> list[Operation]:
    """Change the content (state, addresses) of the existing registration; conflicts if it is gone."""
    path = store_entries.broker_path(broker.broker_id)
    return [Put(path, store_entries.encode_broker(broker), versions.expected(path))]
