"""The types of a partition on this broker; each attribute that tells a role apart is a literal, so that mypy narrows by it.

A caller that has a `Partition` and asks `if partition.is_leader` has a `LeaderPartition` behind it.
"""

from __future__ import annotations

from barnabas.replication.follower_partition import FollowerPartition
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.replication.offline_partition import OfflinePartition
from barnabas.replication.online_replica import READ_COMMITTED, READ_UNCOMMITTED

__all__ = ["READ_COMMITTED", "READ_UNCOMMITTED", "NotLeading", "OnlinePartition", "Partition"]

OnlinePartition = LeaderPartition | FollowerPartition
NotLeading = FollowerPartition | OfflinePartition
Partition = LeaderPartition | FollowerPartition | OfflinePartition
