"""Leaders and followers on real sockets: records reach the other replicas, count when they have, and survive their leader."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from barnabas.client.asynchronous import AsyncClient, AsyncConnection
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionFailed
from barnabas.client.plans import Call
from barnabas.client.results import Produced
from barnabas.cluster.metadata.image import MetadataDelta, PartitionState
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData, ReplicaState
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.records.batch import build_batch
from barnabas.replication.follower_partition import FollowerPartition
from tests.server.replication.cluster import TOPIC, TOPIC_ID, Cluster, cluster_of
from tests.server.scraped import render
from tests.waiting import until

NOW_MS = int(time.time() * 1000)  # retention deletes records older than retention.ms


async def produce(cluster: Cluster, *values: bytes, acks: int = -1) -> Produced:
    async with AsyncClient.to(cluster.addresses) as client:
        batch = build_batch([(None, value) for value in values], timestamp_ms=NOW_MS)
        return await client.produce(TOPIC, 0, bytes(batch), acks=acks)


async def test_what_is_produced_reaches_all_replicas_before_it_is_acknowledged(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.create((1, 2, 3))
        result = await produce(cluster, b"a", b"b")
        assert result.base_offset == 0
        assert cluster.ends() == {1: 2, 2: 2, 3: 2}
        assert cluster.replica(1).high_watermark == 2
        await until(lambda: cluster.marks() == {1: 2, 2: 2, 3: 2})


async def test_a_fault_while_an_answer_is_taken_in_does_not_end_replication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults: list[bool] = []  # for each fault: was the fetcher's task parked?
    receive = FollowerPartition.receive

    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1, 2))
        await produce(cluster, b"a")
        (fetcher,) = cluster.brokers[2].fetcher_manager._fetchers.values()

        def failing(partition: FollowerPartition, *arguments: Any) -> Any:
            if not faults:
                faults.append(fetcher._is_parked)
                raise RuntimeError("nobody thought of this")
            return receive(partition, *arguments)

        monkeypatch.setattr(FollowerPartition, "receive", failing)
        await produce(cluster, b"b")
        assert faults == [True]
        assert cluster.ends() == {1: 2, 2: 2}
        assert [record.getMessage() for record in caplog.records if record.exc_info] == ["event=fetch-failed leader=1"]


async def test_a_consumer_reads_what_is_committed_and_no_more(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1, 2))
        await produce(cluster, b"a")
        cluster.brokers[2].fetcher_manager.leave(cluster.follower(2))
        await produce(cluster, b"b", acks=1)
        assert cluster.ends() == {1: 2, 2: 1}
        async with AsyncClient.to(cluster.addresses) as client:
            fetched = await client.fetch(TOPIC, 0, 0)
            assert (fetched.high_watermark, fetched.log_start_offset) == (1, 0)
            waiting = asyncio.ensure_future(client.fetch(TOPIC, 0, 1))
            await asyncio.sleep(0)
            cluster.brokers[2].fetcher_manager.follow(cluster.follower(2))
            await until(lambda: cluster.marks() == {1: 2, 2: 2})
            assert (await waiting).high_watermark == 2


async def test_who_leads_next_has_all_that_was_acknowledged_and_what_only_the_old_leader_had_is_cut(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.create((1, 2, 3))
        await produce(cluster, b"a")
        for follower in (2, 3):
            cluster.brokers[follower].fetcher_manager.leave(cluster.follower(follower))
        await produce(cluster, b"lost", b"lost", acks=1)
        assert cluster.ends() == {1: 3, 2: 1, 3: 1}
        await cluster.elect(2)
        await produce(cluster, b"b")
        await until(lambda: cluster.ends() == {1: 2, 2: 2, 3: 2} and set(cluster.marks().values()) == {2})
        epochs = [cluster.replica(i).log.epoch_entries for i in (1, 2, 3)]
        assert epochs == [[(0, 0), (1, 1)]] * 3


async def test_a_long_log_is_cut_when_its_producers_are_known(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1, 2))
        leader = cluster.leader(1)
        for number in range(300):
            data = build_batch([(None, b"a")], timestamp_ms=NOW_MS, producer_id=7, producer_epoch=0, base_sequence=number)
            leader.append_as_leader(memoryview(bytearray(data)), NOW_MS)
            if number == 289:
                await until(lambda: cluster.ends() == {1: 290, 2: 290})
                cluster.brokers[2].fetcher_manager.leave(cluster.follower(2))
        await cluster.elect(2)
        await until(lambda: cluster.ends() == {1: 290, 2: 290})
        assert [producer.last_sequence for producer in cluster.replica(1).log.reader.producers()] == [289]
        await produce(cluster, b"b")
        await until(lambda: cluster.marks() == {1: 291, 2: 291})


async def test_waiting_producers_are_told_that_the_leader_changed(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1, 2))
        cluster.brokers[2].fetcher_manager.leave(cluster.follower(2))
        failures: list[object] = []
        leader = cluster.leader(1)
        leader.append_as_leader(memoryview(bytearray(build_batch([(None, b"a")], timestamp_ms=NOW_MS))), NOW_MS)
        leader.wait_acknowledged(0, failures.append, acks_all=True)
        await cluster.elect(2)
        assert [getattr(failure, "code", None) for failure in failures] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert leader.closed
        await until(lambda: cluster.ends() == {1: 0, 2: 0})


async def test_a_follower_that_stops_leaves_the_in_sync_set_and_joins_when_it_is_back(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, replica_lag_time_max_ms="500") as cluster:
        await cluster.create((1, 2, 3))
        await produce(cluster, b"a")
        await cluster.stop(3)
        await produce(cluster, b"b")  # waits until the leader has shrunk the in-sync set
        assert cluster.state().isr == (1, 2)
        assert cluster.ends() == {1: 2, 2: 2}
        await cluster.start(3)
        await until(lambda: set(cluster.state().isr) == {1, 2, 3})
        assert cluster.ends() == {1: 2, 2: 2, 3: 2}


async def test_a_follower_that_asks_before_the_leader_knows_of_the_partition_is_heard(tmp_path: Path) -> None:
    """Its session has no news of a partition without records, so that it would not come to say again where it is."""
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1, 2))
        await produce(cluster, b"a")
        topic, leader = cluster.image.topics[TOPIC], cluster.brokers.pop(1)
        added = PartitionState(1, 0, (1, 2), (1, 2))
        await cluster.apply(MetadataDelta(topics=(replace(topic, partitions=(*topic.partitions, added)),)))
        sessions = leader.fetch_sessions._sessions.values()
        await until(lambda: any(len(each.partitions) == 2 and each.waiters for each in sessions))
        cluster.brokers[1] = leader
        await cluster.apply(MetadataDelta(), everything_to=1)
        followers = cluster.leader(1, 1).followers
        assert followers is not None
        await until(lambda: followers.replicas.followers()[2].end_offset == 0)


@pytest.mark.parametrize("goes_on", [False, True], ids=["it begins a session", "it goes on with one"])
async def test_a_fetch_of_a_follower_that_comes_late_does_not_stay_its_last_word(tmp_path: Path, *, goes_on: bool) -> None:
    """A connection was given up, and its request arrives behind those of the next connection. Nothing is news after it."""
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1, 2))
        sessions = cluster.brokers[1].fetch_sessions._sessions
        await until(lambda: len(sessions) == 1)
        (earlier,) = sessions.values()
        (fetcher,) = cluster.brokers[2].fetcher_manager._fetchers.values()
        fetcher._peers.disconnect(1)
        await until(lambda: any(each is not earlier for each in sessions.values()))
        await produce(cluster, b"a", b"b")
        wanted = FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=100)])
        late = FetchRequest(
            max_wait_ms=0,
            replica_state=ReplicaState(replica_id=2, replica_epoch=cluster.image.brokers[2].epoch),
            session_id=earlier.session_id if goes_on else 0,
            session_epoch=earlier.epoch if goes_on else 0,
            topics=[wanted],
        )
        config = ClientConfig((), client_id=fetcher._peers._config.client_id)
        connection = await AsyncConnection.open(("127.0.0.1", cluster.brokers[1].endpoints[0].port), config)
        await connection.request(Call(late))
        connection.close()
        followers = cluster.leader(1).followers
        assert followers is not None
        await until(lambda: followers.replicas.followers()[2].end_offset == 2)


async def test_too_few_in_sync_refuse_before_and_after_the_append(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2, replica_lag_time_max_ms="500") as cluster:
        await cluster.create((1, 2), min_insync_replicas="2")
        await produce(cluster, b"a")
        await cluster.stop(2)
        leader = cluster.leader(1)
        failures: list[object] = []
        leader.append_as_leader(memoryview(bytearray(build_batch([(None, b"b")], timestamp_ms=NOW_MS))), NOW_MS, acks_all=True)
        leader.wait_acknowledged(1, failures.append, acks_all=True)
        await until(lambda: cluster.state().isr == (1,))
        await until(lambda: failures)
        assert [getattr(failure, "code", None) for failure in failures] == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
        assert leader.high_watermark == 1, "the last replica standing commits nothing"
        with pytest.raises(Exception, match="NOT_ENOUGH_REPLICAS"):
            leader.append_as_leader(memoryview(bytearray(build_batch([(None, b"c")]))), NOW_MS, acks_all=True)
        await cluster.start(2)
        await until(lambda: cluster.marks() == {1: 2, 2: 2})
        await produce(cluster, b"c")


async def test_a_restart_hides_nothing_that_was_committed(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1, 2))
        await produce(cluster, b"a", b"b")
        await until(lambda: cluster.marks() == {1: 2, 2: 2})
        for broker_id in (1, 2):
            await cluster.stop(broker_id)
        for broker_id in (1, 2):
            await cluster.start(broker_id)
        assert cluster.marks() == {1: 2, 2: 2}


async def test_an_empty_replica_gets_everything(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 3) as cluster:
        await cluster.create((1, 2), segment_bytes="1048576")
        for number in range(30):
            await produce(cluster, b"%d" % number * 100_000)
        async with AsyncClient.to(cluster.addresses) as client:
            await client.delete_records({(TOPIC, 0): 7})
        assert cluster.replica(2).log.log_start_offset == 7, "who is in sync has no less deleted"
        state = cluster.state()
        await cluster.change(TOPIC, 0, _with_replicas(state, (1, 2, 3)))
        await until(lambda: set(cluster.state().isr) == {1, 2, 3})
        assert cluster.ends() == {1: 30, 2: 30, 3: 30}
        assert cluster.replica(3).log.log_start_offset == 7


async def test_an_empty_replica_writes_down_where_it_begins_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1,))
        await produce(cluster, b"a", b"b", b"c")
        async with AsyncClient.to(cluster.addresses) as client:
            await client.delete_records({(TOPIC, 0): 2})
        await cluster.change(TOPIC, 0, _with_replicas(cluster.state(), (1, 2)))
        await until(lambda: set(cluster.state().isr) == {1, 2})
        log = cluster.replica(2).log
        assert (log.first_offset, log.log_start_offset, log.kept_start_offset) == (0, 2, 2)
        assert f"{TOPIC} 0 2" in (tmp_path / "2" / "log-start-offset-checkpoint").read_text()


async def test_a_log_that_is_begun_anew_further_down_is_written_down_before_it_counts(tmp_path: Path) -> None:
    """Retention has emptied the log behind the records that the next leader lost with its power. Records that are appended there are gone
    after a crash, from all replicas, while the checkpoint says that the log begins later."""
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1, 2))
        await produce(cluster, b"a", b"b", b"c")
        await cluster.stop(2)
        checkpoint = tmp_path / "2" / "log-start-offset-checkpoint"
        checkpoint.write_text(f"0\n1\n{TOPIC} 0 7\n")
        await cluster.start(2)
        await until(lambda: cluster.replica(2).log.log_end_offset == 3)
        log = cluster.replica(2).log
        await until(lambda: log.is_written_down)
        assert log.log_start_offset == 3
        assert f"{TOPIC} 0 3" in checkpoint.read_text()


async def test_who_is_to_lead_has_its_cut_log_written_down(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1, 2))
        log = cluster.replica(2).log
        log.is_overstated = True
        await cluster.elect(2)
        assert cluster.replica(2).is_leader
        assert log.is_written_down


async def test_a_deletion_whose_client_has_left_leaves_nothing_behind(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1, 2))
        await produce(cluster, b"a", b"b")
        await cluster.stop(2)  # the answer waits for this follower
        client = await AsyncConnection.open(("127.0.0.1", cluster.brokers[1].endpoints[0].port), ClientConfig(()))
        places = [DeleteRecordsPartition(partition_index=0, offset=1)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=places)], timeout_ms=1_000)
        asked = asyncio.ensure_future(client.request(Call(request)))
        await until(lambda: cluster.replica(1).log.log_start_offset == 1)
        client.close()
        with pytest.raises(ConnectionFailed):
            await asked
        await cluster.start(2)
        await until(lambda: cluster.replica(2).log.kept_start_offset == 1)


async def test_who_asks_the_wrong_broker_is_told_the_right_one(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create((1,))
        async with AsyncClient.to(cluster.address(2)) as client:
            assert (await client.topics())[TOPIC].partitions[0].leader == 1
        await cluster.elect(1)
        batch = bytes(build_batch([(None, b"a")], timestamp_ms=NOW_MS))
        data = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=TOPIC, topic_id=TOPIC_ID, partition_data=[data])]
        )
        connection = await AsyncConnection.open(("127.0.0.1", cluster.brokers[2].endpoints[0].port), ClientConfig(()))
        answer = await connection.request(Call(request))
        told = answer.responses[0].partition_responses[0]
        assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (1, 1)
        assert [(n.node_id, n.port) for n in answer.node_endpoints] == [(1, cluster.brokers[1].endpoints[0].port)]
        wanted = FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[FetchPartition(partition=0, partition_max_bytes=100)])
        fetched = await connection.request(Call(FetchRequest(max_wait_ms=0, session_epoch=-1, topics=[wanted])))
        found = fetched.responses[0].partitions[0]
        assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, 1)
        assert [n.node_id for n in fetched.node_endpoints] == [1]
        connection.close()
        await asyncio.sleep(0)


def _with_replicas(state: PartitionState, replicas: tuple[int, ...]) -> PartitionState:
    return replace(state, replicas=replicas, partition_epoch=state.partition_epoch + 1)


async def test_a_consumer_is_sent_to_the_replica_in_its_rack_and_reads_there(tmp_path: Path) -> None:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    async with cluster_of(tmp_path, 3, replica_selector_class=selector) as cluster:
        await cluster.create((1, 2, 3))
        await produce(cluster, b"a")
        await until(lambda: cluster.marks() == {1: 1, 2: 1, 3: 1})

        async def ask(broker_id: int, rack: str) -> PartitionData:
            connection = await AsyncConnection.open(("127.0.0.1", cluster.brokers[broker_id].endpoints[0].port), ClientConfig(()))
            wanted = FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
            request = FetchRequest(max_wait_ms=5_000, min_bytes=1, session_epoch=-1, topics=[wanted], rack_id=rack)
            answer = await connection.request(Call(request))
            connection.close()
            await asyncio.sleep(0)
            found: PartitionData = answer.responses[0].partitions[0]
            return found

        sent = await ask(1, "rack-3")
        assert (sent.error_code, sent.preferred_read_replica, bytes(sent.records or b"")) == (0, 3, b"")
        for broker_id, rack in ((3, "rack-3"), (1, "rack-1"), (1, "rack-9"), (1, "")):
            found = await ask(broker_id, rack)
            assert (found.error_code, found.preferred_read_replica, found.high_watermark) == (0, -1, 1)
            assert found.records


async def test_metrics_tell_of_replication(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2, replica_lag_time_max_ms="500") as cluster:
        await cluster.create((1, 2), (2, 1), min_insync_replicas="2")
        await produce(cluster, b"a")

        def metric(broker_id: int, name: str) -> float:
            lines = render(cluster.brokers[broker_id]).decode().splitlines()
            return next(float(line.split()[1]) for line in lines if line.startswith(f"barnabas_{name} "))

        assert [metric(1, name) for name in ("leaders", "partitions", "replica_fetchers", "under_replicated_partitions")] == [
            1,
            2,
            1,
            0,
        ]
        await until(lambda: metric(2, "replicated_bytes_in_total") > 0)
        await cluster.stop(2)
        await cluster.gone(2)
        await produce(cluster, b"b", acks=1)
        await until(lambda: metric(1, "under_min_isr_partitions") == 1)
        assert [metric(1, name) for name in ("isr_shrinks_total", "replica_max_lag", "under_replicated_partitions")] == [1, 1, 1]
