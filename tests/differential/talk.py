"""The environment of a scenario: connections, questions whose answers are recorded, names of its own."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from barnabas.error_codes import ErrorCode
from barnabas.protocol import messages
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.differential.normalise import Normaliser
from tests.differential.plain import plain
from tests.differential.wire import CLIENT_ID, KEYS, ConnectionEnded, Line, api_of
from tests.waiting import wait_until

LAST_VERSIONS = {"InitProducerId": 5}  # APIs for which Kafka 4.3.0 announces fewer versions than kio has
NOT_YET = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


@dataclass(frozen=True)
class Address:
    """Where the broker under test listens and who it is."""

    host: str
    port: int
    node_id: int

    @classmethod
    def of(cls, bootstrap: str) -> Address:
        """Ask the broker for its id, and wait until its coordinators work."""
        host, _, port = bootstrap.rpartition(":")
        with Line((host, int(port))) as line:
            line.send(MetadataRequest(topics=[]), 1)
            answer = line.receive()
            assert isinstance(answer, MetadataResponse)
            _wait_for_coordinator(line)
        return cls(host, int(port), answer.brokers[0].node_id)


def _wait_for_coordinator(line: Line) -> None:
    questions: list[tuple[Message, int]] = [
        (FindCoordinatorRequest(key="warm-up"), 0),
        (FindCoordinatorRequest(key="warm-up", key_type=1), 1),
        (InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 0),
        *((_joining(f"warm-up-{index}"), 3) for index in range(20)),  # 20 groups reach every partition of __consumer_offsets
    ]
    for request, version in questions:

        def is_ready(request: Message = request, version: int = version) -> bool:
            line.send(request, version)
            return line.receive().error_code not in NOT_YET

        wait_until(is_ready, f"{api_of(request)} is not answered yet")


def _joining(group: str) -> JoinGroupRequest:
    """A join that is refused and leaves nothing behind, once the group's coordinator has loaded."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="nobody",
        protocol_type="warm-up",
        protocols=[JoinGroupRequestProtocol(name="none")],
    )


class Talk:
    """One scenario's conversation with a broker; `recording` is what came of it."""

    def __init__(self, address: Address, scenario: str) -> None:
        self.address = address
        self.node_id = address.node_id
        self.prefix = scenario + "-"
        self.normalise = Normaliser(address.node_id, self.prefix)
        self.recording: dict[str, Any] = {}
        self._settled = 0
        self._open = ExitStack()
        self.line = self.connect()

    def versions_of(self, api: str) -> range:
        """Every version of an API that Kafka 4.3.0 announces."""
        key = KEYS[api]
        _, _, first, last, _ = messages.APIS[key]
        return range(messages.FIRST_VERSIONS_OF_KAFKA_4.get(key, first), LAST_VERSIONS.get(api, last) + 1)

    def name(self, suffix: str) -> str:
        """A name that no other scenario uses."""
        return self.prefix + suffix

    def connect(self, client_id: str = CLIENT_ID) -> Line:
        """Another connection, closed with the scenario."""
        return self._open.enter_context(Line((self.address.host, self.address.port), client_id=client_id))

    def ask(
        self, step: str, request: Message, version: int, *, on: Line | None = None, only_mine: bool = False, by_kio: bool = True
    ) -> Any:
        """Send, wait for the answer, record it as `step`; None when the connection was closed instead (a new one is made)."""
        line = on or self.line
        line.send(request, version, by_kio=by_kio)
        return self.hear(f"{api_of(request)} v{version} {step}", version, on=line, only_mine=only_mine)

    def ask_together(self, step: str, *asked: tuple[Message, int], on: Line | None = None, only_mine: bool = False) -> list[Any]:
        """Send requests, each with its version, in one write, and record the answers: as `step` and their number."""
        line = on or self.line
        line.send_together(*asked)
        return [
            self.hear(f"{api_of(request)} v{version} {step}, {number}", version, on=line, only_mine=only_mine)
            for number, (request, version) in enumerate(asked, 1)
        ]

    def hear(self, step: str, version: int, *, on: Line | None = None, only_mine: bool = False) -> Any:
        """Wait for the answer to what was sent and record it."""
        line = on or self.line
        try:
            answer = line.receive()
        except (ConnectionEnded, TimeoutError) as error:
            self.note(step, "<no answer>" if isinstance(error, TimeoutError) else "<connection closed>")
            line.waiting.clear()
            if line is self.line:
                self.line = self.connect()
            return None
        self.note(step, self.normalise(plain(answer, version), only_mine=only_mine))
        return answer

    def do(self, request: Message, version: int, *, on: Line | None = None) -> Any:
        """Send and wait, without a record: preparation."""
        line = on or self.line
        line.send(request, version)
        return line.receive()

    def note(self, step: str, value: Any) -> None:
        """Record something."""
        assert step not in self.recording, f"two steps are called {step}"
        self.recording[step] = value

    def create(self, suffix: str, partitions: int = 1, **config: str) -> str:
        """A topic of one's own, there when this returns; underscores of a key stand for dots."""
        name = self.name(suffix)
        configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in config.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
        answer = self.do(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
        assert answer.topics[0].error_code == 0, answer
        self.wait_for_topic(name, partitions)
        return name

    def wait_for_topic(self, name: str, partitions: int = 1) -> UUID:
        """Until Metadata tells every partition's leader; the topic's id."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        found: list[UUID] = []

        def is_there() -> bool:
            topic = self.do(request, 12).topics[0]
            found[:] = [topic.topic_id]
            return (
                topic.error_code == 0 and len(topic.partitions) == partitions and not any(p.error_code for p in topic.partitions)
            )

        wait_until(is_there)
        self._wait_for_leader(name, partitions)
        self.normalise.topic_names[str(found[0])] = f"<id of {name}>"
        return found[0]

    def _wait_for_leader(self, name: str, partitions: int) -> None:
        """Metadata may tell of a partition before its leader has taken it up."""
        places = [ListOffsetsPartition(partition_index=index, timestamp=-2) for index in range(partitions)]
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=places)])
        wait_until(lambda: not any(each.error_code for each in self.do(request, 5).topics[0].partitions))

    def afterwards(self, request: Message, version: int) -> None:
        """Send something at the end, so that other scenarios find things as they were."""
        self._open.callback(lambda: self.do(request, version))

    def settle(self) -> None:
        """Until the broker has taken up every change made before: changes come in order, so a new topic that is seen is proof."""
        self._settled += 1
        self.create(f"settled-{self._settled}")

    def close(self) -> None:
        """Close every connection."""
        self._open.close()
