"""The differences from Kafka 3.9 in the versions that Kafka 4 dropped, each with its reason; `docs/compatibility.md` shows this
table.

After a change here write the page anew: `python -m tests.differential.dropped.record --page`.
"""

from __future__ import annotations

from tests.differential.compare import Known
from tests.differential.known import page_with

TABLE = "the table of dropped versions"
ONE_STORE = (
    "OffsetCommit and OffsetFetch 0 use the offsets of the group, as later versions do. A commit is checked against the group's "
    "members, its metadata is kept, and every version reads it. Kafka 3.9 keeps offsets of version 0 in ZooKeeper, separately and "
    "without metadata. Without ZooKeeper it answers UNSUPPORTED_VERSION."
)
IS_DEFAULT = (
    "In DescribeConfigs 0, `is_default` says whether a key has its default, as the protocol describes it. Kafka 3.9 answers false "
    "for all keys."
)
KEYS_OF_KAFKA_4 = (
    "Keys and defaults are those of Kafka 4.3 for every version of the request. `message.format.version`, "
    "`message.downconversion.enable` and `message.timestamp.difference.max.ms` do not exist. The default of "
    "`message.timestamp.after.max.ms` is an hour."
)
KNOWN: list[Known] = [
    *(
        Known(scenario, f"{api} *", "topics[*", ONE_STORE)
        for scenario, apis in {
            "simple-commits": ("OffsetCommit v0", "OffsetFetch v0"),
            "commits-of-members": ("OffsetCommit v0", "OffsetFetch v0"),
            "fetched-offsets": ("OffsetFetch v0",),
            "offset-delete": ("OffsetFetch v0",),
            "offsets-of-old": ("OffsetFetch v0", "OffsetFetch v1"),
        }.items()
        for api in apis
    ),
    *(
        Known(scenario, "DescribeConfigs v0 *", "results[*].configs[*].is_default", IS_DEFAULT)
        for scenario in ("describe-topic-configs", "describe-other-configs")
    ),
    Known("describe-topic-configs", "DescribeConfigs v0 *", "results[*].configs[message.*]", KEYS_OF_KAFKA_4),
    Known(
        "describe-topic-configs",
        "DescribeConfigs v0 *",
        "results[*].configs[message.timestamp.after.max.ms].value",
        KEYS_OF_KAFKA_4,
    ),
    Known(
        "describe-other-configs",
        "DescribeConfigs v0 of all brokers",
        "results[*].configs[min.insync.replicas]",
        "min.insync.replicas is a setting of all brokers from the first start on, as with Kafka 4.1 and later.",
    ),
    Known(
        "bindings",
        "CreateAcls v0 any operation",
        "results[*].error_code",
        "A binding with ANY in it is INVALID_REQUEST. Kafka fails with UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "markers-from-outside",
        "WriteTxnMarkers * an epoch before",
        "markers[*].error_code",
        "A marker with an older epoch than its producer is INVALID_PRODUCER_EPOCH. Kafka fails with UNKNOWN_SERVER_ERROR.",
    ),
]


def page_with_table(text: str) -> str:
    """`text`, a page, with the table as it is now."""
    return page_with(text, KNOWN, TABLE)
