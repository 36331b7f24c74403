"""The checks at the end, when no transaction is open and all committed records were read: the other half of the checker.

Rules
  1. Torn transaction: either all records of a transaction are visible, in every partition and in the group's offsets, or none.
  2. Lost write: all records of a transaction are visible if its client received the answer that it is committed. A compacted
     partition has the last committed record of each key.
  3. Write cycle (G0): the transactions of one transactional id have the same order in every partition. If a transaction began
     after another had ended for its client, none of its records is before a record of the other. (The protocol allows different
     orders of two producers' records in different partitions.)
  4. Circular information flow (G1c): no transactions read from each other in a circle, also together with the order of rule 3.
  5. Exactly once: the output has one record for each record that a copier has read up to the group's offset, and no other
     records.
  6. Poll skip: a reader that started at the beginning of a partition has got every committed record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from barnabas.testing.simulation.history import TopicPartition, Violation
from barnabas.testing.simulation.transactions.ledger import Ledger, Outcome, Seen, Transaction

Contents = Mapping[TopicPartition, list[Seen]]  # the records that read_committed readers get, in the order of offsets


class Verdict:
    """The end of a run.

    Args:
        contents: all committed records.
        offsets: the committed offsets of the copiers' group; -1 if there is none.
    """

    def __init__(self, ledger: Ledger, contents: Contents, offsets: Mapping[TopicPartition, int]) -> None:
        self._ledger = ledger
        self._contents = contents
        self._offsets = offsets
        self._visible = {record.value for records in contents.values() for record in records}

    def check(self) -> None:
        """Check all rules except the last one; raises Violation."""
        committed = [each for each in self._ledger.transactions if self._is_committed(each)]
        self._check_keys(committed)
        self._check_order()
        self._check_real_time()
        self._check_offsets(committed)
        self._check_copies(committed)

    def check_reader(self, place: TopicPartition, seen: set[int], position: int) -> None:
        """A reader of committed records has read from the start to `position`."""
        missed = [record for record in self._contents[place] if record.offset < position and record.offset not in seen]
        if missed and not self._ledger.partitions[place].compacted:
            raise Violation(f"{place[0]}-{place[1]}: poll skip: a reader is at {position} and has not seen {missed[0].offset}")

    # --- all or nothing

    def _is_committed(self, transaction: Transaction) -> bool:
        """Whether the transaction is visible; raises Violation if only a part of it is."""
        lasting = {value: place for value, place in transaction.sent.items() if not self._ledger.partitions[place].compacted}
        visible = [value for value in transaction.sent if value in self._visible]
        if transaction.outcome is Outcome.COMMITTED:
            missing = [value for value in lasting if value not in self._visible]
            if missing:
                raise Violation(f"lost write: {transaction} was committed, and {missing[0][:40]!r} is not there")
            return True
        if not visible:
            return False
        if transaction.outcome is Outcome.ABORTED:
            raise Violation(f"aborted read: {transaction} was aborted, and {visible[0][:40]!r} is there")
        if not self._ledger.may_commit(transaction):
            raise Violation(f"{transaction} is there, and nobody who might has asked to commit it")
        missing = [value for value in lasting if value not in self._visible]
        if missing:
            raise Violation(f"torn transaction: of {transaction} {visible[0][:40]!r} is there, and {missing[0][:40]!r} is not")
        return True

    def _check_keys(self, committed: list[Transaction]) -> None:
        """Check that compacted partitions have the last committed record of each key."""
        for place, partition in self._ledger.partitions.items():
            if not partition.compacted:
                continue
            last: dict[bytes | None, tuple[int, bytes]] = {}
            for transaction in committed:
                for value in (value for value, where in transaction.sent.items() if where == place):
                    key, offset = self._ledger.values[value].key, partition.offsets[value]
                    last[key] = max(last.get(key, (-1, b"")), (offset, value))
            for key, (offset, value) in last.items():
                if value not in self._visible:
                    raise Violation(f"{partition.name}: lost write: the last record of {key!r}, at {offset}, is not there")

    # --- order

    def _check_order(self) -> None:
        """Check that the order of transactions has no circle."""
        before: dict[Transaction, set[Transaction]] = {}
        for records in self._contents.values():
            last: dict[str, Transaction] = {}
            for record in records:
                transaction = self._ledger.values[record.value].transaction
                former = last.get(transaction.writer)
                if former is not None and former is not transaction:
                    before.setdefault(transaction, set()).add(former)
                last[transaction.writer] = transaction
        self._check_circles(before, "write cycle (G0)")
        for transaction in self._ledger.transactions:
            if transaction.read_from:
                before.setdefault(transaction, set()).update(transaction.read_from)
        self._check_circles(before, "circular information flow (G1c)")

    def _check_circles(self, before: Mapping[Transaction, set[Transaction]], name: str) -> None:
        try:
            TopologicalSorter(before).prepare()
        except CycleError as error:
            circle = " < ".join(str(each) for each in error.args[1])
            raise Violation(f"{name}: {circle}") from error

    def _check_real_time(self) -> None:
        for place, records in self._contents.items():
            latest: Transaction | None = None
            for record in records:
                transaction = self._ledger.values[record.value].transaction
                if latest is not None and transaction.ended_s is not None and transaction.ended_s < latest.began_s:
                    name = f"{place[0]}-{place[1]}"
                    raise Violation(
                        f"{name}: write cycle (G0): {transaction} had ended before {latest} began, and follows it at {record.offset}"
                    )
                if latest is None or transaction.began_s > latest.began_s:
                    latest = transaction
            numbers = [list(self._ledger.values[r.value].transaction.sent).index(r.value) for r in records]
            owners = [self._ledger.values[r.value].transaction for r in records]
            for (one, first), (other, second) in pairwise(zip(owners, numbers, strict=True)):
                if one is other and second <= first:
                    raise Violation(f"{place[0]}-{place[1]}: the records of {one} are not in the order of their sending")

    # --- copies

    def _check_offsets(self, committed: list[Transaction]) -> None:
        """Check that the group's offset is that of its last committed transaction."""
        due: dict[TopicPartition, int] = {}
        for transaction in committed:
            for place, offset in transaction.offsets.items():
                due[place] = max(due.get(place, -1), offset)
        for place, offset in self._offsets.items():
            wanted = due.get(place, -1)
            if offset != wanted:
                name = f"{place[0]}-{place[1]}"
                raise Violation(
                    f"torn transaction: the offset of {name} is {offset}, and what is committed has put it to {wanted}"
                )

    def _check_copies(self, committed: list[Transaction]) -> None:
        found: Counter[bytes] = Counter()
        for transaction in committed:
            sources = (self._ledger.values[value].source for value in transaction.sent)
            found.update(source for source in sources if source is not None)
        due = {
            record.value for place, offset in self._offsets.items() for record in self._contents[place] if record.offset < offset
        }
        for source, count in found.items():
            if count > 1:
                raise Violation(f"exactly once: {source[:40]!r} was copied {count} times")
            if source not in due:
                raise Violation(f"exactly once: {source[:40]!r} was copied, and the group has not read it")
        missing = due - found.keys()
        if missing:
            raise Violation(f"exactly once: {min(missing)[:40]!r} was read by the group, and not copied")
