"""How a broker makes itself known, and how it knows its own registration again.

A registration is an ephemeral entry: it ends with the broker's session, and with it the broker counts as gone. Each gets an epoch
that no other had, from a counter written in the same commit, so that what a broker says can be told from what it said before it was gone.

Cases, by what stands at the broker's path:
    nothing                         register
    a registration of this process  an earlier session's that is about to vanish, or one whose answer was lost: replace it
    that of a former process        replace it, and free the controller's office where it held that: it had the same log directories,
                                    which this process has locked, so it is dead and only its session lives on
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
    """The registration with its epoch, and what makes it.

    Args:
        found: what stands in the store for this id.
        last_epoch: that any broker was given.

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
    """Whether `found` is of a dead process that `broker` goes on from: two that live cannot lock the same directory."""
    return not set(broker.log_dirs).isdisjoint(found.log_dirs)


def update(broker: BrokerRegistration, versions: Versions) -> list[Operation]:
    """Say something new (a state, addresses) under the registration that is there; conflicts when that is gone."""
    path = store_entries.broker_path(broker.broker_id)
    return [Put(path, store_entries.encode_broker(broker), versions.expected(path))]
