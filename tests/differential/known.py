"""The differences that stand, each with its reason; `docs/compatibility.md` shows this table (a test compares them).

An entry that covers no difference any more fails the test of its scenario: delete it then. After a change here write the page
anew: `python -m tests.differential.record --page`.
"""

from __future__ import annotations

from pathlib import Path

from tests.differential.compare import Known

NO_SUCH_API = (
    "ApiVersions announces only what works here. Share and streams groups, telemetry of clients and requests that only KRaft "
    "uses are not served."
)
FINALIZED_BY_KAFKA = ("eligible.leader.replicas.version", "metadata.version", "share.version", "streams.version")
SUPPORTED_BY_KAFKA = (*FINALIZED_BY_KAFKA, "kraft.version")
NO_FEATURES = (
    "Finalized features tell clients which group protocols to use, and a KRaft cluster its metadata format. barnabas has "
    "`group.version` and `transaction.version`. The others belong to KRaft and to groups that are not served."
)
TOPIC_AT_ONCE = (
    "A topic that Metadata creates is in the answer to the same request. Kafka answers that it is unknown, creates it on the "
    "controller meanwhile, and the client asks again."
)
INCREASING = (
    "The offset deltas of records must count up from 0. Kafka checks this for compressed batches only. It stores others as they "
    "are, and consumers see offsets with gaps or twice."
)
EXACT_ERROR = (
    "A batch that cannot be decompressed is INVALID_RECORD, an unknown codec UNSUPPORTED_COMPRESSION_TYPE. Kafka fails with "
    "UNKNOWN_SERVER_ERROR."
)
NO_APPEND_TIME = (
    "In a topic with CreateTime, the append time of a repeated batch is -1, as for the first one and as the protocol describes "
    "it. Kafka answers the batch's largest timestamp."
)

LEVELS_STAY = (
    "The level of `transaction.version` is fixed, as every broker has the same. Lowering it is INVALID_UPDATE_VERSION. Kafka "
    "allows it, even to 0."
)

KNOWN: list[Known] = [
    Known(
        "alter-client-quotas",
        "AlterClientQuotas * not a number",
        "entries[*",
        "A quota that is not a number is refused, as it cannot be applied. Kafka accepts it.",
    ),
    *(Known(name, "ApiVersions *", "api_keys[??]", NO_SUCH_API) for name in ("api-versions-valid", "api-versions-names")),
    *(
        Known(name, "ApiVersions *", f"*_features[{feature}]", NO_FEATURES)
        for name, features in (("api-versions-valid", SUPPORTED_BY_KAFKA), ("api-versions-names", FINALIZED_BY_KAFKA))
        for feature in features
    ),
    *(
        Known(
            name,
            "ApiVersions *",
            "api_keys[22].max_version",
            "InitProducerId 6 belongs to two-phase commit (KIP-939), which works here. Kafka 4.3 does not announce it.",
        )
        for name in ("api-versions-valid", "api-versions-names")
    ),
    *(
        Known("update-features-checked", f"UpdateFeatures * {kind}: {level}", "*", LEVELS_STAY)
        for kind in ("safe", "unsafe")
        for level in ("lower", "none")
    ),
    Known(
        "frames",
        "not UTF-8",
        "",
        "A string that is not UTF-8 is a malformed request and ends the connection. Kafka inserts replacement characters, so two "
        "different names can become one.",
    ),
    Known("metadata-auto-creation", "Metadata * first", "topics[*", TOPIC_AT_ONCE),
    Known(
        "metadata-collision",
        "Metadata *",
        "topics[*].error_code",
        "If a topic cannot be created because its name differs from another one only in dots and underscores, the answer is "
        "INVALID_TOPIC_EXCEPTION. Kafka always answers UNKNOWN_TOPIC_OR_PARTITION, and clients ask for ever.",
    ),
    Known(
        "change-topic-configs",
        "IncrementalAlterConfigs * unknown operation",
        "responses[*].error_code",
        "An unknown operation is INVALID_REQUEST with an explanation. Kafka fails with UNKNOWN_SERVER_ERROR.",
    ),
    Known(
        "fetch-session-of-a-topic-that-goes-and-comes",
        "Fetch *",
        "responses[*].partitions[*]*",
        "A fetch session knows topics by id. So a deleted topic is UNKNOWN_TOPIC_ID, even if another topic has its name. Kafka "
        "knows name and id, and answers UNKNOWN_TOPIC_OR_PARTITION or INCONSISTENT_TOPIC_ID. Clients renew their metadata in all "
        "three cases.",
    ),
    Known("produce-wrong-batches", "Produce * offset deltas *", "responses[*", INCREASING),
    Known("produce-wrong-batches", "Fetch * offset deltas *", "", INCREASING),
    *(Known("produce-wrong-batches", f"Produce * {what} *", "responses[*", EXACT_ERROR) for what in ("codec", "broken")),
    *(
        Known(name, "Produce *", "responses[*].log_append_time_ms", NO_APPEND_TIME)
        for name in ("idempotence", "idempotence-wraps-around", "writes-of-older-clients")
    ),
    Known(
        "markers-from-outside",
        "WriteTxnMarkers * an epoch before",
        "markers[*].error_code",
        "A marker with an older epoch than its producer is INVALID_PRODUCER_EPOCH. Kafka fails with UNKNOWN_SERVER_ERROR.",
    ),
]

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN, END = "<!-- {} begins -->\n", "<!-- {} ends -->\n"


def table(known: list[Known]) -> str:
    """The differences as a Markdown table, one row for each reason."""
    rows: dict[str, list[Known]] = {}
    for entry in known:
        rows.setdefault(entry.reason, []).append(entry)
    lines = ["| where | which field | why |", "|---|---|---|"]
    for reason, entries in rows.items():
        places = dict.fromkeys(f"{entry.scenario}: `{entry.steps}`" for entry in entries)
        paths = dict.fromkeys(f"`{entry.path}`" if entry.path else "the whole answer" for entry in entries)
        lines.append(f"| {'<br>'.join(places)} | {', '.join(paths)} | {reason} |")
    return "\n".join(lines) + "\n"


def page_with(text: str, known: list[Known] = KNOWN, name: str = "the table") -> str:
    """`text`, a page, with the table as it is now."""
    begin, end = BEGIN.format(name), END.format(name)
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return before + begin + table(known) + end + after
