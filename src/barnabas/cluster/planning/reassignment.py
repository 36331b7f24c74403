"""Moving a partition to other brokers (KIP-455): adding, catching up, removing, cancelling.

    stable ──begin──► moving: replicas = target + those to go ──caught_up──► stable: replicas = target
                        │  ▲
                        └──┘ begin again with another target; the original target cancels the move

Rules
  1. A replica is removed only when every added replica is in sync and a replica of the target can lead, so the partition never
     has fewer replicas or possible leaders than before.
  2. Replicas that an abandoned move had added are removed at once. If the partition depends on them, they stay until a replica
     of the target has caught up.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from barnabas.cluster.metadata.image import MetadataImage, PartitionState
from barnabas.cluster.planning.leadership import Electorate, Policy, candidate, change, with_epochs
from barnabas.protocol.values import NO_LEADER


def original(state: PartitionState) -> tuple[int, ...]:
    """The replicas before the current move."""
    return tuple(replica for replica in state.replicas if replica not in state.adding)


def begin(state: PartitionState, target: Sequence[int], electorate: Electorate, policy: Policy) -> PartitionState:
    """Start a move to `target`; it ends at once if no replica has to catch up."""
    before = original(state)
    abandoned = tuple(replica for replica in state.adding if replica not in target)
    kept = tuple(replica for replica in before if replica not in target)
    after = replace(
        state,
        replicas=(*target, *kept, *abandoned),
        adding=tuple(replica for replica in target if replica not in before),
        removing=(*kept, *abandoned),
    )
    after = complete(_drop(after, abandoned, electorate, policy), electorate, policy)
    return with_epochs(state, replace(after, leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch))


def cancel(state: PartitionState, electorate: Electorate, policy: Policy) -> PartitionState:
    """Cancel the move."""
    return begin(state, original(state), electorate, policy)


def complete(state: PartitionState, electorate: Electorate, policy: Policy) -> PartitionState:
    """The state after the move if it may end; otherwise `state` itself."""
    if not state.is_moving or not set(state.adding) <= set(state.isr):
        return state
    done = _drop(state, state.removing, electorate, policy)
    return replace(done, adding=(), removing=()) if not set(state.removing) & set(done.replicas) else state


def _drop(state: PartitionState, leaving: tuple[int, ...], electorate: Electorate, policy: Policy) -> PartitionState:
    """The state without these replicas, unless the partition depends on them."""
    in_sync = tuple(replica for replica in state.isr if replica not in leaving)
    replicas = tuple(replica for replica in state.replicas if replica not in leaving)
    leader = candidate(replace(state, replicas=replicas, eligible=()), in_sync, electorate)
    if not in_sync or (leader is None and state.leader != NO_LEADER):
        return state
    dropped = change(state, policy, leader=NO_LEADER if leader is None else leader, in_sync=in_sync, replicas=replicas)
    return replace(dropped, removing=tuple(replica for replica in state.removing if replica not in leaving))


def under_way(image: MetadataImage, wanted: Sequence[tuple[str, Sequence[int]]] | None) -> list[tuple[str, int, PartitionState]]:
    """The partitions that are being moved, of these topics and numbers; of all topics if `wanted` is None."""
    names = [(topic.name, range(len(topic.partitions))) for topic in image.topics.values()] if wanted is None else wanted
    found = [(topic, number, image.partition(topic, number)) for topic, numbers in names for number in numbers]
    return [(topic, number, state) for topic, number, state in found if state is not None and state.is_moving]
