"""What the driver tells a task of a read."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.client.config import ClientConfig
from barnabas.limits import MAX_DECOMPRESSED_BATCH_BYTES
from barnabas.pipelines.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class ReadTask:
    """All that a task needs to know; made by the driver, pickled to the task."""

    range: OffsetRange
    client: ClientConfig
    include_headers: bool
    fail_on_data_loss: bool
    poll_timeout_ms: int
    max_batch_bytes: int = MAX_DECOMPRESSED_BATCH_BYTES
    topic_id: str = ""  # the range is of the topic with this id; "" where it is not known
