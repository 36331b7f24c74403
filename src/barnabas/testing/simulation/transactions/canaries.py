"""Deliberate faults of transactions in a broker: the checker must find each of them.

The broker's code does not contain them. A simulator that does not report one of them is broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from msgspec.structs import replace

from barnabas.coordination.runtime import CoordinatorRuntime
from barnabas.coordination.transactions import transaction as rules
from barnabas.errors import ErrorCode
from barnabas.replication.online_replica import OnlineReplica
from barnabas.server.transactions.add_partitions_to_txn import AddPartitionsToTxn
from barnabas.server.transactions.marker_sender import MarkerSender
from barnabas.storage.files import Files
from barnabas.testing.simulation.files import FaultyFiles


@contextmanager
def without_verification() -> Iterator[None]:
    """A partition accepts writes of an older client without asking the coordinator whether the transaction is open (KIP-890)."""
    join = AddPartitionsToTxn.join_at_once

    def believing(
        joining: AddPartitionsToTxn, name: str, owner: Any, partitions: Iterable[Any], *, adds: bool, **rest: Any
    ) -> Any:
        here = list(partitions)
        if adds:
            return join(joining, name, owner, here, adds=adds, **rest)
        return {(each.topic, each.index): ErrorCode.NONE for each in here}

    with mock.patch.object(AddPartitionsToTxn, "join_at_once", believing):
        yield


@contextmanager
def without_an_epoch_for_each_end() -> Iterator[None]:
    """The end of a transaction does not raise the epoch, even for clients of transactions version 2."""
    end = rules.end

    def older(before: Any, asking: Any, *, client_version: int, **rest: Any) -> Any:
        return end(before, asking, client_version=0, **rest)

    with mock.patch.object(rules, "end", older):
        yield


@contextmanager
def readers_pass_the_last_stable_offset() -> Iterator[None]:
    """A reader of committed records gets all records below the high watermark."""
    with mock.patch.object(OnlineReplica, "last_stable_offset", property(lambda replica: replica.high_watermark)):
        yield


def forgetting_what_was_aborted(files: FaultyFiles) -> Files:
    """A broker that starts without its indexes of aborted transactions."""
    for path, _ in files.disk.files():
        if path.suffix == ".txnindex":
            files.unlink(path)
    return files


@contextmanager
def one_marker_is_enough() -> Iterator[None]:
    """A coordinator completes a transaction as soon as its marker is in one partition."""
    send = MarkerSender.send

    def first_only(sender: MarkerSender, marker: Any, epoch: int, partitions: frozenset[Any], delivery: Any) -> None:
        send(sender, marker, epoch, frozenset(sorted(partitions)[:1]), _ForAll(delivery, partitions))

    with mock.patch.object(MarkerSender, "send", first_only):
        yield


class _ForAll:
    """Reports a marker in one partition as written in all partitions."""

    def __init__(self, delivery: Any, partitions: frozenset[Any]) -> None:
        self._delivery = delivery
        self._partitions = partitions

    @property
    def is_wanted(self) -> bool:
        return bool(self._delivery.is_wanted)

    def written(self, partitions: Any) -> None:
        self._delivery.written(self._partitions if partitions else partitions)


@contextmanager
def answering_before_the_record_is_committed() -> Iterator[None]:
    """A coordinator sends its decision, and then the markers, before its record is replicated."""

    async def at_once(runtime: CoordinatorRuntime[Any], commit: Any) -> None:
        """Returns without waiting for the commit."""

    with mock.patch.object(CoordinatorRuntime, "wait_for", at_once):
        yield


@contextmanager
def zombies_are_not_fenced() -> Iterator[None]:
    """The next owner of a transactional id gets the epoch of the former one."""
    init, fence = rules.init, rules.fence

    def same_owner(before: Any, expected: Any, timeout_ms: int, now_ms: int, take_id: Any) -> Any:
        after = init(before, expected, timeout_ms, now_ms, take_id)
        if before.producer_epoch < 0:
            return after
        return replace(after, producer_id=before.producer_id, producer_epoch=before.producer_epoch)

    def same_epoch(before: Any, now_ms: int, take_id: Any) -> Any:
        return replace(fence(before, now_ms, take_id), producer_epoch=before.producer_epoch)

    with mock.patch.object(rules, "init", same_owner), mock.patch.object(rules, "fence", same_epoch):
        yield
