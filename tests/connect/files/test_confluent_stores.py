"""Configs of Confluent's sinks to object stores work unchanged."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from barnabas.connect.config_types import ConfigError
from barnabas.connect.plugins.dialects.confluent_stores import AzureBlobSink, GcsSink, S3Sink, StoreSink
from barnabas.connect.plugins.files.objects import Objects
from barnabas.connect.plugins.files.sink_config import place_of
from barnabas.connect.plugins.files.storage import options_of
from barnabas.connect.runtime.opening import config_of
from tests.connect.files import fake_s3
from tests.connect.files.test_source import JSON
from tests.connect.runtime.tasks import Tasks

# beside bucket and log-in, what examples have
USUAL = {
    "flush.size": "2", "storage.class": "io.confluent.connect.s3.storage.S3Storage", "schema.compatibility": "NONE",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat", "locale": "en-US", "timezone": "UTC",
    "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner", "path.format": "'year'=YYYY",
    "partition.duration.ms": "3600000", "timestamp.extractor": "Record", "confluent.topic.bootstrap.servers": "localhost:9092",
}  # fmt: skip
AZURE_KEY = "a2V5"


@pytest.fixture
def s3() -> Iterator[fake_s3.FakeS3]:
    with fake_s3.running() as made:
        yield made


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_objects_of_s3(tasks: Tasks, s3: fake_s3.FakeS3, compression: str) -> None:
    tasks.create_topic()
    tasks.produce('{"id": 1}', '{"id": 2}')
    config = {
        **USUAL, "topics": tasks.topic, "s3.bucket.name": "bucket", "s3.region": "us-east-1", "s3.part.size": "5242880",
        "store.url": s3.options["store.endpoint"], "aws.access.key.id": fake_s3.KEY, "aws.secret.access.key": fake_s3.SECRET,
        "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner", "s3.compression.type": compression,
    }  # fmt: skip
    with tasks.running(tasks.job("io.confluent.connect.s3.S3SinkConnector", "sink", config, JSON)) as task:
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
    ((name, data),) = s3.objects.items()
    assert name.startswith(f"topics/{tasks.topic}/partition=0/{tasks.topic}+0+0000000000.json")
    assert (gzip.decompress(data) if compression == "gzip" else data) == b'{"id":1}\n{"id":2}\n'


@pytest.mark.parametrize(
    ("cls", "config", "place", "options"),
    [
        (
            GcsSink, {"gcs.bucket.name": "b", "gcs.credentials.path": "/key.json"}, "gs://b",
            {"google_service_account": "/key.json"},
        ),
        (
            AzureBlobSink, {"azblob.account.name": "me", "azblob.account.key": AZURE_KEY, "azblob.container.name": "c"}, "az://c",
            {"account_name": "me", "account_key": AZURE_KEY},
        ),
        (
            AzureBlobSink, {"azblob.account.name": "me", "azblob.sas.token": "sv=1&sig=x"}, "az://default",
            {"account_name": "me", "sas_token": "sv=1&sig=x"},
        ),
        (
            S3Sink, {"s3.bucket.name": "b", "s3.ssea.name": "aws:kms", "s3.sse.kms.key.id": "k"}, "s3://b",
            {"region": "us-west-2", "aws_server_side_encryption": "aws:kms", "aws_sse_kms_key_id": "k"},
        ),
    ],
)  # fmt: skip
def test_bucket_and_log_in(cls: type[StoreSink], config: Mapping[str, str], place: str, options: Mapping[str, str]) -> None:
    given: dict[str, Any] = {**USUAL, "topics": "t", **config}
    found, its = place_of(cls.parsed(config_of(cls(), given)))
    assert found == place
    assert {key: value for key, value in options_of(its).items() if value} == options
    if cls is not GcsSink:  # that library reads the file at once
        assert Objects.at(found, options_of(its)).address("x") == f"{place}/x"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({}, 'Missing required configuration "s3.bucket.name"'),
        ({"s3.bucket.name": "b", "store.kafka.keys": "true"}, "files have the values of records"),
        ({"s3.bucket.name": "b", "schema.compatibility": "x"}, "schema.compatibility"),
        ({"s3.bucket.name": "b", "format.class": "xml"}, "format.class"),
        ({"s3.bucket.name": "b", "flush.size": "x"}, "flush.size"),
    ],
)
def test_what_is_wrong_is_said(config: Mapping[str, str], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(S3Sink(), {**USUAL, "topics": "t", **config})
    assert says in str(caught.value)
