"""Which scenarios are run in the versions that Kafka 4 dropped, and on which Kafka 3.9."""

from __future__ import annotations

from pathlib import Path

from tests.differential.dropped import script
from tests.differential.runner import CONFIG, Scenario, scenarios
from tests.retention import NO_RETENTION_CHECKS

GOLDEN = Path(__file__).parent / "golden"
ON_ZOOKEEPER = ("zookeeper", "commits")  # modules that need ZooKeeper: only there OffsetCommit 0 and OffsetFetch 0 work
SETTINGS = CONFIG | NO_RETENTION_CHECKS | {"delegation.token.secret.key": "geheim"}
# ACL bindings need an authorizer, delegation tokens a log-in
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=alice user_bob=bob;"
    ),
}
SHARED = {  # scenarios of the Kafka 4 script that also use dropped versions
    "commits": ("simple-commits", "fetched-offsets", "commits-of-members", "offset-delete"),
    "configs": ("describe-topic-configs", "describe-other-configs"),
    "groups": ("rebalance", "leader-leaves-before-it-gave-assignments", "protocol-selection"),
    "offsets": ("list-offsets", "offset-for-leader-epoch", "describe-log-dirs"),
    "topics": (
        "create-topics-versions", "create-topics-wrong", "create-topics-twice-in-one", "create-topics-with-every-config",
        "delete-topics-versions",
    ),
    "transactions": ("readers-of-committed-records", "markers-from-outside"),
}  # fmt: skip


def cases() -> dict[str, dict[str, Scenario]]:
    """Module -> scenario's name -> function."""
    known = scenarios()
    shared = {module: {name: known[module][name] for name in names} for module, names in SHARED.items()}
    return shared | scenarios(script)
