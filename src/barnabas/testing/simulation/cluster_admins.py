"""The clients that change a cluster: replicas and leaders of partitions, numbers of partitions, settings of brokers.

As in `admins.py`, each client is one task. It sends requests again and again, gets an answer or none, and records which states
are possible after that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.errors import BarnabasError, ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.values import ALL_BROKERS, ResourceType
from barnabas.testing.simulation.admins import Admin, ask, until_done
from barnabas.testing.simulation.history import Register, TopicPartition, Violation

MIN_IN_SYNC = "min.insync.replicas"
UNKNOWN = "where it was made"
PREFERRED = 0
CANCELLED_OFTEN = 0.25  # share of requests that cancel a move
MAY_REFUSE_MOVE = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
MAY_REFUSE_ELECTION = (ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
MOST_PARTITIONS = 4  # of a topic that gets more partitions


async def reassign(admin: Admin, brokers: Sequence[int], places: dict[TopicPartition, Register]) -> None:
    """Move partitions to other brokers, and sometimes change the target before a move is done; `places` has the requested
    replicas."""
    while not admin.is_over():
        await admin.pause()
        key = admin.random.choice(admin.lasting)
        size = min(len(brokers), admin.random.choice((3, 3, 4)))
        target = None if admin.random.random() < CANCELLED_OFTEN else admin.random.sample(brokers, size)
        place = places.setdefault(key, Register(f"the place of {key[0]}-{key[1]}", [UNKNOWN]))
        number = place.asking(text_of(target)) if target is not None else 0
        if target is None:
            place.lost_power()  # a cancelled move may return to any earlier placement
        item = ReassignableTopic(name=key[0], partitions=[ReassignablePartition(partition_index=key[1], replicas=target)])
        answer = await _answer(admin, AlterPartitionReassignmentsRequest(topics=[item], timeout_ms=2_000))
        if answer is None:
            continue
        code = ErrorCode(answer.error_code or answer.responses[0].partitions[0].error_code)
        if code and not code.retriable and code not in MAY_REFUSE_MOVE:
            raise Violation(f"the move of {key[0]}-{key[1]} to {target} was refused with {code.name}")
        if not code and target is not None:
            place.told(number)


def text_of(replicas: Sequence[int]) -> str:
    """Broker ids as "1,2,3", as registers keep them."""
    return ",".join(map(str, replicas))


async def elect(admin: Admin) -> None:
    """Request elections of the preferred leaders."""
    while not admin.is_over():
        await admin.pause()
        topic, index = admin.random.choice(admin.lasting)
        one = [TopicPartitions(topic=topic, partitions=[index])]
        asked = admin.random.choice((None, one))
        answer = await _answer(admin, ElectLeadersRequest(election_type=PREFERRED, topic_partitions=asked, timeout_ms=2_000))
        if answer is None:
            continue
        codes = [answer.error_code, *(p.error_code for each in answer.replica_election_results for p in each.partition_result)]
        for code in map(ErrorCode, codes):
            if code and not code.retriable and code not in MAY_REFUSE_ELECTION:
                raise Violation(f"the election of {topic}-{index} was refused with {code.name}")


async def tune_brokers(
    admin: Admin,
    brokers: Sequence[int],
    choices: Mapping[str, tuple[str, ...]],
    settings: Mapping[tuple[str, str], Register],
) -> None:
    """Change the settings of all brokers, or of one. From then on, brokers may report these values as settings of topics."""
    while not admin.is_over():
        await admin.pause()
        name = admin.random.choice(sorted(choices))
        value = admin.random.choice(choices[name])
        where = admin.random.choice((ALL_BROKERS, str(admin.random.choice(brokers))))
        if name == MIN_IN_SYNC:
            where = ALL_BROKERS  # this setting exists only for all brokers together
            for (_, setting), register in settings.items():
                if setting == name:
                    register.asking(value)
        item = AlterableConfig(name=name, value=value)
        resource = AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name=where, configs=[item])
        answer = await _answer(admin, IncrementalAlterConfigsRequest(resources=[resource]))
        if answer is None:
            continue
        code = ErrorCode(answer.responses[0].error_code)
        if code and not code.retriable:
            raise Violation(f"{name}={value} for broker {where!r} was refused with {answer.responses[0].error_message}")


async def enlarge(admin: Admin, topic: str, partitions: int, use: Callable[[int], None]) -> None:
    """Give a topic more partitions.

    Args:
        use: called with each partition that was added, so that a producer writes to it.
    """
    while not admin.is_over() and partitions < MOST_PARTITIONS:
        await admin.pause()
        if admin.is_over():
            return
        count = partitions + 1

        async def attempt(count: int = count) -> None:
            await admin.client.create_partitions(topic, count)

        await until_done(attempt, ErrorCode.INVALID_PARTITIONS)
        use(partitions)
        partitions = count


async def _answer(admin: Admin, request: Any) -> Any:
    """The answer; None without one."""
    try:
        return await admin.client.run(ask(request))
    except BarnabasError:
        return None
