"""The types of a partition on this broker; attributes that tell the roles apart are literals, so that mypy narrows by them.

After `if partition.is_leader`, mypy knows that a `Partition` is a `LeaderPartition`.
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
