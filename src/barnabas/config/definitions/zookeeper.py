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
              "Java class of the connection to ZooKeeper; only zookeeper.ssl.client.enable decides whether it is encrypted.", hidden=True),
    ConfigKey("zookeeper.connect", STRING, None, None, HIGH, READ_ONLY, HONOURED,
              "Address of the cluster's metadata: host:port,host:port/root. Without it the broker stands alone and keeps its metadata in "
              "its data folder.", hidden=True),
    ConfigKey("zookeeper.connection.timeout.ms", INT, None, at_least(1), HIGH, READ_ONLY, HONOURED,
              "Longest wait for a connection to ZooKeeper or for its answer; unset, as long as the session timeout.", hidden=True),
    ConfigKey("zookeeper.digest", PASSWORD, None, Digest(), MEDIUM, READ_ONLY, HONOURED,
              "user:password with which brokers log in to ZooKeeper; then only that user can "
                  "read and change what brokers keep there.", hidden=True),
    ConfigKey("zookeeper.sasl.jaas.config", PASSWORD, None, LoginContexts(), MEDIUM, READ_ONLY, HONOURED,
              "Login context with which brokers log in to ZooKeeper by SASL: a DigestLoginModule with username and password, or "
              "a Krb5LoginModule. Where Kafka had the section Client of a JAAS file.", hidden=True),
    ConfigKey("zookeeper.session.timeout.ms", INT, None, at_least(1), HIGH, READ_ONLY, HONOURED,
              "The session timeout that a broker requests from ZooKeeper; unset, two thirds of broker.session.timeout.ms, since "
              "ZooKeeper may end a session up to a tick later.", hidden=True),
    ConfigKey("zookeeper.set.acl", BOOLEAN, None, None, HIGH, READ_ONLY, HONOURED,
              "Whether only brokers can read and change what they keep in ZooKeeper. Unset: yes, if zookeeper.digest or "
              "zookeeper.sasl.jaas.config names their user.", hidden=True),
    ConfigKey("zookeeper.ssl.cipher.suites", LIST, (), None, LOW, READ_ONLY, HONOURED,
              "Cipher suites allowed for connections to ZooKeeper; all when empty.", hidden=True),
    ConfigKey("zookeeper.ssl.client.enable", BOOLEAN, False, None, MEDIUM, READ_ONLY, HONOURED,
              "Use TLS for connections to ZooKeeper.", hidden=True),
    ConfigKey("zookeeper.ssl.enabled.protocols", LIST, (), None, LOW, READ_ONLY, HONOURED,
              "TLS versions allowed for connections to ZooKeeper; when empty zookeeper.ssl.protocol, or TLSv1.2 and TLSv1.3.", hidden=True),
    ConfigKey("zookeeper.ssl.endpoint.identification.algorithm", STRING, "HTTPS", None, LOW, READ_ONLY, HONOURED,
              "How ZooKeeper's name is checked against its certificate; empty turns the check off.", hidden=True),
    ConfigKey("zookeeper.ssl.keystore.location", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "File with the key and the certificate that a broker presents to ZooKeeper, PEM or PKCS12.", hidden=True),
    ConfigKey("zookeeper.ssl.keystore.password", PASSWORD, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Password of the key store, or of its key.", hidden=True),
    ConfigKey("zookeeper.ssl.keystore.type", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Format of the key store; unset, found out from the file.", hidden=True),
    ConfigKey("zookeeper.ssl.protocol", STRING, None, one_of("TLSv1.2", "TLSv1.3"), LOW, READ_ONLY, HONOURED,
              "The only TLS version for connections to ZooKeeper. Kafka's default is TLSv1.2; unset, TLSv1.2 and TLSv1.3 are allowed "
              "here.", hidden=True),
    ConfigKey("zookeeper.ssl.truststore.location", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "File with the authorities trusted for ZooKeeper's certificate, PEM or PKCS12; unset, those of the system.", hidden=True),
    ConfigKey("zookeeper.ssl.truststore.password", PASSWORD, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Password of the trust store.", hidden=True),
    ConfigKey("zookeeper.ssl.truststore.type", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Format of the trust store; unset, found out from the file.", hidden=True),
)
# fmt: on
