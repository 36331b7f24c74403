"""Validation of schema ids, with the names of Confluent Server."""

from __future__ import annotations

from barnabas.config.checks import RegistryUrls
from barnabas.config.config_key import ConfigKey, one_of
from barnabas.config.definitions.columns import (
    BOOLEAN,
    CLUSTER_WIDE,
    HONOURED,
    LIST,
    LOW,
    MEDIUM,
    PASSWORD,
    READ_ONLY,
    STRING,
)

STRATEGIES = "io.confluent.kafka.serializers.subject."
TOPIC_NAME, RECORD_NAME, TOPIC_RECORD_NAME = (
    f"{STRATEGIES}{name}Strategy" for name in ("TopicName", "RecordName", "TopicRecordName")
)
STRATEGY = one_of(TOPIC_NAME, RECORD_NAME, TOPIC_RECORD_NAME)

# Hidden: descriptions list these keys only if they are set, so that tools for Kafka see only Kafka's keys.
# fmt: off
KEYS = (
    ConfigKey("confluent.schema.registry.url", LIST, (), RegistryUrls(), MEDIUM, READ_ONLY, HONOURED,
              "URLs of the schema registry for topics with schema validation; the first that answers is asked.", hidden=True),
    ConfigKey("confluent.basic.auth.credentials.source", STRING, "URL", one_of("USER_INFO", "URL"), MEDIUM, READ_ONLY, HONOURED,
              "USER_INFO: log in to the registry with confluent.basic.auth.user.info. URL: do not log in.", hidden=True),
    ConfigKey("confluent.basic.auth.user.info", PASSWORD, None, None, MEDIUM, READ_ONLY, HONOURED,
              "user:password for the registry.", hidden=True),
    ConfigKey("confluent.ssl.key.password", PASSWORD, None, None, LOW, READ_ONLY, HONOURED,
              "Password of the private key for the registry.", hidden=True),
    ConfigKey("confluent.ssl.keystore.location", STRING, None, None, LOW, READ_ONLY, HONOURED,
              "File of the certificate that this broker shows to the registry.", hidden=True),
    ConfigKey("confluent.ssl.keystore.password", PASSWORD, None, None, LOW, READ_ONLY, HONOURED,
              "Password of this file.", hidden=True),
    ConfigKey("confluent.ssl.keystore.type", STRING, None, None, LOW, READ_ONLY, HONOURED,
              "Format of this file.", hidden=True),
    ConfigKey("confluent.ssl.truststore.location", STRING, None, None, LOW, READ_ONLY, HONOURED,
              "File of the certificates that the registry's certificate is checked with; unset, those of the system.", hidden=True),
    ConfigKey("confluent.ssl.truststore.password", PASSWORD, None, None, LOW, READ_ONLY, HONOURED,
              "Password of this file.", hidden=True),
    ConfigKey("confluent.ssl.truststore.type", STRING, None, None, LOW, READ_ONLY, HONOURED,
              "Format of this file.", hidden=True),
)
TOPIC_KEYS = (
    ConfigKey("confluent.key.schema.validation", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, HONOURED,
              "Refuse records whose key has no schema id that is registered under the topic's subject for keys.", hidden=True),
    ConfigKey("confluent.key.subject.name.strategy", STRING, TOPIC_NAME, STRATEGY, MEDIUM, CLUSTER_WIDE, HONOURED,
              "How the subject for keys is named.", hidden=True),
    ConfigKey("confluent.value.schema.validation", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, HONOURED,
              "Refuse records whose value has no schema id that is registered under the topic's subject for values.", hidden=True),
    ConfigKey("confluent.value.subject.name.strategy", STRING, TOPIC_NAME, STRATEGY, MEDIUM, CLUSTER_WIDE, HONOURED,
              "How the subject for values is named.", hidden=True),
)
# fmt: on
