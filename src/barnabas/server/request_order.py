"""The order in which the requests of one connection take effect, and which of them may overlap.

Rules
  1. A request begins when all earlier requests of its connection have ended. So it sees their changes, and they do not see its changes.
     Kafka does the same for every request: it reads the next request when it has answered the earlier one.
  2. Requests of the same kind may overlap if their effects have an order of their own. The next one begins while the earlier ones wait for
     replicas, the disk or the controller. These are Produce (a log appends in the order of arrival), OffsetCommit (a coordinator's log
     does the same), Fetch (rule 4), and requests that brokers pass on. Each of the last kind belongs to another client with its own
     answer.
  3. A request that only reads also waits for an earlier read. Otherwise its older answer would follow the newer one. Example: a consumer
     whose fetch brings record 0 would then learn from ListOffsets that the partition is empty.
  4. A Fetch may begin after a Fetch that reads the disk, and after one that waits in a fetch session: the later request of a session, or
     its end, answers the earlier one. No request begins after a Fetch that waits without a session.
  5. A request that may change something counts as a change: Metadata and FindCoordinator can create topics.

`connection.py` holds frames back by these rules. docs/internals/server.md tells their meaning for clients.
"""

from __future__ import annotations

from enum import Enum

from barnabas.protocol.messages.api_keys import ApiKey


class Effect(Enum):
    """The effect of a request on the state that other requests see."""

    READS = "reads"
    FETCHES = "fetches"  # reads records, in the order of the requests
    APPENDS = "appends"  # appends records to partitions, in the order of the requests
    COMMITS = "commits"  # commits offsets, in the order of the requests
    RELAYS = "relays"  # comes from another broker, for many of its clients
    CHANGES = "changes"  # changes anything else


EFFECTS: dict[int, Effect] = {
    ApiKey.PRODUCE: Effect.APPENDS,
    ApiKey.FETCH: Effect.FETCHES,
    ApiKey.LIST_OFFSETS: Effect.READS,
    ApiKey.METADATA: Effect.CHANGES,  # may create topics
    ApiKey.OFFSET_COMMIT: Effect.COMMITS,
    ApiKey.OFFSET_FETCH: Effect.READS,
    ApiKey.FIND_COORDINATOR: Effect.CHANGES,  # may create internal topics
    ApiKey.JOIN_GROUP: Effect.CHANGES,
    ApiKey.HEARTBEAT: Effect.CHANGES,  # extends the session of a member
    ApiKey.LEAVE_GROUP: Effect.CHANGES,
    ApiKey.SYNC_GROUP: Effect.CHANGES,
    ApiKey.DESCRIBE_GROUPS: Effect.READS,
    ApiKey.LIST_GROUPS: Effect.READS,
    ApiKey.SASL_HANDSHAKE: Effect.CHANGES,  # may change the principal
    ApiKey.API_VERSIONS: Effect.READS,
    ApiKey.CREATE_TOPICS: Effect.CHANGES,
    ApiKey.DELETE_TOPICS: Effect.CHANGES,
    ApiKey.DELETE_RECORDS: Effect.CHANGES,
    ApiKey.INIT_PRODUCER_ID: Effect.CHANGES,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Effect.READS,
    ApiKey.ADD_PARTITIONS_TO_TXN: Effect.CHANGES,
    ApiKey.ADD_OFFSETS_TO_TXN: Effect.CHANGES,
    ApiKey.END_TXN: Effect.CHANGES,
    ApiKey.WRITE_TXN_MARKERS: Effect.RELAYS,
    ApiKey.BROKER_HEARTBEAT: Effect.READS,
    ApiKey.TXN_OFFSET_COMMIT: Effect.CHANGES,
    ApiKey.DESCRIBE_ACLS: Effect.READS,
    ApiKey.CREATE_ACLS: Effect.CHANGES,
    ApiKey.DELETE_ACLS: Effect.CHANGES,
    ApiKey.DESCRIBE_CONFIGS: Effect.READS,
    ApiKey.ALTER_CONFIGS: Effect.CHANGES,
    ApiKey.ALTER_REPLICA_LOG_DIRS: Effect.CHANGES,
    ApiKey.DESCRIBE_LOG_DIRS: Effect.READS,
    ApiKey.SASL_AUTHENTICATE: Effect.CHANGES,  # may change the principal
    ApiKey.CREATE_PARTITIONS: Effect.CHANGES,
    ApiKey.CREATE_DELEGATION_TOKEN: Effect.CHANGES,
    ApiKey.RENEW_DELEGATION_TOKEN: Effect.CHANGES,
    ApiKey.EXPIRE_DELEGATION_TOKEN: Effect.CHANGES,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Effect.READS,
    ApiKey.DELETE_GROUPS: Effect.CHANGES,
    ApiKey.ELECT_LEADERS: Effect.CHANGES,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Effect.CHANGES,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Effect.CHANGES,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Effect.READS,
    ApiKey.OFFSET_DELETE: Effect.CHANGES,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Effect.READS,
    ApiKey.ALTER_CLIENT_QUOTAS: Effect.CHANGES,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Effect.READS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Effect.CHANGES,
    ApiKey.ALTER_PARTITION: Effect.RELAYS,
    ApiKey.UPDATE_FEATURES: Effect.CHANGES,
    ApiKey.ENVELOPE: Effect.RELAYS,
    ApiKey.DESCRIBE_CLUSTER: Effect.READS,
    ApiKey.DESCRIBE_QUORUM: Effect.READS,
    ApiKey.DESCRIBE_PRODUCERS: Effect.READS,
    ApiKey.UNREGISTER_BROKER: Effect.CHANGES,
    ApiKey.DESCRIBE_TRANSACTIONS: Effect.READS,
    ApiKey.LIST_TRANSACTIONS: Effect.READS,
    ApiKey.ALLOCATE_PRODUCER_IDS: Effect.RELAYS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Effect.CHANGES,
    ApiKey.CONSUMER_GROUP_DESCRIBE: Effect.READS,
    ApiKey.LIST_CONFIG_RESOURCES: Effect.READS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Effect.READS,
}
FIRST_BATCHED_ADDING_VERSION = 4  # of AddPartitionsToTxn; from it on, a broker asks for many transactions (KIP-890)
BESIDE_EACH_OTHER = frozenset((Effect.FETCHES, Effect.APPENDS, Effect.COMMITS, Effect.RELAYS))


def effect_of(api_key: int, version: int) -> Effect:
    """The effect of a request. An unknown request closes its connection when its turn comes."""
    if api_key == ApiKey.ADD_PARTITIONS_TO_TXN and version >= FIRST_BATCHED_ADDING_VERSION:
        return Effect.RELAYS
    return EFFECTS.get(api_key, Effect.CHANGES)


def may_begin(effect: Effect, behind: Effect) -> bool:
    """Whether a request may begin while earlier requests, all with the effect `behind`, have not ended."""
    return effect is behind and effect in BESIDE_EACH_OTHER
