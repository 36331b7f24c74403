"""Writes batches of a source task, each in one transaction together with the source's offsets.

Rules
  1. The transactional id is that of Kafka Connect (KIP-618): `GROUP-CONNECTOR-TASK`. Whoever begins later fences whoever wrote before.
  2. Offsets are read after the fence, so nobody writes others behind them.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from barnabas.client import transactions
from barnabas.client.blocking import BlockingClient
from barnabas.client.transactions import Owner
from barnabas.connect.errors import ConnectError
from barnabas.pipelines.sink_options import WriteTask
from barnabas.pipelines.writing import Attempt, write_batches


class TransactionalWriter:
    """The writer of one task.

    Args:
        task: how records are written.
    """

    def __init__(self, task: WriteTask, transactional_id: str) -> None:
        self._task, self._id = task, transactional_id
        self._client = BlockingClient(task.client)
        self._owner: Owner | None = None

    def begin(self) -> None:
        """Fence earlier writers. Raises ResourceError, ClientError."""
        client = self._client
        found = client.run(
            transactions.init_producer_id(
                client.config, client.cluster, self._id, timeout_ms=self._task.transaction_timeout_ms
            )
        )  # fmt: skip
        self._owner = found.owner

    def write(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Write all of them, or none; returns the number of records.

        Raises:
            ConnectError: another task has taken over.
            WriteFailed, RecordTooLarge, ClientError: they were not written.
        """
        owner = self._owner
        assert owner is not None
        try:
            rows, attempt = write_batches(self._task, batches, lambda _: Attempt(owner, self._id), has_times=True)
        except BaseException:
            self._end(owner, commit=False)
            raise
        if attempt is not None:
            self._owner = self._end(owner, commit=True)
        return rows

    def _end(self, owner: Owner, *, commit: bool) -> Owner:
        client = self._client
        ended = client.run(
            transactions.end_transactions(
                client.config, client.cluster, {self._id: owner}, commit=commit, second_version=client.has_second_transactions
            )
        )[self._id]
        if isinstance(ended, Owner):
            return ended
        if commit:
            raise ConnectError(f"the transaction of {self._id} was not committed: {ended.name}")
        return owner

    def close(self) -> None:
        """Release the connection."""
        self._client.close()
