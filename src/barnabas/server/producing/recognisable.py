"""Which Produce requests the fast paths may learn, and how they treat each field of the request.

`apis/produce.py: handle_produce` is the general way and decides what happens to a request. If you add a field or a check there, decide
here whether a fast path may still handle such requests. `tests/server/test_recognisable.py` fails if a field is in neither table.

The state of the broker counts too. A fast path declines if the partition is closed. It forgets everything when rights or quotas change, or
when its connection must log in again. A learnt request of a producer with a quota has the producer's budget.
"""

from __future__ import annotations

from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.produce import ProduceHead
from barnabas.server.fastpath.fields import Treatment, Treatments

_SAME, _READ, _CHECKED = Treatment.SAME, Treatment.READ, Treatment.CHECKED

ONE_PARTITION: Treatments = {  # used by `request_template.py`
    ProduceRequest: {"transactional_id": _SAME, "acks": _SAME, "timeout_ms": _SAME, "topic_data": _CHECKED},
    TopicProduceData: {"name": _SAME, "topic_id": _SAME, "partition_data": _CHECKED},
    PartitionProduceData: {"index": _SAME, "records": _READ},
}

SEVERAL_PARTITIONS: Treatments = {  # used by `multi_partition.py`
    ProduceRequest: {"transactional_id": _CHECKED, "acks": _SAME, "timeout_ms": _SAME, "topic_data": _READ},
    TopicProduceData: {"name": _READ, "topic_id": _READ, "partition_data": _READ},
    PartitionProduceData: {"index": _READ, "records": _READ},
}


def may_repeat(head: ProduceHead) -> bool:
    """Whether the fast path for one partition may learn a request whose batches were all appended."""
    return len(head.topics) == 1 and len(head.topics[0][1]) == 1


def may_spread(head: ProduceHead) -> bool:
    """Whether the fast path for several partitions may learn a request whose batches were all appended."""
    return head.transactional_id is None
