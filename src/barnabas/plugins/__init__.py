"""Your own classes in a broker: they decide about creating and changing resources, the principal of a connection, and the quota
of a client.

These are the interfaces of Kafka's Java plug-ins in Python. A configuration key names the class:

    create.topic.policy.class.name=python:company.kafka:NamesOfTeams

| key | base class |
|---|---|
| `create.topic.policy.class.name` | `CreateTopicPolicy` |
| `alter.config.policy.class.name` | `AlterConfigPolicy` |
| `principal.builder.class` | `PrincipalBuilder` |
| `client.quota.callback.class` | `ClientQuotaCallback` |

The class must derive from the base class and take no arguments. When it starts, the broker creates one object of it (for a
principal builder: one for each listener). It calls `configure` once before any other method, and `close` when it stops.
"""

from barnabas.plugins.base import Plugin
from barnabas.plugins.policies import (
    AlterConfigMetadata,
    AlterConfigPolicy,
    CreateTopicMetadata,
    CreateTopicPolicy,
    PolicyViolation,
)
from barnabas.plugins.principals import (
    AuthenticationContext,
    PlaintextContext,
    Principal,
    PrincipalBuilder,
    SaslContext,
    TlsContext,
)
from barnabas.plugins.quotas import ClientQuotaCallback, Cluster, PartitionInfo, QuotaEntity, QuotaType

__all__ = [
    "Plugin",
    "CreateTopicPolicy",
    "CreateTopicMetadata",
    "AlterConfigPolicy",
    "AlterConfigMetadata",
    "PolicyViolation",
    "PrincipalBuilder",
    "Principal",
    "AuthenticationContext",
    "PlaintextContext",
    "TlsContext",
    "SaslContext",
    "ClientQuotaCallback",
    "QuotaType",
    "QuotaEntity",
    "Cluster",
    "PartitionInfo",
]
