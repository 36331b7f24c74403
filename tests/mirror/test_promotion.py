"""A promotion sets values above all that the leaders of the copies tell."""

from __future__ import annotations

import pytest

from barnabas.mirror.promotion import MOST_LEADER_EPOCH, promoted_settings
from barnabas.mirror.status import PartitionStatus


def copy(partition: int, *, end: int = 0, ids: int = 0, epoch: int = -1) -> PartitionStatus:
    return PartitionStatus("t", partition, "ready", 0, end, end, 0, 0, "", ids, source_leader_epoch=epoch)


def test_ids_and_epochs_are_above_those_of_all_partitions() -> None:
    copies = [copy(0, end=5, ids=7, epoch=3), copy(1, ids=9, epoch=2), copy(2, end=8)]
    assert promoted_settings(copies, spare_ids=10, spare_epochs=100) == {
        "mirror.producer.id.end": "19",
        "mirror.leader.epoch.start": "103",
        "mirror.promoted.ends": "0:5,1:0,2:8",
    }


@pytest.mark.parametrize(("told", "start"), [(2**31 - 1, MOST_LEADER_EPOCH), (-1, 0)])
def test_a_source_may_tell_any_epoch_or_none(told: int, start: int) -> None:
    settings = promoted_settings([copy(0, epoch=told)], spare_ids=0, spare_epochs=0)
    assert settings["mirror.leader.epoch.start"] == str(start)
