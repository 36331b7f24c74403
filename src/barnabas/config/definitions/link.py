"""Settings of a mirror link, which copies topics of another cluster."""

from __future__ import annotations

from barnabas.config.checks import Patterns, Servers
from barnabas.config.config_key import ConfigKey, OneOf, at_least, one_of
from barnabas.config.definitions.columns import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    HONOURED,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    STRING,
)

# fmt: off
KEYS = (
    ConfigKey("bootstrap.servers", LIST, (), Servers(), HIGH, CLUSTER_WIDE, HONOURED,
              "Brokers of the source cluster, as host:port."),
    ConfigKey("paused", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, HONOURED,
              "Whether the link fetches nothing for now."),
    ConfigKey("refresh.topics.interval.seconds", LONG, 5, at_least(1), LOW, CLUSTER_WIDE, HONOURED,
              "How often the topics of the source, their partitions and settings are looked up."),
    ConfigKey("replication.factor", INT, -1, at_least(-1), LOW, CLUSTER_WIDE, HONOURED,
              "Replicas of the copies; -1 for default.replication.factor of the brokers here."),
    ConfigKey("sasl.mechanism", STRING, "", one_of("", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), MEDIUM, CLUSTER_WIDE, HONOURED,
              "The SASL mechanism of the source."),
    ConfigKey("sasl.password", PASSWORD, None, None, MEDIUM, CLUSTER_WIDE, HONOURED,
              "The password at the source."),
    ConfigKey("sasl.username", STRING, "", None, MEDIUM, CLUSTER_WIDE, HONOURED,
              "The user at the source."),
    ConfigKey("security.protocol", STRING, "PLAINTEXT", OneOf(("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL"), any_case=True),
              MEDIUM, CLUSTER_WIDE, HONOURED, "The protocol of the source."),
    ConfigKey("ssl.endpoint.identification.algorithm", STRING, "https", one_of("https", ""), LOW, CLUSTER_WIDE, HONOURED,
              "Whether the names in the certificates of the source are checked; empty for no check."),
    ConfigKey("ssl.key.password", PASSWORD, None, None, LOW, CLUSTER_WIDE, HONOURED,
              "The password of the private key."),
    ConfigKey("ssl.keystore.certificate.chain", PASSWORD, None, None, LOW, CLUSTER_WIDE, HONOURED,
              "The certificate of the link, as PEM."),
    ConfigKey("ssl.keystore.key", PASSWORD, None, None, LOW, CLUSTER_WIDE, HONOURED,
              "The private key of the link, as PEM."),
    ConfigKey("ssl.truststore.certificates", PASSWORD, None, None, MEDIUM, CLUSTER_WIDE, HONOURED,
              "The authorities of the source's certificates, as PEM."),
    ConfigKey("sync.topic.configs.enabled", BOOLEAN, True, None, MEDIUM, CLUSTER_WIDE, HONOURED,
              "Whether the settings of the copies follow those of the source."),
    ConfigKey("topics", LIST, (".*",), Patterns(), HIGH, CLUSTER_WIDE, HONOURED,
              "Regular expressions for the topics to copy; a name must match as a whole."),
    ConfigKey("topics.exclude", LIST, ("__.*", "_barnabas.*"), Patterns(), MEDIUM, CLUSTER_WIDE, HONOURED,
              "Regular expressions for topics that are not copied."),
)
# fmt: on
