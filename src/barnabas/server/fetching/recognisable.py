"""Which Fetch requests the fast paths may learn, and how they treat each field of the request.

`Fetch` is the general way and decides the answer. If you add a field or a condition there, decide here whether a fast path may still
handle such requests. `tests/server/test_recognisable.py` fails if a field of the request is in neither table.

The state of the broker counts too. Both fast paths decline while there are quotas or rights that `Fetch` must check. They also decline if
a partition is not led here or has another leader epoch, or if a `read_committed` consumer would get aborted transactions.
"""

from __future__ import annotations

from barnabas.protocol.fetch import FIRST_SHAPED_VERSION
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from barnabas.replication.partition import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.server.fastpath.fields import Treatment, Treatments
from barnabas.server.fetching.session_cache import FINAL_EPOCH, replica_id_of

_SAME, _READ, _CHECKED = Treatment.SAME, Treatment.READ, Treatment.CHECKED

WITHOUT_SESSION: Treatments = {  # used by `request_template.py`
    FetchRequest: {
        "cluster_id": _SAME,
        "replica_id": _CHECKED,
        "replica_state": _CHECKED,
        "max_wait_ms": _SAME,
        "min_bytes": _SAME,
        "max_bytes": _CHECKED,
        "isolation_level": _CHECKED,
        "session_id": _CHECKED,
        "session_epoch": _CHECKED,
        "topics": _SAME,
        "forgotten_topics_data": _SAME,
        "rack_id": _CHECKED,
    },
    ReplicaState: {"replica_id": _CHECKED, "replica_epoch": _SAME},
    FetchTopic: {"topic": _SAME, "topic_id": _SAME, "partitions": _SAME},
    FetchPartition: {
        "partition": _SAME,
        "current_leader_epoch": _SAME,
        "fetch_offset": _READ,
        "last_fetched_epoch": _CHECKED,
        "log_start_offset": _SAME,
        "partition_max_bytes": _CHECKED,
        "replica_directory_id": _SAME,
        "high_watermark": _SAME,
    },
    ForgottenTopic: {"topic": _SAME, "topic_id": _SAME, "partitions": _SAME},
}

IN_SESSION: Treatments = {  # used by `session_template.py`
    FetchRequest: {
        "cluster_id": _SAME,
        "replica_id": _SAME,
        "replica_state": _SAME,
        "max_wait_ms": _SAME,
        "min_bytes": _SAME,
        "max_bytes": _CHECKED,
        "isolation_level": _SAME,
        "session_id": _SAME,
        "session_epoch": _READ,
        "topics": _READ,
        "forgotten_topics_data": _CHECKED,
        "rack_id": _CHECKED,
    },
    ReplicaState: {"replica_id": _SAME, "replica_epoch": _SAME},
    FetchTopic: {"topic": _READ, "topic_id": _READ, "partitions": _READ},
    FetchPartition: {
        "partition": _READ,
        "current_leader_epoch": _READ,
        "fetch_offset": _READ,
        "last_fetched_epoch": _READ,
        "log_start_offset": _READ,
        "partition_max_bytes": _READ,
        "replica_directory_id": _CHECKED,
        "high_watermark": _CHECKED,
    },
    ForgottenTopic: {"topic": _SAME, "topic_id": _SAME, "partitions": _SAME},
}


def may_repeat(request: FetchRequest, version: int) -> bool:
    """Whether the fast path for consumers without a session may learn a request, as far as the fields for the whole request decide."""
    return (
        version >= FIRST_SHAPED_VERSION
        and (request.session_id, request.session_epoch) == (0, FINAL_EPOCH)
        and request.isolation_level in (READ_UNCOMMITTED, READ_COMMITTED)
        and replica_id_of(request) < 0
        and is_simple(request)
    )


def may_repeat_partition(asked: FetchPartition) -> bool:
    """Whether the same fast path may learn a partition of the request."""
    return asked.partition_max_bytes >= 0 and asked.last_fetched_epoch < 0


def may_continue(request: FetchRequest) -> bool:
    """Whether the fast path for sessions may learn an incremental request."""
    return not request.forgotten_topics_data


def is_simple(request: FetchRequest) -> bool:
    """Whether a fast path may answer a request without a `Fetch`."""
    return request.max_bytes > 0 and not request.rack_id
