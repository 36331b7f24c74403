"""The log of one partition: records in the order of their offsets, until retention removes them.

Owns the segments of one folder, the start and the end of the log, the leader epochs and the producers' state. A `Log` is that state,
with its opening, flushing, moving and closing. Three parts work on it:

    log.reader        answers questions about the log
    log.appender      makes the log longer
    log.truncator     makes the log shorter

Callers name the part (`log.reader.read`). Methods of the log itself would be shorter to call. But they would cost each of many thousand
logs some kilobytes: 64 bytes for each of fifty methods, and a dict that is not shared.

Rules
  1. Offsets grow and are dense on the leader; `log_end_offset` is the next offset.
  2. One thread calls everything, except `FlushPlan.run`, which blocks and runs in another.
  3. A region from `read` stays readable until the loop runs again; a caller that sends later duplicates the descriptor.
  4. An operation that fails because the disk is full (`StorageExhausted`) has changed nothing. Any other error of the disk raises
     `LogDirFailed`, and the log directory is not used any more.

Other modules of `storage` have the rest: the list of segments (`log_segments`), when to begin a segment (`rolling`), which segments to
delete (`retention`), writing to the disk (`flushing`), the leader epochs (`epoch_file`).
"""

from __future__ import annotations

from barnabas.protocol.records.validate import AppendOrigin
from barnabas.storage.file_region import FileRegion
from barnabas.storage.garbage import Garbage
from barnabas.storage.log.appender import AppendResult
from barnabas.storage.log.lifecycle import Log
from barnabas.storage.log.state import MAX_OFFSET, PRODUCER_ID_EXPIRATION_MS
from barnabas.storage.log.truncator import MAX_SEGMENTS
from barnabas.storage.producer_state import ProducerDescription
from barnabas.storage.time_search import TimestampedOffset

__all__ = [
    "MAX_OFFSET",
    "MAX_SEGMENTS",
    "PRODUCER_ID_EXPIRATION_MS",
    "AppendOrigin",
    "AppendResult",
    "FileRegion",
    "Garbage",
    "Log",
    "ProducerDescription",
    "TimestampedOffset",
]
