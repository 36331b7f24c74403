"""The settings of a topic from its promotion on."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.config.mirror_settings import MIRROR_LEADER_EPOCH_START, MIRROR_PRODUCER_ID_END, MIRROR_PROMOTED_ENDS
from barnabas.mirror.status import PartitionStatus

MOST_LEADER_EPOCH = 2**30  # leaves room for elections, whatever a source tells


def promoted_settings(copies: Sequence[PartitionStatus], *, spare_ids: int, spare_epochs: int) -> dict[str, str]:
    """The settings that a promotion sets.

    Args:
        copies: all partitions of the topic.
        spare_ids: how many producer ids above those of the copies no producer gets.
        spare_epochs: how many leader epochs above those that the source has told are left out.
    """
    producer_id = max(each.producer_id_end for each in copies) + spare_ids
    leader_epoch = max(each.source_leader_epoch for each in copies) + spare_epochs
    return {
        MIRROR_PRODUCER_ID_END: str(producer_id),
        MIRROR_LEADER_EPOCH_START: str(max(min(leader_epoch, MOST_LEADER_EPOCH), 0)),
        MIRROR_PROMOTED_ENDS: ",".join(f"{each.partition}:{each.end_offset}" for each in copies),
    }
