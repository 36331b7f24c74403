"""Confluent's sinks to object stores, by their class names and keys. The sink of files has most of their keys under the same names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type
from barnabas.connect.plugins.dialects.translation import Texts, TranslatedSink, idle, refusing
from barnabas.connect.plugins.files import sink_config
from barnabas.connect.plugins.files.sink import FileSink
from barnabas.connect.validators import one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
LICENSE = "no license is needed"
REFUSED = {
    "store.kafka.keys": "files have the values of records",
    "store.kafka.headers": "files have the values of records",
    "directory.delim": "folders have a slash between them",
}
DEFAULTS = {"store.kafka.keys": "false", "store.kafka.headers": "false", "directory.delim": "/"}
OWN = {sink_config.URL, sink_config.BUCKET, *sink_config.OF_S3.values(), "compression.type"}


def _with_common(made: ConfigDef, prefix: str) -> ConfigDef:
    """Add the keys that these sinks have in common with the sink of files, and with each other."""
    for key in sink_config.CONFIG:
        if key.name not in OWN:
            made.add(key)
    made.define(
        f"{prefix}.compression.type", Type.STRING, "none", importance=LOW, validator=one_of("none", "gzip"),
        documentation="The compression of JSON, CSV and lines.",
    )  # fmt: skip
    made.define(
        "schema.compatibility", Type.STRING, "NONE", importance=HIGH,
        validator=one_of("NONE", "BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"),
        documentation="Without effect: a file has the fields of all of its records, and another file begins where their types do not fit.",
    )  # fmt: skip
    idle(made, "the class says it", "storage.class", "schema.generator.class")
    idle(made, "a file is written at once, in parts that the library chooses", f"{prefix}.part.size", f"{prefix}.block.size")
    idle(made, "path.format has numbers alone", "locale")
    idle(
        made,
        "writes are tried again",
        f"{prefix}.part.retries",
        f"{prefix}.retry.backoff.ms",
        "retry.backoff.ms",
        f"{prefix}.retries",
    )
    idle(made, "Avro has Kafka Connect's types without their names", "enhanced.avro.schema.support", "connect.meta.data")
    idle(made, "the compression has the library's level", f"{prefix}.compression.level")
    idle(made, "shutting down does not wait for uploads", "shutdown.timeout.ms")
    idle(made, LICENSE, "confluent.license", "confluent.topic.bootstrap.servers", "confluent.topic.replication.factor")
    return refusing(made, REFUSED, DEFAULTS)


class StoreSink(TranslatedSink, FileSink):
    """What these sinks have in common."""

    behind = FileSink.config
    families = ("store.", "confluent.topic.")
    refused: ClassVar[Mapping[str, str]] = REFUSED
    prefix: ClassVar[str]

    def open(self, config: Config) -> None:
        super().open(config)

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        found = super().translated(given)
        found["compression.type"] = given[f"{cls.prefix}.compression.type"]
        return found


class S3Sink(StoreSink):
    """io.confluent.connect.s3.S3SinkConnector."""

    prefix = "s3"
    config = idle(
        _with_common(
            ConfigDef()
            .define("s3.bucket.name", Type.STRING, importance=HIGH, documentation="The bucket.")
            .define("s3.region", Type.STRING, "us-west-2", importance=MEDIUM, documentation="Its region.")
            .define("aws.access.key.id", Type.STRING, "", importance=HIGH, documentation="Who logs in. Empty: the environment says it.")
            .define("aws.secret.access.key", Type.PASSWORD, None, importance=HIGH, documentation="The secret of aws.access.key.id.")
            .define("store.url", Type.STRING, "", importance=LOW, documentation="The server, if it is not that of AWS.")
            .define("s3.ssea.name", Type.STRING, "", importance=LOW, validator=one_of("", "AES256", "aws:kms"),
                    documentation="How the server encrypts objects.")
            .define("s3.sse.kms.key.id", Type.STRING, "", importance=LOW, documentation="The key of aws:kms."),
            "s3",
        ),
        "store.OPTION has the options of the library obstore", "s3.acl.canned", "s3.object.tagging", "s3.proxy.url",
        "s3.credentials.provider.class", "s3.path.style.access.enabled", "s3.http.send.expect.continue", "s3.wan.mode",
        "s3.elastic.buffer.enable",
    )  # fmt: skip

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        found = super().translated(given)
        names = ("s3.bucket.name", "s3.region", "aws.access.key.id", "aws.secret.access.key", "store.url")
        found |= {name: given[name] for name in names if given.get(name)}
        if given["s3.ssea.name"]:
            found["store.aws_server_side_encryption"] = given["s3.ssea.name"]
        if given["s3.sse.kms.key.id"]:
            found["store.aws_sse_kms_key_id"] = given["s3.sse.kms.key.id"]
        return found if found.get("store.url") else {key: value for key, value in found.items() if key != "store.url"}


class GcsSink(StoreSink):
    """io.confluent.connect.gcs.GcsSinkConnector."""

    prefix = "gcs"
    config = idle(
        _with_common(
            ConfigDef()
            .define("gcs.bucket.name", Type.STRING, importance=HIGH, documentation="The bucket.")
            .define("gcs.credentials.path", Type.STRING, "", importance=HIGH,
                    documentation="A file with the key of a service account. Empty: the environment says it.")
            .define("gcs.credentials.json", Type.PASSWORD, None, importance=HIGH, documentation="Its content, in place of the file."),
            "gcs",
        ),
        "store.OPTION has the options of the library obstore", "gcs.proxy.url",
    )  # fmt: skip

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        found = super().translated(given) | {"store.url": f"gs://{given['gcs.bucket.name']}"}
        if given.get("gcs.credentials.path"):
            found["store.google_service_account"] = given["gcs.credentials.path"]
        if given.get("gcs.credentials.json"):
            found["store.google_service_account_key"] = given["gcs.credentials.json"]
        return found


class AzureBlobSink(StoreSink):
    """io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector."""

    prefix = "azblob"
    config = idle(
        _with_common(
            ConfigDef()
            .define("azblob.account.name", Type.STRING, importance=HIGH, documentation="The storage account.")
            .define("azblob.account.key", Type.PASSWORD, None, importance=HIGH, documentation="Its key.")
            .define("azblob.sas.token", Type.PASSWORD, None, importance=HIGH, documentation="A token, in place of the key.")
            .define("azblob.container.name", Type.STRING, "default", importance=HIGH, documentation="The container."),
            "azblob",
        ),
        "store.OPTION has the options of the library obstore", "azblob.url", "azblob.proxy.url",
    )  # fmt: skip

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        found = super().translated(given) | {"store.url": f"az://{given['azblob.container.name']}"}
        found["store.account_name"] = given["azblob.account.name"]
        if given.get("azblob.account.key"):
            found["store.account_key"] = given["azblob.account.key"]
        if given.get("azblob.sas.token"):
            found["store.sas_token"] = given["azblob.sas.token"]
        return found
