"""Confluent's sinks to object stores, by their class names and keys. The sink of files has most of their keys under the same names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from barnabas.connect.api import Config
from barnabas.connect.config_def import NO_DEFAULT, ConfigDef
from barnabas.connect.config_types import Importance, Type
from barnabas.connect.plugins.dialects.translation import Row, Texts, TranslatedSink, defined, idle, refusing
from barnabas.connect.plugins.files import sink_config
from barnabas.connect.plugins.files.sink import FileSink
from barnabas.connect.validators import one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
REFUSED = {
    "store.kafka.keys": "files have the values of records",
    "store.kafka.headers": "files have the values of records",
    "directory.delim": "folders have a slash between them",
}
DEFAULTS = {"store.kafka.keys": "false", "store.kafka.headers": "false", "directory.delim": "/"}
OWN = {sink_config.URL, sink_config.BUCKET, *sink_config.OF_S3.values(), "compression.type"}


IDLE = {  # reasons, with the keys that do nothing; PREFIX. begins names that each of the sinks has with its own prefix
    "the class says it": ("storage.class", "schema.generator.class"),
    "a file is written at once, in parts that the library chooses": ("PREFIX.part.size", "PREFIX.block.size"),
    "path.format has numbers alone": ("locale",),
    "writes are tried again": ("PREFIX.part.retries", "PREFIX.retry.backoff.ms", "retry.backoff.ms", "PREFIX.retries"),
    "Avro has Kafka Connect's types without their names": ("enhanced.avro.schema.support", "connect.meta.data"),
    "the compression has the library's level": ("PREFIX.compression.level",),
    "shutting down does not wait for uploads": ("shutdown.timeout.ms",),
    "no license is needed": ("confluent.license", "confluent.topic.bootstrap.servers", "confluent.topic.replication.factor"),
}  # fmt: skip
OF_LIBRARY = "store.OPTION has the options of the library obstore"
LEVELS = ("NONE", "BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE")


def _config(prefix: str, *rows: Row, of_library: Sequence[str]) -> ConfigDef:
    """The keys of a sink: its own ones, and those that these sinks have in common with the sink of files and with each other.

    Args:
        prefix: of names.
        of_library: keys that do nothing, because the store has options for them.
    """
    made = defined(ConfigDef(), *rows)
    for key in sink_config.CONFIG:
        if key.name not in OWN:
            made.add(key)
    defined(
        made,
        Row(
            f"{prefix}.compression.type", Type.STRING, "none", LOW, "The compression of JSON, CSV and lines.", one_of("none", "gzip"),
        ),
        Row(
            "schema.compatibility", Type.STRING, "NONE", HIGH,
            "Without effect: a file has the fields of all of its records, and another file begins where their types do not fit.",
            one_of(*LEVELS),
        ),
    )  # fmt: skip
    for reason, names in IDLE.items():
        idle(made, reason, *(name.replace("PREFIX", prefix) for name in names))
    return idle(refusing(made, REFUSED, DEFAULTS), OF_LIBRARY, *of_library)


class StoreSink(TranslatedSink, FileSink):
    """What these sinks have in common.

    Attributes:
        prefix: of names of keys.
        bucket: the scheme of the store's URL, and the key of the bucket. None: the sink of files knows that key.
        options: those of the store by keys of the config.
    """

    behind = FileSink.config
    families = ("store.", "confluent.topic.")
    refused: ClassVar[Mapping[str, str]] = REFUSED
    prefix: ClassVar[str]
    bucket: ClassVar[tuple[str, str] | None] = None
    options: ClassVar[Mapping[str, str]]

    def open(self, config: Config) -> None:  # both classes behind have one, with different types
        super().open(config)

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        found = super().translated(given)
        found["compression.type"] = given[f"{cls.prefix}.compression.type"]
        if cls.bucket is not None:
            scheme, key = cls.bucket
            found[sink_config.URL] = f"{scheme}://{given[key]}"
        return found | {option: given[key] for key, option in cls.options.items() if given.get(key)}


class S3Sink(StoreSink):
    """io.confluent.connect.s3.S3SinkConnector."""

    prefix = "s3"
    config = _config(
        prefix,
        Row(sink_config.BUCKET, Type.STRING, NO_DEFAULT, HIGH, "The bucket."),
        Row("s3.region", Type.STRING, "us-west-2", MEDIUM, "Its region."),
        Row("aws.access.key.id", Type.STRING, "", HIGH, "Who logs in. Empty: the environment says it."),
        Row("aws.secret.access.key", Type.PASSWORD, None, HIGH, "The secret of aws.access.key.id."),
        Row(sink_config.URL, Type.STRING, None, LOW, "The server, if it is not that of AWS."),
        Row("s3.ssea.name", Type.STRING, "", LOW, "How the server encrypts objects.", one_of("", "AES256", "aws:kms")),
        Row("s3.sse.kms.key.id", Type.STRING, "", LOW, "The key of aws:kms."),
        of_library=(
            "s3.acl.canned", "s3.object.tagging", "s3.proxy.url", "s3.credentials.provider.class", "s3.path.style.access.enabled",
            "s3.http.send.expect.continue", "s3.wan.mode", "s3.elastic.buffer.enable",
        ),
    )  # fmt: skip
    options: ClassVar[Mapping[str, str]] = {
        "s3.ssea.name": "store.aws_server_side_encryption", "s3.sse.kms.key.id": "store.aws_sse_kms_key_id",
    }  # fmt: skip


class GcsSink(StoreSink):
    """io.confluent.connect.gcs.GcsSinkConnector."""

    prefix = "gcs"
    config = _config(
        prefix,
        Row("gcs.bucket.name", Type.STRING, NO_DEFAULT, HIGH, "The bucket."),
        Row(
            "gcs.credentials.path", Type.STRING, "", HIGH,
            "A file with the key of a service account. Empty: the environment says it.",
        ),
        Row("gcs.credentials.json", Type.PASSWORD, None, HIGH, "Its content, in place of the file."),
        of_library=("gcs.proxy.url",),
    )  # fmt: skip
    bucket = "gs", "gcs.bucket.name"
    options: ClassVar[Mapping[str, str]] = {
        "gcs.credentials.path": "store.google_service_account", "gcs.credentials.json": "store.google_service_account_key",
    }  # fmt: skip


class AzureBlobSink(StoreSink):
    """io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector."""

    prefix = "azblob"
    config = _config(
        prefix,
        Row("azblob.account.name", Type.STRING, NO_DEFAULT, HIGH, "The storage account."),
        Row("azblob.account.key", Type.PASSWORD, None, HIGH, "Its key."),
        Row("azblob.sas.token", Type.PASSWORD, None, HIGH, "A token, in place of the key."),
        Row("azblob.container.name", Type.STRING, "default", HIGH, "The container."),
        of_library=("azblob.url", "azblob.proxy.url"),
    )
    bucket = "az", "azblob.container.name"
    options: ClassVar[Mapping[str, str]] = {
        "azblob.account.name": "store.account_name", "azblob.account.key": "store.account_key", "azblob.sas.token": "store.sas_token",
    }  # fmt: skip
