"""The settings of a topic that is a copy of a topic of another cluster: their names, the states, and the allowed changes.

The states of a topic with a link:
    mirroring      it follows the source; read-only
    promoting      it follows the source up to the end, and becomes writable then; promoting-now: it takes nothing more
    inspecting     it is compared with the source, before a failback; writable, and can be detached from the link
    comparing      it is compared with the source; read-only
    truncating     records that the source does not have are cut off; read-only
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.errors import ErrorCode, KafkaError

MIRROR_LINK, MIRROR_STATE, MIRROR_PRODUCER_ID_END = "mirror.link", "mirror.state", "mirror.producer.id.end"
MIRROR_LEADER_EPOCH_START = "mirror.leader.epoch.start"
MIRROR_SOURCE_TOPIC_ID, MIRROR_SOURCE_ENDS, MIRROR_LOST_TOPIC = (
    "mirror.source.topic.id",
    "mirror.source.promoted.ends",
    "mirror.lost.topic",
)
MIRROR_SOURCE_TOPIC, MIRROR_SOURCE_CLUSTERS = "mirror.source.topic", "mirror.source.cluster.ids"
MIRROR_PROMOTED_TOPIC_ID, MIRROR_PROMOTED_ENDS = "mirror.promoted.topic.id", "mirror.promoted.ends"
MIRROR_KEYS = (
    MIRROR_LEADER_EPOCH_START,
    MIRROR_LINK,
    MIRROR_LOST_TOPIC,
    MIRROR_PRODUCER_ID_END,
    MIRROR_PROMOTED_ENDS,
    MIRROR_PROMOTED_TOPIC_ID,
    MIRROR_SOURCE_CLUSTERS,
    MIRROR_SOURCE_ENDS,
    MIRROR_SOURCE_TOPIC,
    MIRROR_SOURCE_TOPIC_ID,
    MIRROR_STATE,
)
OF_LINK = frozenset(
    {
        MIRROR_LINK,
        MIRROR_LOST_TOPIC,
        MIRROR_SOURCE_CLUSTERS,
        MIRROR_SOURCE_ENDS,
        MIRROR_SOURCE_TOPIC,
        MIRROR_SOURCE_TOPIC_ID,
        MIRROR_STATE,
    }
)  # gone without a link
SET_BY_LINK = frozenset(
    {MIRROR_SOURCE_CLUSTERS, MIRROR_SOURCE_ENDS, MIRROR_SOURCE_TOPIC, MIRROR_SOURCE_TOPIC_ID}
)  # in a failback
MIRRORING, PROMOTING, PROMOTING_NOW = "mirroring", "promoting", "promoting-now"
INSPECTING, COMPARING, TRUNCATING = "inspecting", "comparing", "truncating"
OF_FAILBACK = frozenset({INSPECTING, COMPARING, TRUNCATING})
MIRROR_STATES = (COMPARING, INSPECTING, MIRRORING, PROMOTING, PROMOTING_NOW, TRUNCATING)
_NEXT_STATES = {  # to the same state and to COMPARING, see `_check_state`
    MIRRORING: {PROMOTING, PROMOTING_NOW},
    PROMOTING: {PROMOTING_NOW},
    PROMOTING_NOW: {PROMOTING},
    INSPECTING: {COMPARING},
    COMPARING: {TRUNCATING, PROMOTING_NOW},  # promoted to keep what the source does not have
    TRUNCATING: {MIRRORING},
}


def check_mirror(before: Mapping[str, str], after: Mapping[str, str], *, by_link: bool = False) -> None:
    """Check a change of a topic's mirror settings.

    Args:
        by_link: the controller's part of the link makes the change.

    Raises:
        KafkaError: INVALID_CONFIG for a change that only the link makes, or that leaves out a step of a promotion or of a failback.
    """
    changed = {name for name in MIRROR_KEYS if before.get(name) != after.get(name)}
    if not changed:
        return
    state = before.get(MIRROR_STATE, MIRRORING)
    if MIRROR_LINK not in before:
        _check_attached(after, changed)
    elif MIRROR_LINK not in after:
        is_promoted = state in {PROMOTING, PROMOTING_NOW} and MIRROR_PRODUCER_ID_END in after
        if not is_promoted and not (state == INSPECTING and changed <= OF_LINK):
            reason = "mirror.link is removed by the promotion of the topic: `barnabas mirror promote`"
            raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
        if left := OF_LINK & after.keys():
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{min(left)} must be removed together with mirror.link")
    else:
        allowed = {MIRROR_STATE, MIRROR_LOST_TOPIC} | (SET_BY_LINK if by_link else set())
        if changed - allowed:
            raise _only_link(min(changed - allowed))
        _check_state(state, after.get(MIRROR_STATE, MIRRORING), after)


def _check_attached(after: Mapping[str, str], changed: set[str]) -> None:
    """Check that an ordinary topic becomes a copy by the first step of a failback."""
    if changed - {MIRROR_LINK, MIRROR_STATE, MIRROR_LOST_TOPIC}:
        raise _only_link(min(changed - {MIRROR_LINK, MIRROR_STATE, MIRROR_LOST_TOPIC}))
    if MIRROR_LINK not in after or after.get(MIRROR_STATE) not in {INSPECTING, COMPARING}:
        raise _only_link(min(changed))
    _check_state(INSPECTING, after[MIRROR_STATE], after)


def _check_state(before: str, after: str, settings: Mapping[str, str]) -> None:
    if after == COMPARING and MIRROR_LOST_TOPIC not in settings:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"mirror.state={COMPARING} needs mirror.lost.topic")
    if after == before or after in _NEXT_STATES[before]:
        return
    if after == COMPARING and before in {MIRRORING, TRUNCATING}:
        return
    if after == MIRRORING and before in {PROMOTING, PROMOTING_NOW}:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "a topic that is being promoted cannot follow its source again")
    raise KafkaError(ErrorCode.INVALID_CONFIG, f"mirror.state cannot become {after} after {before}")


def _only_link(name: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, f"{name} is set by the mirror link that creates the topic")
