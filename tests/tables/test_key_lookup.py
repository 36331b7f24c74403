"""Conditions on keys with an index, over a real broker: the same rows as without, from fewer bytes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.limits import MAX_INDEXED_KEYS
from barnabas.tables import TableError, key_index, key_lookup, table
from barnabas.testing import Broker

RECORDS, KEYS = 4_000, 700


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.num.messages": 50})
        for number in range(RECORDS):
            producer.produce("orders", b"%d" % number, key=b"k%d" % (number % KEYS), partition=0)
        assert producer.flush(60) == 0
        yield broker


@pytest.fixture(autouse=True)
def _small_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "BLOCK_RECORDS", 32)
    monkeypatch.setattr(key_index, "STRIPE_RECORDS", 512)
    monkeypatch.setattr(key_lookup, "WRITTEN_RECORDS", 512)
    monkeypatch.setattr(key_lookup, "MAX_GAP", 0)


@pytest.mark.parametrize("place", ["servers", "data folder"])
@pytest.mark.parametrize("newest", [False, True])
def test_rows_of_keys_come_from_the_blocks_that_the_index_names(broker: Broker, tmp_path: Path, newest: bool, place: str) -> None:
    wanted = pc.field("_key").isin([b"k7", b"no such key"])
    servers, folder = (broker.bootstrap_servers, None) if place == "servers" else (None, broker.data_dir)
    with table("orders", servers, data_folder=folder, key_index=tmp_path) as orders:
        view = orders.newest_by_key() if newest else orders
        first = view.scan(None, wanted)
        expected = first.to_table()
        second = view.scan(None, wanted)  # planned with the index that the first has built
        found = second.to_table()
    assert found.equals(expected)
    assert found.column("value").to_pylist() == [b"%d" % each for each in range(7, RECORDS, KEYS)][-1 if newest else 0 :]
    if not newest:
        assert second.explain().rows_decoded < first.explain().rows_decoded / 4


def test_an_index_serves_both_ways_to_a_topic(broker: Broker, tmp_path: Path) -> None:
    wanted = pc.field("_key") == b"k7"
    with (
        table("orders", broker.bootstrap_servers, key_index=tmp_path) as by_wire,
        table("orders", data_folder=broker.data_dir, key_index=tmp_path) as by_folder,
    ):
        first = by_wire.scan(None, wanted)
        expected = first.to_table()
        second = by_folder.scan(None, wanted)
        assert second.to_table().equals(expected)
        assert second.explain().rows_decoded < first.explain().rows_decoded / 4


def test_the_account_of_a_reading_has_keys_only_with_an_index(broker: Broker, tmp_path: Path) -> None:
    wanted = pc.field("_key") == b"k7"
    with table("orders", broker.bootstrap_servers, key_index=tmp_path) as orders:
        before = orders.explain(None, wanted)
        assert (before.pushed_down, before.skipped_offsets) == (None, 0)
        assert orders.count(wanted) == 6
        after = orders.explain(None, wanted)
    assert after.pushed_down == "_key = b'k7'"
    assert 0 < after.indexed_offsets <= RECORDS
    assert f"index of keys: asked for {after.indexed_offsets} offsets" in str(after)


def test_filters_of_other_columns_and_offsets_stay_exact(broker: Broker, tmp_path: Path) -> None:
    with table("orders", broker.bootstrap_servers, key_index=tmp_path) as orders:
        for _ in range(2):
            key, low = pc.field("_key") == b"k9", pc.field("_offset") > 1_000
            assert orders.to_table(filter=key & low).column("_offset").to_pylist() == [1409, 2109, 2809, 3509]
            assert orders.to_table(filter=key | (pc.field("_offset") == 3)).num_rows == 7


def test_a_folder_that_takes_no_files_is_named(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(TableError, match=f"the index of keys cannot have the folder {file}: File exists"):
        table("orders", broker.bootstrap_servers, key_index=file)


def test_a_full_disk_takes_no_rows_away(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with table("orders", broker.bootstrap_servers, key_index=tmp_path) as orders:
        assert orders.count(pc.field("_key") == b"k7") == 6
        assert orders.explain(None, pc.field("_key") == b"k7").indexed_offsets == 0


def test_a_condition_with_gaps_builds_no_index_over_them(broker: Broker, tmp_path: Path) -> None:
    key, offset = pc.field("_key"), pc.field("_offset")
    with table("orders", broker.bootstrap_servers, key_index=tmp_path) as orders:
        assert orders.count(((key == b"k7") & (offset < 700)) | (offset >= 1_500)) == RECORDS - 1_500 + 1
        assert orders.count(key == b"k7") == 6
        assert orders.count(key == b"k100") == 6


def test_a_long_list_of_keys_reads_everything(broker: Broker, tmp_path: Path) -> None:
    """MAX_INDEXED_KEYS"""
    keys = [b"k%d" % each for each in range(MAX_INDEXED_KEYS + 1)]
    with table("orders", broker.bootstrap_servers, key_index=tmp_path) as orders:
        orders.count(pc.field("_key") == b"k7")
        for wanted, is_asked in ((keys[:-1], True), (keys, False)):
            reading = orders.scan(None, pc.field("_key").isin(wanted))
            assert reading.count_rows() == RECORDS
            assert (reading.explain().indexed_offsets > 0) is is_asked


def test_ends_of_epochs_are_those_of_the_log(broker: Broker) -> None:
    with BlockingClient.to(broker.bootstrap_servers) as client:
        epoch = client.topics_by_name(["orders"])["orders"].partitions[0].leader_epoch
        assert client.end_of_epoch("orders", 0, epoch) == RECORDS
        assert client.end_of_epoch("orders", 0, epoch + 5) == -1


def test_the_types_of_keys(broker: Broker, tmp_path: Path) -> None:
    with table("orders", broker.bootstrap_servers, key="text", key_index=tmp_path) as orders:
        for _ in range(2):
            found = orders.to_table(filter=pc.field("_key") == "k7")
            assert found.num_rows == 6
            assert found.schema.field("_key").type == pa.string()
