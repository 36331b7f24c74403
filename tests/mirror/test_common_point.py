"""The search for the last offset up to which two logs are the same, beside a naive comparison of all batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.mirror.common_point import NO_LIMIT, CommonPoint
from barnabas.protocol.records.batch import Record, build_batch, iterate_records, split_batches
from barnabas.protocol.records.record import assemble, records_of
from tests.mirror.copying import NOW_MS

MANY = 200


class Batches:
    """A log as a list of batches by base offset."""

    def __init__(self, values: list[list[bytes]], base: int = 0) -> None:
        self.batches: list[tuple[int, int, bytes]] = []  # base offset, next offset, bytes
        self.start = self.end = base
        self.append(values)

    def append(self, values: list[list[bytes]]) -> None:
        for some in values:
            made = build_batch([(value[:1], value) for value in some], base_offset=self.end, timestamp_ms=NOW_MS)
            self.batches.append((self.end, self.end + len(some), made))
            self.end += len(some)

    def copy(self) -> Batches:
        other = Batches([])
        other.batches, other.start, other.end = list(self.batches), self.start, self.end
        return other

    def delete_before(self, offset: int) -> None:
        self.start = max(self.start, min(offset, self.end))
        self.batches = [batch for batch in self.batches if batch[1] > self.start]

    def compact(self, lost: set[int]) -> None:
        """Remove records, as the log cleaner does: a batch keeps its base and last offset, and goes if nothing is left of it."""
        kept = []
        for base, end, data in self.batches:
            records = [record for record in iterate_records(data) if record.offset not in lost]
            if len(records) == end - base:
                kept.append((base, end, data))
            elif records:
                kept.append((base, end, _rewritten(data, records)))
        self.batches = kept

    def read(self, offset: int, size: int = 2**20) -> bytes:
        found = b""
        for _, end, data in self.batches:
            if end > offset and (not found or len(found) + len(data) <= size):
                found += data
            elif found:
                break
        return found


def _rewritten(data: bytes, records: list[Record]) -> bytes:
    (_, header), *_ = split_batches(data)
    assert header.compression == 0
    body, kept = bytes(records_of(data, 0, header)), {record.offset for record in records}
    at, parts = 0, []
    for record in iterate_records(data):
        size = body[at] // 2 + 1  # the records of these tests are small: their length is one byte
        if record.offset in kept:
            parts.append(body[at : at + size])
        at += size
    return assemble(header._replace(records_count=len(parts)), b"".join(parts))


def search(
    here: Batches, there: Batches, *, limit: int = NO_LIMIT, compacted: bool = False, size: int = 2**20
) -> tuple[int, int]:
    """The common offset, and the number of requests."""
    found = CommonPoint(
        here.read, start=here.start, end=here.end, source_start=there.start, source_end=there.end, limit=limit, is_compacted=compacted
    )  # fmt: skip
    count = 0
    while not found.is_done:
        count += 1
        assert count < MANY, "the search does not end"
        found.receive(there.read(found.position, size))
    return found.offset, count


VALUES = st.lists(st.lists(st.binary(min_size=1, max_size=3), min_size=1, max_size=4), max_size=12)


@settings(max_examples=300, deadline=None)
@given(
    common=VALUES,
    ours=VALUES,
    theirs=VALUES,
    starts=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    size=st.sampled_from([1, 300]),
)
def test_the_common_offset_is_that_of_a_comparison_of_all_batches(
    common: list[list[bytes]], ours: list[list[bytes]], theirs: list[list[bytes]], starts: tuple[int, int], size: int
) -> None:
    here = Batches(common)
    there = here.copy()
    here.append([[b"o" + value for value in some] for some in ours])
    there.append([[b"t" + value for value in some] for some in theirs])
    expected = min(here.end, there.end, sum(map(len, common)) if ours and theirs else 2**31)
    here.delete_before(starts[0])
    there.delete_before(starts[1])
    both = max(here.start, there.start)
    expected = max(expected, both) if both < min(here.end, there.end) else min(here.end, there.end)
    if expected <= both:  # nothing is the same; the source may have a batch around the offset
        expected = min(expected, next((base for base, end, _ in there.batches if end > max(expected, there.start)), expected))
    found, _ = search(here, there, size=size)
    assert found == expected


def test_equal_logs_take_one_request() -> None:
    here = Batches([[b"v"]] * 100_000)
    assert search(here, here.copy()) == (100_000, 1)


def test_a_difference_among_many_batches_takes_few_requests() -> None:
    here = Batches([[b"v", b"w"]] * 1000)
    there = here.copy()
    here.append([[b"ours"]] * 500)
    there.append([[b"theirs"]] * 400)
    found, count = search(here, there)
    assert found == 2000
    assert count <= 14


def test_nothing_from_the_promotion_on_is_common() -> None:
    """The same record was written to both, as by a producer that writes to two clusters."""
    here = Batches([[b"a"], [b"b"], [b"both"]])
    assert search(here, here.copy(), limit=2) == (2, 1)


def test_a_gap_on_both_sides_is_common() -> None:
    here = Batches([[b"a"]])
    here.end = 9
    there = here.copy()
    assert search(here, there)[0] == 9


LOST = st.sets(st.integers(0, 40))


@settings(max_examples=300, deadline=None)
@given(
    common=VALUES,
    ours=VALUES,
    theirs=VALUES,
    lost=st.tuples(LOST, LOST),
    is_limited=st.booleans(),
    size=st.sampled_from([1, 300]),
)
def test_compacted_logs_share_no_more_than_what_is_common(
    common: list[list[bytes]], ours: list[list[bytes]], theirs: list[list[bytes]], lost: tuple[set[int], set[int]], is_limited: bool,
    size: int,
) -> None:  # fmt: skip
    here = Batches(common)
    there, copied = here.copy(), here.end
    here.append([[b"o" + value for value in some] for some in ours])
    there.append([[b"t" + value for value in some] for some in theirs])
    here.compact(lost[0])
    there.compact(lost[1])
    found, _ = search(here, there, compacted=True, limit=copied if is_limited else NO_LIMIT, size=size)
    if is_limited:
        assert found == copied
    else:  # a difference is seen where both sides have a record; records of one side alone count as different
        ours_left, theirs_left = ({record.offset: record for record in _records(log)} for log in (here, there))
        different = [offset for offset in ours_left.keys() & theirs_left.keys() if ours_left[offset] != theirs_left[offset]]
        assert not different or found <= min(different)


def _records(log: Batches) -> list[Record]:
    return [record for _, _, data in log.batches for record in iterate_records(data)]


def test_a_damaged_answer_is_refused() -> None:
    here = Batches([[b"a"]])
    found = CommonPoint(here.read, start=0, end=1, source_start=0, source_end=1, limit=NO_LIMIT, is_compacted=True)
    with pytest.raises(KafkaError) as refused:
        found.receive(b"\0" * 61)
    assert refused.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
