"""Spark writes and reads over TLS, with a certificate, its stores named as the Java client names them or as librdkafka does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_rows_go_there_and_back(spark: SparkSession) -> None:
    config = {"ssl.client.auth": "required", "transaction.two.phase.commit.enable": "true"}
    with Broker(config, tls=True) as broker:
        certificates = broker.certificates
        java = {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(certificates.authority.truststore),
            "ssl.truststore.password": certificates.password,
            "ssl.keystore.location": str(certificates.client("spark").keystore),
            "ssl.keystore.password": certificates.password,
        }
        rows = [(f"key {number}", "v" * 1000) for number in range(2_000)]
        common = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        writing = {**common, **{f"kafka.{key}": value for key, value in java.items()}}
        spark.createDataFrame(rows, "key string, value string").write.format("barnabas").mode("append").options(
            **writing, topic="rows"
        ).save()
        librdkafka = certificates.client_settings("spark")
        reading = {**common, **{f"kafka.{key}": value for key, value in librdkafka.items()}}
        found = spark.read.format("barnabas").options(**reading, subscribe="rows").load()
        assert sorted((row.key.decode(), row.value.decode()) for row in found.select("key", "value").collect()) == sorted(rows)


def test_rows_go_there_and_back_by_who_has_logged_in(spark: SparkSession) -> None:
    with Broker({"transaction.two.phase.commit.enable": "true"}, tls=True, users={"alice": "geheim"}) as broker:
        settings = {**broker.certificates.client_settings(), **broker.login()}
        options = {f"kafka.{key}": str(value) for key, value in settings.items()}
        options["kafka.bootstrap.servers"] = broker.bootstrap_servers
        rows = [(f"key {number}", "v") for number in range(100)]
        frame = spark.createDataFrame(rows, "key string, value string")
        frame.write.format("barnabas").mode("append").options(**options, topic="rows").save()
        found = spark.read.format("barnabas").options(**options, subscribe="rows").load()
        assert sorted((row.key.decode(), row.value.decode()) for row in found.select("key", "value").collect()) == sorted(rows)
