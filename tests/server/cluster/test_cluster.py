"""Brokers of a cluster, asked over the wire: every broker takes what only the controller may do, knows who leads, and lets go in order."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.cluster import describe_cluster
from barnabas.cli.connection import Connection
from barnabas.cluster.membership import auto_topic_creation
from barnabas.cluster.metadata.image import PartitionState
from barnabas.cluster.planning.partitions import MoveRequest
from barnabas.cluster.planning.topics import NewTopic
from barnabas.errors import ErrorCode, LogDirFailed
from barnabas.protocol.messages import alter_partition_reassignments as reassign
from barnabas.protocol.messages import elect_leaders as elect
from barnabas.protocol.messages import incremental_alter_configs as alter_configs
from barnabas.protocol.messages import list_partition_reassignments as listing
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from barnabas.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from barnabas.protocol.values import NO_LEADER, ResourceType
from barnabas.server.broker import Broker
from barnabas.server.current_leader import current_leader
from barnabas.server.operator_pages import ready_page
from tests.server.cluster.in_process import Cluster, create, running
from tests.server.in_process import Client
from tests.server.scraped import render
from tests.waiting import asked_until


async def metadata(client: Client, name: str, *, make: bool = False) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=make)
    return await client.ask((3, 12), request, MetadataResponse)


def states(cluster: Cluster, name: str) -> list[tuple[PartitionState, ...]]:
    return [broker.metadata.topics[name].partitions for broker in cluster.brokers.values()]


async def test_every_broker_makes_topics_and_knows_them_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        for broker_id, client in cluster.clients.items():
            assert await create(client, f"topic-{broker_id}") == ErrorCode.NONE
            answer = await metadata(client, f"topic-{broker_id}")
            assert answer.controller_id == cluster.controller.config.broker_id
            assert [node.node_id for node in answer.brokers] == [1, 2, 3]
            partitions = answer.topics[0].partitions
            assert [(p.error_code, sorted(p.replica_nodes), sorted(p.isr_nodes)) for p in partitions] == [
                (0, [1, 2, 3], [1, 2, 3])
            ] * 3
            assert await create(client, f"topic-{broker_id}") == ErrorCode.TOPIC_ALREADY_EXISTS


async def test_every_broker_takes_what_is_the_controllers(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        client = cluster.clients[cluster.others[0]]
        assert await create(client, "t") == ErrorCode.NONE

        more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=5, assignments=None)], timeout_ms=5_000)
        grown = await client.ask((37, 3), more, CreatePartitionsResponse)
        assert grown.results[0].error_code == ErrorCode.NONE

        setting = alter_configs.AlterableConfig(name="retention.ms", config_operation=0, value="5")
        resource = alter_configs.AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name="t", configs=[setting])
        request = alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
        altered = await client.ask((44, 1), request, alter_configs.IncrementalAlterConfigsResponse)
        assert altered.responses[0].error_code == ErrorCode.NONE
        await cluster.until(lambda: all(b.controller.topic_config("t").retention_ms == 5 for b in cluster.brokers.values()))

        asked = elect.ElectLeadersRequest(
            election_type=0, topic_partitions=[elect.TopicPartitions(topic="t", partitions=[0, 99])]
        )
        elected = await client.ask((43, 2), asked, elect.ElectLeadersResponse)
        codes = [result.error_code for result in elected.replica_election_results[0].partition_result]
        assert codes == [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

        features = UpdateFeaturesRequest(timeout_ms=1, feature_updates=[FeatureUpdateKey(feature="f", max_version_level=1)])
        updated = await client.ask((57, 1), features, UpdateFeaturesResponse)
        assert updated.error_code == ErrorCode.INVALID_UPDATE_VERSION

        unknown = await client.ask((64, 0), UnregisterBrokerRequest(broker_id=77), UnregisterBrokerResponse)
        assert unknown.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED

        gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=5_000)
        deleted = await client.ask((20, 6), gone, DeleteTopicsResponse)
        assert deleted.responses[0].error_code == ErrorCode.NONE
        assert (await metadata(client, "t")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await cluster.until(lambda: not any(b.metadata.deletions for b in cluster.brokers.values()))
        assert not any(b.partitions.topic("t") for b in cluster.brokers.values())


async def test_a_first_group_and_a_topic_do_not_wait_for_a_broker_that_is_away(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        away = cluster.others[0]
        await cluster.stop(away)
        await cluster.until(partial(is_gone, cluster, away))
        for number, client in enumerate(cluster.clients.values()):
            assert await create(client, f"t-{number}") == ErrorCode.NONE
            found = await client.ask((10, 4), FindCoordinatorRequest(coordinator_keys=["g"]), FindCoordinatorResponse)
            assert found.coordinators[0].error_code == ErrorCode.NONE
        await cluster.start(away)
        for name in ("t-0", "__consumer_offsets"):
            await cluster.until(partial(are_all_in_sync, cluster, name))


def are_all_in_sync(cluster: Cluster, topic: str) -> bool:
    return all(set(state.isr) == {1, 2, 3} for partitions in states(cluster, topic) for state in partitions)


async def test_who_asks_for_what_is_missing_does_not_wait_for_a_controller_that_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_topic_creation, "WAIT_S", 0.01)
    async with running(tmp_path) as cluster:
        member = cluster.controller.member
        assert member is not None
        async with member._turn:
            for client in cluster.clients.values():
                for _ in range(2):
                    assert (await metadata(client, "t", make=True)).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                assert (await coordinator_told(client, "g"))[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE
        wanted, brokers = {"t", "__consumer_offsets"}, cluster.brokers.values()
        await cluster.until(lambda: all(wanted <= broker.metadata.topics.keys() for broker in brokers))


async def test_a_controller_that_stands_still_is_waited_for_until_it_is_found_dead(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        former = cluster.controller
        others = [cluster.brokers[broker_id] for broker_id in cluster.others]
        clients = [cluster.clients[broker_id] for broker_id in cluster.others]
        member = former.member
        assert member is not None
        async with member._turn:
            asked = asyncio.ensure_future(create(clients[0], "asked-for"))
            made = asyncio.ensure_future(metadata(clients[1], "wanted", make=True))
            await cluster.until(lambda: len(member._running) == 2)
            cluster.stores[former.config.broker_id].expire()
            assert await asked == ErrorCode.NONE
            await made
            await cluster.until(lambda: all("wanted" in broker.metadata.topics for broker in others))


async def unregister(client: Client, broker_id: int) -> int:
    answer = await client.ask((64, 0), UnregisterBrokerRequest(broker_id=broker_id), UnregisterBrokerResponse)
    return int(answer.error_code)


async def test_a_broker_that_was_drained_and_stopped_is_unregistered_once(tmp_path: Path) -> None:
    async with running(tmp_path, count=4) as cluster:
        kept, drained, replicating = cluster.others
        left = [cluster.controller.config.broker_id, replicating]
        outcomes = await cluster.controller.controller.create_topics([NewTopic("t", assignments=[(0, left)])])
        assert [outcome.error for outcome in outcomes] == [None]
        client = cluster.clients[kept]
        assert await unregister(client, drained) == ErrorCode.INVALID_REQUEST
        for stopped in (drained, replicating):
            await cluster.stop(stopped)
            await cluster.until(partial(is_gone, cluster, stopped))
        assert await unregister(client, drained) == ErrorCode.NONE
        assert await unregister(client, drained) == ErrorCode.BROKER_ID_NOT_REGISTERED
        assert [await unregister(client, replicating) for _ in range(2)] == [ErrorCode.NONE] * 2


async def test_a_topic_that_comes_while_fetches_wait_does_not_wait_for_them(tmp_path: Path) -> None:
    """A fetch here waits for longer than a test may take."""
    async with running(tmp_path, count=2, replica_fetch_wait_max_ms="1000000", replica_lag_time_max_ms="2000000") as cluster:
        client = cluster.clients[1]
        for name in ("first", "second"):
            assert await create(client, name, 2, 2) == ErrorCode.NONE
        for partition, state in enumerate(cluster.controller.metadata.topics["second"].partitions):
            produce = partial(cluster.clients[state.leader].produce, b"a", partition, name="second")
            assert await asked_until(produce, lambda code: code != ErrorCode.NOT_LEADER_OR_FOLLOWER) == ErrorCode.NONE


async def test_a_topic_is_made_by_asking_for_it(tmp_path: Path) -> None:
    async with running(tmp_path, default_replication_factor="2") as cluster:
        answer = await metadata(cluster.clients[cluster.others[0]], "fresh", make=True)
        (topic,) = answer.topics
        assert topic.error_code == ErrorCode.NONE
        assert len(topic.partitions[0].replica_nodes) == 2


async def test_a_partition_moves_with_its_records(tmp_path: Path) -> None:
    async with running(tmp_path, count=4) as cluster:
        client = cluster.clients[cluster.others[0]]
        assert await create(client, "t", 1, 2) == ErrorCode.NONE
        (before,) = cluster.controller.metadata.topics["t"].partitions
        for n in range(20):
            assert await cluster.clients[before.leader].produce(b"%d" % n) == ErrorCode.NONE
        target = [broker_id for broker_id in cluster.brokers if broker_id not in before.replicas]
        move = reassign.ReassignablePartition(partition_index=0, replicas=target)
        request = reassign.AlterPartitionReassignmentsRequest(topics=[reassign.ReassignableTopic(name="t", partitions=[move])])
        moved = await client.ask((45, 0), request, reassign.AlterPartitionReassignmentsResponse)
        assert moved.responses[0].partitions[0].error_code == ErrorCode.NONE
        await cluster.until(lambda: all(s[0].replicas == tuple(target) for s in states(cluster, "t")))
        left = await client.ask(
            (46, 0), listing.ListPartitionReassignmentsRequest(topics=None), listing.ListPartitionReassignmentsResponse
        )
        assert not left.topics
        await cluster.until(lambda: not any(cluster.brokers[old].partitions.topic("t") for old in before.replicas))
        (after,) = cluster.controller.metadata.topics["t"].partitions
        assert await cluster.clients[after.leader].fetch() == (0, [b"%d" % n for n in range(20)])


async def test_who_was_away_while_a_partition_moved_keeps_no_log_of_it(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        away = cluster.others[0]
        assert await create(cluster.clients[away], "t", 1) == ErrorCode.NONE
        folder = tmp_path / f"broker-{away}" / "t-0"
        await cluster.until(folder.exists)
        await cluster.stop(away)
        target = [broker_id for broker_id in cluster.brokers if broker_id != away]
        outcomes = await cluster.controller.controller.reassign([MoveRequest("t", 0, target)])
        assert [outcome.error for outcome in outcomes] == [None]
        assert folder.exists()
        await cluster.start(away)
        assert not folder.exists()
        assert all((tmp_path / f"broker-{broker_id}" / "t-0").exists() for broker_id in target)


async def test_where_a_followers_log_begins_is_written_down_before_deleted_records_are_said_to_be_gone(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        assert await create(cluster.clients[1], "t", 1) == ErrorCode.NONE
        (state,) = cluster.controller.metadata.topics["t"].partitions
        client = cluster.clients[state.leader]
        for n in range(5):
            assert await client.produce(b"%d" % n) == ErrorCode.NONE
        item = DeleteRecordsPartition(partition_index=0, offset=3)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[item])], timeout_ms=10_000)
        answer = await client.ask((21, 2), request, DeleteRecordsResponse)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        for broker_id in state.replicas:
            assert "t 0 3" in (tmp_path / f"broker-{broker_id}" / "log-start-offset-checkpoint").read_text()


async def test_a_lost_partition_is_seen_and_led_again_when_all_are_back(tmp_path: Path) -> None:
    async with running(tmp_path, min_insync_replicas="3") as cluster:
        assert await create(cluster.clients[1], "t", 1) == ErrorCode.NONE
        (before,) = cluster.controller.metadata.topics["t"].partitions
        for n in range(5):
            assert await cluster.clients[before.leader].produce(b"%d" % n) == ErrorCode.NONE
        for broker_id in (1, 2, 3):
            await cluster.stop(broker_id)
        cluster.lose_power()
        for broker_id in (1, 2):
            await cluster.start(broker_id)
        assert not states(cluster, "t")[0][0].is_lost, "the third one may have everything"
        await cluster.stop(1)
        await cluster.start(3)
        await cluster.until(lambda: all(state.is_lost for (state,) in states(cluster, "t")))
        wanted = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")])
        answer = await cluster.clients[3].ask((75, 0), wanted, DescribeTopicPartitionsResponse)
        (told,) = answer.topics[0].partitions
        assert (told.leader_id, told.isr_nodes, told.last_known_elr) == (-1, [], list(before.replicas))
        assert b"barnabas_lost_partitions 1.0" in render(cluster.brokers[3])
        connection = Connection(f"127.0.0.1:{cluster.brokers[3].endpoints[0].port}")
        described = await asyncio.to_thread(describe_cluster, connection)
        assert described["lost"] == {"t:0": list(before.replicas)}
        await cluster.start(1)
        await cluster.until(lambda: all(state.leader > 0 and len(state.isr) == 3 for (state,) in states(cluster, "t")))
        (after,) = cluster.controller.metadata.topics["t"].partitions
        assert (after.is_lost, after.last_known) == (False, ())
        assert await cluster.clients[after.leader].fetch() == (0, [b"%d" % n for n in range(5)])


async def test_producer_ids_are_the_clusters(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        answers = [await client.ask((22, 4), request, InitProducerIdResponse) for client in cluster.clients.values()]
        assert len({answer.producer_id for answer in answers}) == 3


async def test_who_stops_hands_its_leaderships_over_first(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        assert await create(cluster.clients[1], "t", 6) == ErrorCode.NONE
        controller = cluster.controller.config.broker_id
        for broker_id in (controller, cluster.others[0]):
            await cluster.stop(broker_id)
            await cluster.until(partial(is_gone, cluster, broker_id))
            left = next(iter(cluster.brokers.values())).metadata
            assert all(state.leader in left.brokers for state in left.topics["t"].partitions)
        client = next(iter(cluster.clients.values()))
        answer = await metadata(client, "t")
        assert all(len(p.offline_replicas) == 2 and p.error_code == ErrorCode.NONE for p in answer.topics[0].partitions)


def is_gone(cluster: Cluster, broker_id: int) -> bool:
    return all(broker_id not in broker.metadata.brokers for broker in cluster.brokers.values())


async def test_a_broker_that_is_given_up_refuses_until_it_is_back(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        assert await create(cluster.clients[1], "t", 1) == ErrorCode.NONE
        leader = cluster.controller.metadata.topics["t"].partitions[0].leader
        client, store = cluster.clients[leader], cluster.stores[leader]
        assert await client.produce(b"before") == ErrorCode.NONE
        store.suspend()
        cluster.tree.end(store.session.session_id)  # the other brokers see that the session has ended
        others = [broker for broker_id, broker in cluster.brokers.items() if broker_id != leader]
        await cluster.until(lambda: all(b.metadata.topics["t"].partitions[0].leader != leader for b in others))
        store.resume()
        await cluster.until(lambda: cluster.brokers[leader].metadata.topics["t"].partitions[0].leader != leader)
        assert await client.produce(b"during") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await cluster.until(lambda: len(others[0].metadata.topics["t"].partitions[0].isr) == 3)
        now = others[0].metadata.topics["t"].partitions[0].leader
        assert await cluster.clients[now].produce(b"after") == ErrorCode.NONE
        assert await cluster.clients[now].fetch() == (0, [b"before", b"after"])


async def leaders_told(client: Client) -> list[tuple[int, int]]:
    """Error and leader of the only partition of a topic, as Metadata and DescribeTopicPartitions say it."""
    described = await client.ask(
        (75, 0), DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]), DescribeTopicPartitionsResponse
    )
    answers = [(await metadata(client, "t")).topics[0].partitions[0], described.topics[0].partitions[0]]
    return [(told.error_code, told.leader_id) for told in answers]


async def coordinator_told(client: Client, group: str) -> tuple[int, int]:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    found = (await client.ask((10, 4), request, FindCoordinatorResponse)).coordinators[0]
    return found.error_code, found.node_id


async def test_a_broker_that_stood_down_does_not_name_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        assert await create(cluster.clients[1], "t", 1) == ErrorCode.NONE
        leader = cluster.controller.metadata.topics["t"].partitions[0].leader
        broker, client, store = cluster.brokers[leader], cluster.clients[leader], cluster.stores[leader]
        epoch = broker.metadata.topics["t"].partitions[0].leader_epoch
        member = broker.member
        assert member is not None
        await coordinator_told(client, "any")  # creates __consumer_offsets
        names = [f"g{number}" for number in range(100)]  # enough names for each of its three partitions
        await cluster.until(lambda: leader in map(broker.coordinators.leader_of_group, names))
        group = next(name for name in names if broker.coordinators.leader_of_group(name) == leader)
        assert await coordinator_told(client, group) == (ErrorCode.NONE, leader)
        store.suspend()
        assert not member.is_down, "the session surely lives as yet"
        assert await leaders_told(client) == [(ErrorCode.NONE, leader)] * 2
        assert (ready_page(broker)[0], current_leader(broker, "t", 0)) == (200, (leader, epoch))
        member._stand_down("the time is over for which the session surely lives")
        assert await leaders_told(client) == [(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER)] * 2
        assert (ready_page(broker)[0], current_leader(broker, "t", 0)) == (503, None)
        assert await coordinator_told(client, group) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        store.resume()
        await cluster.until(lambda: not member.is_down)
        assert await leaders_told(client) == [(ErrorCode.NONE, leader)] * 2
        assert ready_page(broker)[0] == 200
        assert await coordinator_told(client, group) == (ErrorCode.NONE, leader)


async def test_requests_between_brokers_are_announced_in_a_cluster_only(tmp_path: Path) -> None:
    async with running(tmp_path, count=1, offsets_topic_replication_factor="1") as cluster:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = await cluster.clients[1].ask((18, 3), request, ApiVersionsResponse)
        assert {56, 58, 67} <= {entry.api_key for entry in answer.api_keys}


async def test_a_broker_whose_disk_fails_stops_and_others_lead(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        assert await create(cluster.clients[1], "t", 3) == ErrorCode.NONE
        broker = cluster.brokers[2]
        broker.faults.report(LogDirFailed(str(broker.logs.directories[0].path), "the disk is gone"))
        assert broker.failure.done()  # this ends the process
        await cluster.stop(2)
        await cluster.until(partial(is_gone, cluster, 2))
        partitions = cluster.controller.metadata.topics["t"].partitions
        assert all(state.leader in {1, 3} for state in partitions)


async def test_requests_go_on_while_the_controller_changes(tmp_path: Path) -> None:
    async with running(tmp_path, count=4) as cluster:
        client = cluster.clients[cluster.others[0]]
        made: list[int] = []
        ends = asyncio.Event()

        async def keep_asking() -> None:
            while not ends.is_set():
                made.append(await create(client, f"t{len(made)}", 1, 2))

        async def more(count: int) -> None:
            wanted = len(made) + count
            await cluster.until(lambda: len(made) >= wanted)

        asking = asyncio.ensure_future(keep_asking())
        for _ in range(2):
            await more(3)
            before = cluster.controller
            stopped = next(i for i, broker in cluster.brokers.items() if broker is before)
            if cluster.clients[stopped] is client:
                break
            await cluster.stop(stopped)
            await cluster.until(partial(is_gone, cluster, stopped))
        await more(3)
        ends.set()
        await asking
        # If the controller stops before it answers, the client asks again, and the topic exists already.
        assert set(made) <= {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
        topics = {f"t{n}" for n in range(len(made))}
        await cluster.until(lambda: all(topics <= broker.metadata.topics.keys() for broker in cluster.brokers.values()))


def gauges(broker: Broker) -> dict[str, float]:
    lines = [line.split() for line in render(broker).decode().splitlines() if not line.startswith("#")]
    return {name.removeprefix("barnabas_"): float(value) for name, value in lines if "{" not in name}


async def test_what_a_cluster_lacks_is_measured(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        assert await create(cluster.clients[1], "t", 3) == ErrorCode.NONE
        assert sum(gauges(broker)["controller"] for broker in cluster.brokers.values()) == 1
        await cluster.until(lambda: all(gauges(broker)["leaders"] == 1 for broker in cluster.brokers.values()))
        stopped = cluster.others[0]
        await cluster.stop(stopped)
        await cluster.until(partial(is_gone, cluster, stopped))
        live = cluster.brokers.values()
        await cluster.until(lambda: sum(gauges(broker)["under_replicated_partitions"] for broker in live) == 3)
        found = [gauges(broker) for broker in live]
        assert [each["brokers"] for each in found] == [2, 2]
        assert all(each["stood_down"] == each["leaderless_partitions"] == each["moving_partitions"] == 0 for each in found)
