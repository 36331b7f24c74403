"""A pipeline project: the files that `barnabas pipeline init` writes, and the targets of `run`. No Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from barnabas.pipelines.runs.folders import PipelineError

SPEC_NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")

SPEC = """\
# A pipeline of Spark (pyspark.pipelines). `barnabas pipeline run` in this folder brings its tables and topics up to date.
name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""

EXAMPLE = '''\
"""Orders from a topic to a table, and what they sum up to for each customer to another topic."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from barnabas.pipelines.functions import from_barnabas

SERVERS = os.environ.get("BARNABAS_BOOTSTRAP", {servers})
spark = SparkSession.active()


@dp.table(comment="Every order, once")
def orders() -> DataFrame:
    records = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", SERVERS)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    parsed = from_barnabas(records, "customer string, amount double")
    return parsed.where("value is not null").select("value.*", "partition", "offset", "timestamp")


@dp.materialized_view(comment="What each customer spent")
def spent() -> DataFrame:
    return spark.read.table("orders").groupBy("customer").agg(F.sum("amount").alias("amount"))


dp.create_sink("large_orders", "barnabas", {{"kafka.bootstrap.servers": SERVERS, "topic": "large-orders"}})


@dp.append_flow(target="large_orders")
def large() -> DataFrame:
    rows = spark.readStream.table("orders").where("amount >= 100")
    return rows.selectExpr("customer as key", "to_json(struct(customer, amount)) as value")
'''


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a run: a specification of a declared pipeline, or a script.

    Args:
        name: the name of the pipeline, if the command line gives none.
    """

    path: Path
    name: str
    is_script: bool


def create_project(folder: Path, servers: str) -> list[Path]:
    """Write a project that runs without changes; returns the files.

    Raises:
        PipelineError: the folder exists already.
    """
    if folder.exists():
        raise PipelineError(f"{folder} exists already")
    (folder / "transformations").mkdir(parents=True)
    storage = (folder / "storage").resolve()
    files = {
        folder / SPEC_NAMES[0]: SPEC.format(name=folder.name, storage=json.dumps(f"file://{storage}", ensure_ascii=False)),
        folder / "transformations" / "orders.py": EXAMPLE.format(servers=json.dumps(servers)),
        folder / ".gitignore": "storage/\n",
    }
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return list(files)


def find_target(path: Path) -> Target:
    """A folder with a specification, a specification, or a script.

    Raises:
        PipelineError: the path is none of these.
    """
    if path.is_dir():
        for name in SPEC_NAMES:
            if (path / name).is_file():
                return find_target(path / name)
        raise PipelineError(f"{path} has no {SPEC_NAMES[0]}; `barnabas pipeline init` creates a project")
    if not path.is_file():
        raise PipelineError(f"{path} does not exist")
    if path.suffix == ".py":
        return Target(path, path.stem, True)
    if path.suffix in {".yml", ".yaml"}:
        return Target(path, _name_of(path), False)
    raise PipelineError(f"{path} is neither a specification (.yml) nor a script (.py)")


def _name_of(spec: Path) -> str:
    try:
        import yaml
    except ImportError as error:
        raise PipelineError("declared pipelines need the extra: pip install 'barnabas[pipelines]'") from error
    try:
        content = yaml.safe_load(spec.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise PipelineError(f"{spec} is not YAML: {' '.join(str(error).split())}") from error
    name = content.get("name") if isinstance(content, dict) else None
    if not isinstance(name, str) or not name:
        raise PipelineError(f"{spec} has no name for the pipeline")
    return name
