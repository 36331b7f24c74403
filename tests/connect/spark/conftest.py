"""One Spark session with JDBC drivers for the tests of connectors that work with it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tools.kafka import fetch

from tests.connect.plugins.conftest import mariadb as mariadb
from tests.connect.plugins.conftest import postgres as postgres
from tests.connect.runtime.tasks import Tasks
from tests.pipelines.conftest import _pandas_warning as _pandas_warning
from tests.pipelines.conftest import made_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if not shutil.which("mvn"):  # the tests of JDBC belong to `make interop`
        yield from made_session(tmp_path_factory, {})
        return
    drivers = [str(each) for each in fetch("jdbc").glob("*.jar") if each.name.startswith(("postgresql", "mariadb"))]
    yield from made_session(tmp_path_factory, {"spark.jars": ",".join(drivers)})


@pytest.fixture
def spark_tasks(tasks: Tasks, spark: SparkSession) -> Tasks:
    tasks.spark = spark
    return tasks
