"""The input of a read task, from the driver."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.client.config import ClientConfig
from barnabas.limits import MAX_DECOMPRESSED_BATCH_BYTES
from barnabas.pipelines.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The description of a task; the driver creates it and sends it to the task with pickle."""

    range: OffsetRange
    client: ClientConfig
    include_headers: bool
    fail_on_data_loss: bool
    poll_timeout_ms: int
    max_batch_bytes: int = MAX_DECOMPRESSED_BATCH_BYTES
    topic_id: str = ""  # id of the topic; "" if unknown
