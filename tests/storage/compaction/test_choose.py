"""Which segments may be cleaned, where the model of the cleaner does not ask: by the age of records without a timestamp."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from barnabas.config.topic import HOUR_MS
from barnabas.storage.compaction.choose import dirtiness
from barnabas.storage.log import MAX_OFFSET
from tests.storage.compaction.support import SMALL, compacted_log, put, roll
from tests.storage.support import NOW


@pytest.mark.parametrize(("later_ms", "end_offset"), [(HOUR_MS - 1, 0), (HOUR_MS, 1)])
def test_records_without_a_time_are_as_old_as_the_last_write(tmp_path: Path, later_ms: int, end_offset: int) -> None:
    log = compacted_log(tmp_path)
    put(log, (b"k", b"v"), time_ms=-1)
    roll(log)
    found = dirtiness(
        log.segments,
        replace(SMALL, min_compaction_lag_ms=HOUR_MS),
        log_start_offset=0,
        limit_offset=MAX_OFFSET,
        cleaned_offset=0,
        now_ms=NOW + later_ms,
    )
    assert found.end_offset == end_offset
    log.close()
