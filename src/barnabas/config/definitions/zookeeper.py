"""Broker keys of the connection to ZooKeeper, by the names that Kafka 3 had for them."""

from __future__ import annotations

from barnabas.config.checks import Digest, LoginContexts
from barnabas.config.config_key import ConfigKey, at_least, one_of
from barnabas.config.definitions.columns import (
    BOOLEAN,
    HIGH,
    HONOURED,
    INT,
    LIST,
    LOW,
    MEDIUM,
    NO_EFFECT,
    PASSWORD,
    READ_ONLY,
    STRING,
)

# fmt: off
KEYS = (
    ConfigKey("zookeeper.clientCnxnSocket", STRING, None, None, MEDIUM, READ_ONLY, NO_EFFECT,
              "Java class of the connection to ZooKeeper; zookeeper.ssl.client.enable alone says whether it is encrypted.", hidden=True),
    ConfigKey("zookeeper.connect", STRING, None, None, HIGH, READ_ONLY, HONOURED,
              "Where the cluster keeps its metadata: host:port,host:port/root. Without it the broker stands alone, "
              "with its metadata in its data folder.", hidden=True),
    ConfigKey("zookeeper.connection.timeout.ms", INT, None, at_least(1), HIGH, READ_ONLY, HONOURED,
              "Longest wait for a connection to ZooKeeper or for an answer of it; as long as the session's "
              "timeout where it is not set.", hidden=True),
    ConfigKey("zookeeper.digest", PASSWORD, None, Digest(), MEDIUM, READ_ONLY, HONOURED,
              "user:password, by which brokers are known to ZooKeeper; then what they keep there is for that user alone.", hidden=True),
    ConfigKey("zookeeper.sasl.jaas.config", PASSWORD, None, LoginContexts(), MEDIUM, READ_ONLY, HONOURED,
              "Login context with which brokers log in to ZooKeeper by SASL: a DigestLoginModule with username and password, or "
              "a Krb5LoginModule. Where Kafka had the section Client of a JAAS file.", hidden=True),
    ConfigKey("zookeeper.session.timeout.ms", INT, None, at_least(1), HIGH, READ_ONLY, HONOURED,
              "The timeout of the session with ZooKeeper that a broker asks for; two thirds of "
              "broker.session.timeout.ms where it is not set, since ZooKeeper lets it last for up to a tick longer.", hidden=True),
    ConfigKey("zookeeper.set.acl", BOOLEAN, None, None, HIGH, READ_ONLY, HONOURED,
              "Whether what brokers keep in ZooKeeper is for them alone. Not set: yes, where zookeeper.digest or "
              "zookeeper.sasl.jaas.config says who they are.", hidden=True),
    ConfigKey("zookeeper.ssl.cipher.suites", LIST, (), None, LOW, READ_ONLY, HONOURED,
              "Cipher suites that are allowed towards ZooKeeper; all when empty.", hidden=True),
    ConfigKey("zookeeper.ssl.client.enable", BOOLEAN, False, None, MEDIUM, READ_ONLY, HONOURED,
              "Connect to ZooKeeper by TLS.", hidden=True),
    ConfigKey("zookeeper.ssl.enabled.protocols", LIST, (), None, LOW, READ_ONLY, HONOURED,
              "TLS versions that are allowed towards ZooKeeper; when empty zookeeper.ssl.protocol, or TLSv1.2 and TLSv1.3.", hidden=True),
    ConfigKey("zookeeper.ssl.endpoint.identification.algorithm", STRING, "HTTPS", None, LOW, READ_ONLY, HONOURED,
              "How ZooKeeper's name is held against its certificate; empty for not at all.", hidden=True),
    ConfigKey("zookeeper.ssl.keystore.location", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "File with the key and the certificate that a broker shows ZooKeeper, PEM or PKCS12.", hidden=True),
    ConfigKey("zookeeper.ssl.keystore.password", PASSWORD, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Password of that file, or of its key.", hidden=True),
    ConfigKey("zookeeper.ssl.keystore.type", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Format of that file; found out where it is not set.", hidden=True),
    ConfigKey("zookeeper.ssl.protocol", STRING, None, one_of("TLSv1.2", "TLSv1.3"), LOW, READ_ONLY, HONOURED,
              "The one TLS version towards ZooKeeper. Kafka's default is TLSv1.2; not set, both are taken here.", hidden=True),
    ConfigKey("zookeeper.ssl.truststore.location", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "File with the authorities to believe ZooKeeper by, PEM or PKCS12; those of the system where it is not set.", hidden=True),
    ConfigKey("zookeeper.ssl.truststore.password", PASSWORD, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Password of that file.", hidden=True),
    ConfigKey("zookeeper.ssl.truststore.type", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Format of that file; found out where it is not set.", hidden=True),
)
# fmt: on
