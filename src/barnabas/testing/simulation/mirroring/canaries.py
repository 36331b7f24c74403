"""Deliberate faults of mirroring in simulated brokers: the simulator must find each of them.

As in `canaries.py` of the cluster, the product's code does not contain them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest import mock

from msgspec.structs import replace

from barnabas.cluster.metadata import image
from barnabas.mirror.divergence import NO_EPOCH
from barnabas.mirror.partition_copy import PartitionCopy
from barnabas.mirror.status import PartitionStatus
from barnabas.storage.log.appender import LogAppender
from barnabas.storage.mirror_appender import MirrorAppender

Canary = Callable[[], AbstractContextManager[None]]


@contextmanager
def without_comparing_the_last_batch() -> Iterator[None]:
    """Another leader of a copy continues without a look at the last batch of the source."""
    with mock.patch.object(PartitionCopy, "_must_compare", property(lambda _: False)):
        yield


@contextmanager
def without_the_epoch_of_the_last_batch() -> Iterator[None]:
    """A copy does not tell the source which leader epoch its last batch has, so the source cannot see that it has lost that batch."""
    with mock.patch.object(PartitionCopy, "source_epoch", property(lambda _: NO_EPOCH, lambda *_: None), create=True):
        yield


@contextmanager
def with_local_writes() -> Iterator[None]:
    """A copy accepts the batches of clients."""
    with mock.patch.object(MirrorAppender, "append_as_leader", LogAppender.append_as_leader):
        yield


@contextmanager
def promoting_before_the_end() -> Iterator[None]:
    """A promoted copy is ready as soon as the source has answered once, although it has not everything."""
    with mock.patch.object(PartitionCopy, "is_at_source_end", property(lambda _: True)):
        yield


@contextmanager
def with_ids_of_copied_producers() -> Iterator[None]:
    """A copy tells that it has no producer ids, and its cluster has no range of ids of its own: producers get ids that its batches have."""
    status = PartitionCopy.status

    def without_ids(self: PartitionCopy, now_ms: int) -> PartitionStatus:
        return replace(status(self, now_ms), producer_id_end=0)

    with mock.patch.object(PartitionCopy, "status", without_ids), mock.patch.object(image, "_producer_id_ends", return_value=[0]):
        yield
