"""Control batches as they are made and read."""

from __future__ import annotations

import pytest

from barnabas.protocol.records.batch_header import read_header
from barnabas.protocol.records.record import build_batch, iterate_records
from barnabas.storage.markers import Ending, ending_in, ending_of, marker_batch


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("epoch", [0, 7, 2**31 - 1])
def test_a_marker_is_read_as_any_record_is(commit: bool, epoch: int) -> None:
    (batch, header), ending = marker_batch(9, 3, commit=commit, coordinator_epoch=epoch, now_ms=1_700_000_000_000)
    assert header == read_header(batch)
    assert (
        ending
        == ending_in(batch, header)
        == ending_of(next(iterate_records(batch)))
        == Ending(not commit, epoch, 1_700_000_000_000)
    )


@pytest.mark.parametrize(
    "records",
    [
        [(b"\0\0\0\1", b"\0\0\0\0\0\1\0")],  # a value of seven bytes, as an unknown version may have
        [(b"\0\0\0\1\0", b"\0\0\0\0\0")],  # as long as a marker, with other lengths of key and value
        [(b"\0\0\0\1", None)],
        [(b"\0\0\0\2", b"\0\0\0\0\0\1")],  # key type 2 is no transaction marker
        [(None, b"\0\0\0\0\0\1")],
        [(b"\0\0\0\1", b"\0\0\0\0\0\1"), (b"\0\0\0\0", b"\0\0\0\0\0\1")],
        [],
    ],
)
def test_other_control_batches_are_read_too(records: list[tuple[bytes | None, bytes | None]]) -> None:
    batch = build_batch(records, timestamp_ms=5, producer_id=1, producer_epoch=0, transactional=True, control=True)
    assert ending_in(batch, read_header(batch)) == ending_of(next(iterate_records(batch), None))
