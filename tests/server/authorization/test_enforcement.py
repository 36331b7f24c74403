"""Rights that come and go while somebody is connected: what was allowed before is not done afterwards, on any of the short ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.security.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.server import dispatch
from barnabas.server.api_table import BETWEEN_BROKERS, SERVED
from barnabas.server.apis import produce
from barnabas.server.guards.guard import Asked
from barnabas.server.guards.guard_table import ASKS_ITSELF, GUARDS, OPEN
from barnabas.server.requests import RequestContext
from tests.server.authorization.people import ALICE, acl, guarded, names_of
from tests.server.in_process import TOPIC
from tests.server.quotas import quota_request
from tests.waiting import until

DELETE_TOPICS = 20
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
WRITE = acl(ResourceType.TOPIC, TOPIC, Operation.WRITE)
READ = acl(ResourceType.TOPIC, TOPIC, Operation.READ)


def test_every_api_that_is_served_is_guarded_or_open() -> None:
    assert GUARDS.keys() | ASKS_ITSELF | OPEN >= SERVED | BETWEEN_BROKERS
    assert not GUARDS.keys() & (ASKS_ITSELF | OPEN)


async def test_producing_is_allowed_and_forbidden_again(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        assert await people.admin.create() == 0
        alice = await people.connect(ALICE)
        assert await alice.produce(b"v") == REFUSED
        assert await people.allow(WRITE) == [0]
        assert [await alice.produce(b"v") for _ in range(3)] == [0, 0, 0]  # the connection remembers the first decision
        await people.forget()
        assert [await alice.produce(b"v") for _ in range(2)] == [REFUSED, REFUSED]
        assert await people.admin.fetch() == (0, [b"v"] * 3)


async def test_who_was_allowed_to_write_is_not_allowed_to_write_in_a_transaction(tmp_path: Path) -> None:
    """Though the request looks the same, but for the batch in it, and the transaction is open."""
    async with guarded(tmp_path, transaction_partition_verification_enable="false") as people:
        await people.admin.create()
        assert await people.admin.produce(b"open", sequence=0, transactional_id="x") == 0
        assert await people.allow(WRITE) == [0]
        alice = await people.connect(ALICE)
        assert [await alice.produce(b"v", transactional_id="x", in_transaction=False) for _ in range(3)] == [0] * 3
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert [await alice.produce(b"v", sequence=1, transactional_id="x") for _ in range(2)] == [refused] * 2
        assert await people.admin.produce(b"more", sequence=1, transactional_id="x") == 0
        assert await people.admin.produce(b"more", sequence=2, transactional_id="x") == 0


async def test_what_a_session_rests_on_is_asked_anew(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        await people.admin.create()
        await people.admin.produce(b"v")
        await people.allow(READ)
        alice = await people.connect(ALICE)
        wanted = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=2**20)])

        async def fetch(session_id: int, epoch: int, *topics: FetchTopic) -> FetchResponse:
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=2**20,
                session_id=session_id,
                session_epoch=epoch,
                topics=list(topics),
            )
            answer = await alice.ask((1, 11), request, FetchResponse)
            assert isinstance(answer, FetchResponse)
            return answer

        first = await fetch(0, 0, wanted)
        assert first.session_id
        assert (await fetch(first.session_id, 1)).responses == []  # no data; the session stays idle
        await people.forget()
        (topic,) = (await fetch(first.session_id, 2)).responses
        assert topic.partitions[0].error_code == REFUSED
        await people.allow(READ)
        (topic,) = (await fetch(first.session_id, 3)).responses
        assert (topic.partitions[0].error_code, topic.partitions[0].high_watermark) == (0, 1)


async def test_nobody_calls_himself_a_broker(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        await people.admin.create()
        await people.admin.produce(b"v")
        await people.allow(READ)
        alice = await people.connect(ALICE)
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)
        request = FetchRequest(
            replica_id=2, max_wait_ms=0, min_bytes=0, max_bytes=2**20, topics=[FetchTopic(topic=TOPIC, partitions=[partition])]
        )
        answer = await alice.ask((1, 11), request, FetchResponse)
        assert answer.responses[0].partitions[0].error_code == REFUSED
        await people.allow(acl(ResourceType.CLUSTER, CLUSTER_NAME, Operation.CLUSTER_ACTION))
        answer = await alice.ask((1, 11), request, FetchResponse)
        assert answer.responses[0].partitions[0].error_code != REFUSED


async def test_topics_are_hidden_from_who_may_not_describe_them(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        for name in ("mine", "yours"):
            assert await people.admin.create(name=name) == 0
        alice = await people.connect(ALICE)
        await people.allow(acl(ResourceType.TOPIC, "mine", Operation.READ))
        answer = await alice.ask((3, 9), MetadataRequest(topics=None), MetadataResponse)
        assert names_of(answer.topics) == ["mine"]
        answer = await people.admin.ask((3, 9), MetadataRequest(topics=None), MetadataResponse)
        assert {"mine", "yours"} <= set(names_of(answer.topics))


async def test_a_topic_that_is_made_meanwhile_is_not_deleted(tmp_path: Path) -> None:
    """A principal that may describe a topic learns that it is absent, and the handler does not look again."""
    handed_on: list[str] = []

    def handle(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        handed_on.extend(request.topic_names)
        return DeleteTopicsResponse()

    async with guarded(tmp_path) as people:
        await people.allow(acl(ResourceType.TOPIC, "later", Operation.DESCRIBE))
        broker = people.admin.broker
        assert broker.authorizer is not None
        context = RequestContext(DELETE_TOPICS, 5, 1, "c", "127.0.0.1", ALICE, "PLAINTEXT", 9092, ("", ""))
        asked = Asked(broker, context, broker.authorizer.of_request(context))
        request = DeleteTopicsRequest(topic_names=["later", "hidden"], timeout_ms=1_000)
        answer = GUARDS[DELETE_TOPICS](asked, request, handle)
        assert isinstance(answer, DeleteTopicsResponse)
    assert handed_on == []
    codes = [(each.name, each.error_code) for each in answer.responses]
    assert codes == [("later", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("hidden", REFUSED)]


async def test_a_group_has_what_is_bound_to_it(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        await people.admin.create()
        await people.allow(acl(ResourceType.TOPIC, TOPIC, Operation.WRITE, principal="Group:writers"))
        alice, bob = await people.connect(ALICE, ("Group:readers", "Group:writers")), await people.connect("User:bob")
        assert await alice.produce(b"v") == 0
        assert await bob.produce(b"v") == REFUSED


@pytest.mark.parametrize("allowed", ["true", "false"])
async def test_where_there_is_no_binding_the_setting_decides(tmp_path: Path, allowed: str) -> None:
    async with guarded(tmp_path, allow_everyone_if_no_acl_found=allowed) as people:
        await people.admin.create()
        alice = await people.connect(ALICE)
        assert await alice.produce(b"v") == (0 if allowed == "true" else REFUSED)


async def test_bindings_outlive_the_broker(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        await people.admin.create()
        assert await people.allow(WRITE, WRITE) == [0, 0]
    async with guarded(tmp_path) as people:
        alice = await people.connect(ALICE)
        assert await alice.produce(b"v") == 0
        (result,) = (await people.forget()).filter_results
        assert [(each.principal, each.resource_name) for each in result.matching_acls] == [(ALICE, TOPIC)]


async def test_what_is_refused_is_paid_by_who_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paid: list[str] = []
    monkeypatch.setattr(dispatch, "charge_response", lambda _broker, connection, *_: paid.append(connection.principal))
    async with guarded(tmp_path) as people:
        broker, alice = people.admin.broker, await people.connect(ALICE)
        assert await people.admin.create() == 0
        request = quota_request({"user": None}, producer_byte_rate=1e6, request_percentage=50.0)
        assert (await people.admin.ask((49, 1), request, AlterClientQuotasResponse)).entries[0].error_code == 0
        await until(lambda: broker.client_quotas is not None)
        marker = WritableTxnMarker(
            producer_id=7,
            producer_epoch=0,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
        )
        paid.clear()
        for client in (people.admin, alice):
            await client.ask((27, 1), WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse)
        assert paid == [ALICE], "brokers, and who may do as they do, are exempt"
        await alice.ask((17, 1), SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        assert paid == [ALICE] * 2
        sizes: list[int] = []

        def pay(_broker: object, _connection: object, _budget: object, size: int) -> int:
            sizes.append(size)
            return 0

        monkeypatch.setattr(produce, "charge_produce", pay)
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await alice.produce(b"x" * 1000, sequence=0, transactional_id="x") == refused
        assert len(sizes) == 1
        assert sizes[0] > 1000
