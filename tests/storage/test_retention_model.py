"""The segments that retention deletes, compared with a simple rule for each segment as a list of its records' times and its
size."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.storage.log import AppendOrigin
from tests.storage.support import NOW, batch, open_log, read_all, retain

MINUTE_MS = 60_000
POLICIES = (frozenset({"delete"}), frozenset({"compact"}), frozenset({"compact", "delete"}), frozenset[str]())


class Seen(NamedTuple):
    """A segment as the folder shows it."""

    base_offset: int
    size: int
    newest: int


def naive(segments: list[Seen], end: int, start: int, config: TopicConfig, now_ms: int) -> int:
    """The offset at which the log begins after retention."""
    if "delete" not in config.cleanup_policy:
        return start
    left = list(segments)
    while left:
        oldest = left[0]
        following = left[1].base_offset if len(left) > 1 else end
        is_old = config.retention_ms != -1 and now_ms - oldest.newest > config.retention_ms
        others = sum(segment.size for segment in left[1:])
        is_more_than_enough = config.retention_bytes != -1 and others >= config.retention_bytes
        is_deleted = following <= start and len(left) > 1
        if not oldest.size or not (is_old or is_more_than_enough or is_deleted):
            break
        start = max(start, following)
        left.pop(0)
    return start


@given(
    ages=st.lists(st.integers(-30, 60), min_size=1, max_size=25),
    policy=st.sampled_from(POLICIES),
    retention_minutes=st.sampled_from([-1, 0, 5, 20, 40]),
    retention_bytes=st.sampled_from([-1, 0, 200, 700, 5_000]),
    deleted=st.floats(0, 1),
    broker_time=st.booleans(),
    reopened=st.booleans(),
    apart=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_against_the_rule(
    ages: list[int],
    policy: frozenset[str],
    retention_minutes: int,
    retention_bytes: int,
    deleted: float,
    broker_time: bool,
    reopened: bool,
    apart: bool,
) -> None:
    config = TopicConfig(
        segment_bytes=300,
        cleanup_policy=policy,
        retention_ms=-1 if retention_minutes < 0 else retention_minutes * MINUTE_MS,
        retention_bytes=retention_bytes,
        message_timestamp_type="LogAppendTime" if broker_time else "CreateTime",
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = open_log(folder, config)
        times = []
        for number, age in enumerate(ages):
            # With broker time, retention ignores the time of the record, and the batches are one minute apart.
            now_ms = NOW - (len(ages) - number) * MINUTE_MS if broker_time else NOW
            data = batch(b"value %d" % number, time_ms=NOW - age * MINUTE_MS)
            log.appender.append_as_leader(memoryview(data), leader_epoch=0, now_ms=now_ms, origin=AppendOrigin.CLIENT)
            times.append(now_ms if broker_time else NOW - age * MINUTE_MS)
        log.truncator.delete_records_before(round(deleted * len(ages)))
        if reopened:
            log.close()
            log = open_log(folder, config, log_start_offset=round(deleted * len(ages)))
        start, end = log.log_start_offset, log.log_end_offset
        paths = sorted((folder / "topic-0").glob("*.log"))
        bases = [int(path.stem) for path in paths]
        seen = [
            Seen(base, path.stat().st_size, max(times[base:following], default=0))
            for path, base, following in zip(paths, bases, [*bases[1:], end], strict=True)
        ]
        wanted = naive(seen, end, start, config, NOW)
        before = read_all(log)

        look = log.reader.unknown_ages(NOW) if apart else None
        if look is not None:
            look.run()
            look.note()
        retain(log)

        assert (log.log_start_offset, log.log_end_offset) == (wanted, end)
        assert read_all(log) == [record for record in before if record.offset >= wanted]
        for garbage in log.truncator.take_garbage():
            garbage.remove()
        assert retain(log) == 0
        left = sorted(int(path.stem) for path in (folder / "topic-0").glob("*.log"))
        assert left == [base for base in bases if base >= max((b for b in bases if b <= wanted), default=0)] or left == [end]
        log.close()
