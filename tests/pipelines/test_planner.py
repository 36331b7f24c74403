"""The driver's decisions, against a client that is a dictionary."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.cluster import Partition, Topic, UnknownTopic
from barnabas.client.errors import PartitionError, TimedOut
from barnabas.client.results import Fetched, ListedOffset
from barnabas.error_codes import ErrorCode
from barnabas.pipelines.bounds import Bounds
from barnabas.pipelines.data_loss import DataLoss
from barnabas.pipelines.offsets import EARLIEST, LATEST, OffsetRange, Offsets, OptionError, id_text
from barnabas.pipelines.options import read_options
from barnabas.pipelines.planner import Planner
from barnabas.protocol.base_message import ZERO_UUID


class FakeClient:
    """Topics by partition: (first offset, next offset). Timestamps are offsets."""

    def __init__(self, logs: dict[tuple[str, int], tuple[int, int]]) -> None:
        self.logs = logs
        self.committed: list[tuple[str, Offsets]] = []
        self.refuse_commits = False
        self.ids: dict[str, UUID] = {}
        self.written: dict[tuple[str, int], int] = {}  # next offsets including open transactions, if there are any
        self.bytes_at: Callable[[int], int] = lambda offset: 100
        self.going: set[str] = set()  # topics that are deleted at the next lookup of offsets
        self.looked_up: Callable[[], None] = lambda: None  # called after each lookup of offsets

    def topics(self) -> dict[str, Topic]:
        names = sorted({topic for topic, _ in self.logs})
        partitions = {n: {p: Partition(p, 1, 0) for t, p in sorted(self.logs) if t == n} for n in names}
        return {n: Topic(n, self.ids.get(n, ZERO_UUID), partitions[n], n.startswith("__")) for n in names}

    def topics_by_name(self, names: Sequence[str]) -> dict[str, Topic]:
        return {name: topic for name, topic in self.topics().items() if name in names}

    def agreed_topics(self, names: Iterable[str]) -> dict[str, Topic]:
        return self.topics_by_name(list(names))

    def list_offsets(
        self, timestamps: Mapping[tuple[str, int], int], *, read_committed: bool = True
    ) -> dict[tuple[str, int], ListedOffset]:
        self.logs = {tp: log for tp, log in self.logs.items() if tp[0] not in self.going}
        self.going = set()
        for tp in timestamps:
            if tp not in self.logs:
                raise UnknownTopic(*tp)
        listed = {tp: ListedOffset(self._lookup(tp, timestamp)) for tp, timestamp in timestamps.items()}
        if not read_committed:
            listed |= {
                tp: ListedOffset(self.written[tp])
                for tp, timestamp in timestamps.items()
                if timestamp == LATEST and tp in self.written
            }
        self.looked_up()
        return listed

    def _lookup(self, tp: tuple[str, int], timestamp: int) -> int:
        first, end = self.logs[tp]
        if timestamp == LATEST:
            return end
        if timestamp == EARLIEST:
            return first
        return max(first, timestamp) if timestamp < end else -1

    def commit_offsets(self, group: str, offsets: Offsets, *, timeout_ms: int) -> None:
        if self.refuse_commits:
            raise TimedOut("commit", timeout_ms)
        self.committed.append((group, offsets))

    def fetch(self, topic: str, partition: int, offset: int, *, max_bytes: int) -> Fetched:
        """A batch of one record, as large as `bytes_at` says."""
        if (topic, partition) not in self.logs:
            raise UnknownTopic(topic)
        if offset < self.logs[topic, partition][0]:
            raise PartitionError(ErrorCode.OFFSET_OUT_OF_RANGE, topic, partition)
        header = struct.pack(">qi", offset, self.bytes_at(offset) - 12)
        return Fetched(header.ljust(self.bytes_at(offset), b"\0"), 0, 0, 0, ())

    def close(self) -> None: ...


def planner(client: FakeClient, *, streaming: bool = True, **given: Any) -> Planner:
    options = {"kafka.bootstrap.servers": "a:1", "fetchOffset.retryIntervalMs": "1"}
    options |= {name.replace("__", "."): value for name, value in given.items()}
    if not {"subscribe", "subscribePattern", "assign"} & given.keys():
        options["subscribe"] = "t"
    return Planner(read_options(options, streaming=streaming), cast(BlockingClient, client))


def latest(it: Planner, start: Offsets, *, everything: bool = False, now_ms: float = 0) -> Offsets:
    return it.latest(start, everything=everything, now_ms=now_ms)


def test_a_batch_query() -> None:
    client = FakeClient({("t", 0): (3, 10), ("t", 1): (0, 0), ("u", 0): (0, 5)})
    assert planner(client, streaming=False).batch_ranges() == [OffsetRange("t", 0, 3, 10)]
    assert planner(client, streaming=False, subscribePattern="[tu]").batch_ranges()[-1] == OffsetRange("u", 0, 0, 5)
    assert planner(client, streaming=False, subscribePattern="x.*").batch_ranges() == []
    by_time = planner(client, streaming=False, assign='{"u":[0]}', startingTimestamp="2", endingTimestamp="4")
    assert by_time.batch_ranges() == [OffsetRange("u", 0, 2, 4)]
    with pytest.raises(OptionError, match="The resolved start offset 9 is greater than the resolved end offset 5"):
        planner(client, streaming=False, subscribe="u", startingOffsets='{"u":{"0":9}}').batch_ranges()
    with pytest.raises(OptionError, match="Specified: u-1 Assigned: u-0"):
        planner(client, streaming=False, subscribe="u", startingOffsets='{"u":{"1":0}}').batch_ranges()


def test_what_an_open_transaction_holds_back_is_waited_for() -> None:
    client = FakeClient({("t", 0): (0, 5), ("t", 1): (0, 5)})
    client.written = {("t", 0): 10}
    given: dict[str, Any] = {"startingOffsets": '{"t":{"0":7,"1":2}}'}
    assert planner(client, streaming=False, **given).batch_ranges() == [OffsetRange("t", 1, 2, 5)]
    at_its_end = planner(client, streaming=False, startingOffsets='{"t":{"0":10,"1":5}}')
    assert at_its_end.batch_ranges() == []
    with pytest.raises(OptionError, match="The resolved start offset 11 is greater than the resolved end offset 5"):
        planner(client, streaming=False, startingOffsets='{"t":{"0":11,"1":2}}').batch_ranges()
    with pytest.raises(OptionError, match="The resolved start offset 7 is greater than the resolved end offset 5"):
        planner(client, streaming=False, **given, kafka__isolation__level="read_uncommitted").batch_ranges()
    with pytest.raises(OptionError, match="start offset 7 is greater than the end offset 6"):
        planner(client, streaming=False, **given, endingOffsets='{"t":{"0":6,"1":-1}}').batch_ranges()
    for available_now in (False, True):
        it = planner(client, **given)
        if available_now:
            it.prepare_available_now()
        start = it.initial()
        end = latest(it, start)
        assert (start, end) == ({("t", 0): 7, ("t", 1): 2}, {("t", 0): 7, ("t", 1): 5})
        assert it.stream_ranges(start, end) == [OffsetRange("t", 1, 2, 5)]
    it = planner(client, **given)
    start = latest(it, it.initial())
    client.logs[("t", 0)], client.written = (0, 12), {}
    assert it.stream_ranges(start, end := latest(it, start)) == [OffsetRange("t", 0, 7, 12)]
    assert end == {("t", 0): 12, ("t", 1): 5}


@pytest.mark.parametrize("available_now", [False, True])
def test_a_stream_that_starts_behind_the_end_says_so(available_now: bool) -> None:
    it = planner(FakeClient({("t", 0): (0, 5)}), startingOffsets='{"t":{"0":7}}')
    if available_now:
        it.prepare_available_now()
    start = it.initial()
    with pytest.raises(DataLoss, match="Partition t-0 offset was changed from 7 to 5"):
        it.stream_ranges(start, latest(it, start))


def test_a_word_for_all_partitions_of_a_topic() -> None:
    client = FakeClient({("t", 0): (3, 10), ("t", 1): (4, 20), ("u", 0): (0, 5)})
    given: dict[str, Any] = {"subscribe": "t,u", "startingOffsets": '{"t":"earliest","u":{"0":2}}'}
    assert planner(client, **given).initial() == {("t", 0): 3, ("t", 1): 4, ("u", 0): 2}
    ranges = planner(client, streaming=False, endingOffsets='{"t":{"0":4,"1":6},"u":"latest"}', **given).batch_ranges()
    assert ranges == [OffsetRange("t", 0, 3, 4), OffsetRange("t", 1, 4, 6), OffsetRange("u", 0, 2, 5)]
    with pytest.raises(OptionError, match="topics that the query does not read: v"):
        planner(client, subscribe="t,u", startingOffsets='{"t":"earliest","u":"latest","v":"latest"}').initial()
    with pytest.raises(OptionError, match="Specified: t-0, t-1 Assigned: t-0, t-1, u-0"):
        planner(client, subscribe="t,u", startingOffsets='{"t":"earliest"}').initial()
    it = planner(client, subscribe="t,u", startingOffsets='{"t":"latest","u":"earliest"}')
    assert latest(it, start := it.initial()) == start == {("t", 0): 10, ("t", 1): 20, ("u", 0): 0}, "it is written down first"
    assert latest(it, start) == {**start, ("u", 0): 5}


def test_a_pattern_leaves_internal_topics_alone() -> None:
    client = FakeClient({("t", 0): (0, 5), ("__consumer_offsets", 0): (0, 5), ("_barnabas_sinks", 0): (0, 5)})
    assert planner(client, streaming=False, subscribePattern=".*").batch_ranges() == [OffsetRange("t", 0, 0, 5)]


def test_missing_topics_and_partitions() -> None:
    client = FakeClient({("t", 0): (0, 5)})
    with pytest.raises(UnknownTopic, match="nope"):
        planner(client, subscribe="t,nope").initial()
    with pytest.raises(UnknownTopic, match="t-7"):
        planner(client, assign='{"t":[0,7]}').initial()


def test_from_earliest() -> None:
    client = FakeClient({("t", 0): (2, 5)})
    it = planner(client, startingOffsets="earliest")
    start = it.initial()
    end = latest(it, start)
    assert (start, end) == ({("t", 0): 2}, {("t", 0): 5})
    assert it.stream_ranges(start, end) == [OffsetRange("t", 0, 2, 5)]
    assert it.reported_latest() == end
    assert latest(it, end) == end


def test_the_first_batch_from_a_moving_start_is_empty_and_may_be_repeated() -> None:
    client = FakeClient({("t", 0): (0, 5)})
    it = planner(client)
    start = it.initial()
    client.logs["t", 0] = (0, 8)
    assert latest(it, start) == start
    assert it.stream_ranges(start, start) == []
    assert latest(it, start) == {("t", 0): 8}
    assert it.stream_ranges(start, {("t", 0): 8}) == [OffsetRange("t", 0, 5, 8)]
    restarted = planner(client)
    client.logs["t", 1] = (0, 1)
    assert restarted.initial() == {("t", 0): 8, ("t", 1): 1}
    assert restarted.stream_ranges(restarted.initial(), start) == []
    assert latest(restarted, start) == {("t", 0): 8, ("t", 1): 1}


@pytest.mark.parametrize("given", [{}, {"startingTimestamp": "99", "startingOffsetsByTimestampStrategy": "latest"}])
@pytest.mark.parametrize("is_available_now", [False, True])
def test_records_that_come_within_the_first_batch_are_in_the_second(given: dict[str, Any], is_available_now: bool) -> None:
    """Spark asks where the query begins for the end of the batch, and again for its rows."""
    client = FakeClient({("t", 0): (0, 30)})
    it = planner(client, **given)
    if is_available_now:
        it.prepare_available_now()
    end = latest(it, it.initial())
    client.logs["t", 0] = (0, 37)
    assert it.stream_ranges(it.initial(), end) == []
    following = {("t", 0): 30 if is_available_now else 37}
    assert latest(it, end) == following
    assert it.stream_ranges(end, {("t", 0): 37}) == [OffsetRange("t", 0, 30, 37)]


def test_available_now_does_not_go_on_for_ever() -> None:
    client = FakeClient({("t", 0): (0, 10)})
    it = planner(client, maxOffsetsPerTrigger="4", minOffsetsPerTrigger="3")
    it.prepare_available_now()
    at: Offsets = {("t", 0): 0}
    seen = []
    while (following := latest(it, at)) != at:
        client.logs["t", 0] = (0, client.logs["t", 0][1] + 10)
        at = following
        seen.append(at["t", 0])
    assert seen == [4, 8, 10]


def test_available_now_from_the_end_of_a_topic_that_grows() -> None:
    """Spark asks where it ends before it asks where the query begins."""
    client = FakeClient({("t", 0): (0, 10)})
    it = planner(client)
    it.prepare_available_now()
    client.logs["t", 0], client.logs["t", 1] = (0, 12), (0, 3)
    start = it.initial()
    assert start == {("t", 0): 12, ("t", 1): 3}
    for _ in range(2):
        end = latest(it, start)
        assert end == start
        assert it.stream_ranges(start, end) == []


def test_available_now_of_a_topic_that_is_gone() -> None:
    client = FakeClient({("t", 0): (0, 10), ("u", 0): (0, 5)})
    it = planner(client, subscribe="t,u", failOnDataLoss="false", startingOffsets="earliest")
    start = it.initial()
    del client.logs["u", 0]
    restarted = planner(client, subscribe="t,u", failOnDataLoss="false", startingOffsets="earliest")
    restarted.prepare_available_now()
    assert latest(restarted, start) == {("t", 0): 10}
    with pytest.raises(UnknownTopic, match="u"):
        restarted.initial()
    with pytest.raises(UnknownTopic, match="u"):
        planner(client, subscribe="t,u").prepare_available_now()


def test_a_first_batch_is_repeated_though_there_is_more_to_read_by_now() -> None:
    client = FakeClient({("t", 0): (0, 10)})
    it = planner(client, subscribePattern=".*", startingOffsets="earliest")
    end = latest(it, it.initial())
    client.logs["u", 0] = (0, 4)
    restarted = planner(client, subscribePattern=".*", startingOffsets="earliest")
    assert restarted.stream_ranges(restarted.initial(), end) == [OffsetRange("t", 0, 0, 10)]
    following = latest(restarted, end)
    assert restarted.stream_ranges(end, following) == [OffsetRange("u", 0, 0, 4)]


def test_new_partitions_begin_at_their_beginning() -> None:
    client = FakeClient({("t", 0): (0, 10), ("t", 1): (0, 4), ("t", 2): (3, 6)})
    start, end = {("t", 0): 10}, {("t", 0): 10, ("t", 1): 4}
    assert planner(client).stream_ranges(start, end) == [OffsetRange("t", 1, 0, 4)]
    with pytest.raises(DataLoss, match="Added partition t-2 starts from 3 instead of 0"):
        planner(client).stream_ranges(start, {**end, ("t", 2): 6})
    lenient = planner(client, failOnDataLoss="false").stream_ranges(start, {**end, ("t", 2): 6, ("t", 3): 1})
    assert lenient == [OffsetRange("t", 1, 0, 4), OffsetRange("t", 2, 3, 6)]


def test_the_limit_counts_new_partitions_from_their_beginning() -> None:
    client = FakeClient({("t", 0): (0, 10), ("t", 1): (0, 30)})
    assert latest(planner(client, maxOffsetsPerTrigger="20"), {("t", 0): 0}) == {("t", 0): 5, ("t", 1): 15}


def test_lost_partitions_and_offsets() -> None:
    client = FakeClient({("t", 0): (0, 3)})
    gone, back = ({("t", 0): 1, ("t", 1): 1}, {("t", 0): 3}), ({("t", 0): 9}, {("t", 0): 3})
    with pytest.raises(DataLoss, match=r"Partitions t-1 have been deleted.*failOnDataLoss to false"):
        planner(client).stream_ranges(*gone)
    with pytest.raises(DataLoss, match="Partition t-0 offset was changed from 9 to 3"):
        planner(client).stream_ranges(*back)
    assert planner(client, failOnDataLoss="false").stream_ranges(*gone) == [OffsetRange("t", 0, 1, 3)]
    assert planner(client, failOnDataLoss="false").stream_ranges(*back) == []


def test_a_topic_that_went_away_while_running() -> None:
    client = FakeClient({("u", 0): (0, 3)})
    start = {("t", 0): 5}
    with pytest.raises(UnknownTopic):
        latest(planner(client), start)
    assert latest(planner(client, failOnDataLoss="false"), start) == start


def test_a_topic_that_goes_away_between_being_listed_and_looked_up() -> None:
    client = FakeClient({("t", 0): (0, 10), ("u", 0): (0, 5)})
    every: dict[str, Any] = {"subscribePattern": ".", "startingOffsets": "earliest"}
    start = planner(client, **every).initial()

    def going(log: tuple[int, int] = (0, 5)) -> Planner:
        client.logs["u", 0] = log
        client.going = {"u"}
        return planner(client, failOnDataLoss="false", maxOffsetsPerTrigger="100", **every)

    assert going().initial() == {("t", 0): 0}
    assert latest(going(), start) == {("t", 0): 10}
    (available_now := going()).prepare_available_now()
    assert latest(available_now, start) == {("t", 0): 10}
    assert going().stream_ranges({("t", 0): 0}, {("t", 0): 10, ("u", 0): 5}) == [OffsetRange("t", 0, 0, 10)]
    subscribed: dict[str, Any] = {"subscribe": "t,u", "fetchOffset__numRetries": "2"}
    client.logs["u", 0], client.going = (0, 5), {"u"}
    assert latest(planner(client, failOnDataLoss="false", **subscribed), start) == {("t", 0): 10}
    client.logs["u", 0], client.going = (0, 5), {"u"}
    with pytest.raises(UnknownTopic, match="u"):
        latest(planner(client, **subscribed), start)


def test_a_topic_that_goes_away_while_it_is_sampled() -> None:
    client = FakeClient({("t", 0): (0, 10)})
    it = planner(client, failOnDataLoss="false", maxBytesPerTrigger="200")
    it.prepare_available_now()
    client.logs = {}
    assert latest(it, {("t", 0): 3}) == {("t", 0): 10}


def test_a_topic_that_goes_away_while_it_is_sampled_where_its_records_begin() -> None:
    client = FakeClient({("t", 0): (5, 10)})
    it = planner(client, failOnDataLoss="false", maxBytesPerTrigger="200")
    it.prepare_available_now()

    def vanish() -> None:
        client.logs = {}

    client.looked_up = vanish
    assert latest(it, {("t", 0): 3}) == {("t", 0): 10}


@pytest.mark.parametrize("limit", [{"maxOffsetsPerTrigger": "100"}, {"maxBytesPerTrigger": "100000"}])
def test_offsets_of_a_topic_never_get_the_id_of_one_that_was_made_after_them(limit: dict[str, Any]) -> None:
    client = FakeClient({("t", 0): (5, 10), ("t", 1): (5, 10)})
    client.ids = {"t": UUID(int=7)}
    it = planner(client, **limit)

    def remake() -> None:
        client.ids = {"t": UUID(int=8)}

    client.looked_up = remake
    assert latest(it, {("t", 0): 3}) == {("t", 0): 10, ("t", 1): 10}
    assert it.topic_ids == {"t": id_text(UUID(int=7))}


@pytest.mark.parametrize(("tries", "is_found"), [(2, False), (3, True)])
def test_a_topic_that_goes_away_is_listed_again_as_often_as_the_option_says(
    monkeypatch: pytest.MonkeyPatch, tries: int, is_found: bool
) -> None:
    client = FakeClient({("t", 0): (0, 10)})
    it = planner(client, fetchOffset__numRetries=str(tries), startingOffsets="earliest")
    lookups = 0

    def list_offsets(timestamps: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], ListedOffset]:
        nonlocal lookups
        lookups += 1
        if lookups < 3:
            raise UnknownTopic("t")
        return FakeClient.list_offsets(client, timestamps)

    monkeypatch.setattr(client, "list_offsets", list_offsets)
    if is_found:
        assert it.initial() == {("t", 0): 0}
        return
    with pytest.raises(UnknownTopic):
        it.initial()
    assert lookups == tries


@pytest.mark.parametrize("is_available_now", [False, True])
def test_a_moment_without_topics_does_not_lose_the_position(is_available_now: bool) -> None:
    """Rights that were withdrawn for a moment look the same."""
    client = FakeClient({("t", 0): (0, 9)})
    client.ids = {"t": UUID(int=7)}
    it, start, ids = planner(client, subscribePattern="t"), {("t", 0): 5}, {"t": id_text(UUID(int=7))}
    there, client.logs = client.logs, {}
    if is_available_now:
        it.prepare_available_now()
    assert it.latest(start, everything=False, now_ms=0, start_ids=ids) == start
    assert it.reported_latest() == start
    client.logs = there
    following = it if not is_available_now else planner(client, subscribePattern="t")
    assert following.latest(start, everything=False, now_ms=0, start_ids=ids) == {("t", 0): 9}


def test_a_topic_that_is_not_seen_keeps_the_id_it_had() -> None:
    """It was made again, seen, and deleted before its offsets could be looked up."""
    client = FakeClient({("t", 0): (0, 5)})
    client.ids = {"t": UUID(int=8)}
    it, start, before = planner(client, subscribePattern="t"), {("t", 0): 5}, {"t": id_text(UUID(int=7))}
    it.prepare_available_now()
    assert it.replaced(before) == ["t"]
    client.logs = {}
    it.prepare_available_now()
    assert it.latest(start, everything=False, now_ms=0, start_ids=before) == start
    assert it.replaced(before) == []


def test_small_batches_wait_for_company() -> None:
    client = FakeClient({("t", 0): (0, 5)})
    it = planner(client, minOffsetsPerTrigger="10", maxTriggerDelay="1m")
    at: Offsets = {("t", 0): 0}
    assert latest(it, at, now_ms=100_000) == {("t", 0): 5}, "the first one waits for nothing"
    at = {("t", 0): 5}
    client.logs["t", 0] = (0, 9)
    assert latest(it, at, now_ms=120_000) == at
    assert latest(it, at, now_ms=160_000) == {("t", 0): 9}
    assert latest(it, at, everything=True, now_ms=160_001) == {("t", 0): 9}


def test_the_first_batch_does_not_wait_on_a_machine_that_has_just_booted() -> None:
    it = planner(FakeClient({("t", 0): (0, 5)}), minOffsetsPerTrigger="10")
    assert latest(it, {("t", 0): 0}, now_ms=100) == {("t", 0): 5}


def test_commits_are_shown_and_a_refusal_does_no_harm() -> None:
    client = FakeClient({("t", 0): (0, 5)})
    it = planner(client, kafka__group__id="g")
    it.commit({("t", 0): 5})
    latest(it, {("t", 0): 5})
    client.refuse_commits = True
    it.commit({("t", 0): 6})
    client.refuse_commits = False
    it.commit({("t", 0): 7})
    assert client.committed == [("g", {("t", 0): 5})], "a query is not held up by each batch anew"


def test_a_commit_that_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.pipelines.planner.COMMIT_AGAIN_S", 0.0)
    client = FakeClient({("t", 0): (0, 10)})
    it = planner(client, kafka__group__id="g")
    client.refuse_commits = True
    it.commit({("t", 0): 5})
    client.refuse_commits = False
    it.commit({("t", 0): 6})
    assert client.committed == [("g", {("t", 0): 6})]


def test_bytes_of_a_trigger_are_estimated_from_samples() -> None:
    client = FakeClient({("t", 0): (0, 1000), ("t", 1): (0, 1000)})
    start = {("t", 0): 0, ("t", 1): 0}
    assert latest(planner(client, maxBytesPerTrigger="20000"), start) == {("t", 0): 100, ("t", 1): 100}
    client.bytes_at = lambda offset: 100 + offset  # the records grow with the offset
    end = latest(planner(client, maxBytesPerTrigger="20000"), start)
    read = sum(client.bytes_at(offset) for last in end.values() for offset in range(last))
    assert 17_000 < read < 23_000
    assert latest(planner(client, maxBytesPerTrigger="1"), start) == {("t", 0): 1, ("t", 1): 1}
    assert latest(planner(client, maxBytesPerTrigger="9999999"), start) == {("t", 0): 1000, ("t", 1): 1000}


def test_rows_and_bytes_limit_together() -> None:
    client = FakeClient({("t", 0): (0, 1000)})
    it = planner(client, maxBytesPerTrigger="20000", maxOffsetsPerTrigger="50")
    assert latest(it, {("t", 0): 0}) == {("t", 0): 50}
    client.bytes_at = lambda offset: 1000
    assert latest(it, {("t", 0): 0}) == {("t", 0): 20}
    assert latest(it, {("t", 0): 0}, everything=True) == {("t", 0): 1000}


def test_a_topic_with_another_id_is_another_topic() -> None:
    client = FakeClient({("t", 0): (0, 50), ("u", 0): (0, 5)})
    client.ids = {"t": UUID(int=7), "u": UUID(int=8)}
    before, start = {"t": "old", "u": id_text(UUID(int=8))}, {("t", 0): 10, ("u", 0): 2}
    strict, lenient = planner(client, subscribe="t,u"), planner(client, subscribe="t,u", failOnDataLoss="false")
    with pytest.raises(DataLoss, match="Topic t was deleted and created again: its id was old and is"):
        strict.latest(start, everything=False, now_ms=0, start_ids=before)
    end = lenient.latest(start, everything=False, now_ms=0, start_ids=before)
    assert lenient.replaced(before) == ["t"]
    with pytest.raises(DataLoss, match="Topic t was deleted and created again"):
        strict.stream_ranges(start, end, before, strict.topic_ids)
    assert lenient.stream_ranges(start, end, before, lenient.topic_ids) == [OffsetRange("t", 0, 0, 50), OffsetRange("u", 0, 2, 5)]
    assert strict.stream_ranges(start, end, {}, strict.topic_ids)[0] == OffsetRange("t", 0, 10, 50), "of a checkpoint without ids"


def test_bounds_of_a_batch_query() -> None:
    client = FakeClient({("t", 0): (0, 10), ("t", 1): (5, 20), ("u", 0): (0, 5)})

    def ranges(bounds: Bounds) -> list[OffsetRange]:
        return planner(client, streaming=False, subscribe="t,u").batch_ranges(bounds)

    assert ranges(Bounds().of_topics(frozenset("u"))) == [OffsetRange("u", 0, 0, 5)]
    assert ranges(Bounds().of_partitions(lambda p: p > 0)) == [OffsetRange("t", 1, 5, 20)]
    assert ranges(Bounds().of_offsets(7, 12)) == [OffsetRange("t", 0, 7, 10), OffsetRange("t", 1, 7, 12)]
    assert ranges(Bounds().since(8)) == [OffsetRange("t", 0, 8, 10), OffsetRange("t", 1, 8, 20)]
