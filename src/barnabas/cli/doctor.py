"""`barnabas doctor`: checks that this machine is suitable for a broker, that Spark's processes find barnabas, that a data
folder is intact, and that a broker answers.

Every check prints one line: ok, warning (works, but needs attention) or failed. No check writes a file.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import asdict

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.data_folder import is_locked
from barnabas.cli.errors import BadInput
from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup
from barnabas.cli.output import Output, output_option
from barnabas.cli.types import FilePath
from barnabas.errors import BarnabasError

COLUMNS = {"status": "STATUS", "check": "CHECK", "detail": "DETAIL"}
OK, WARNING, FAILED = "ok", "warning", "failed"
OPEN_FILES_WANTED = 65_536  # one per segment in use and two per connection; Kafka's manual recommends 100,000
OPEN_FILES_NEEDED = 1_024
FREE_SHARE_WANTED = 0.10
FREE_BYTES_NEEDED = 512 * 1024 * 1024  # with less, the next segments may not fit
PROBLEMS_SHOWN = 5
LIBRARIES = ["barnabas", "uvloop", "crc32c", "cramjam", "msgspec", "confluent-kafka", "rich", "click"]


class Finding(Struct, frozen=True):
    check: str
    status: str
    detail: str


@click.group(
    cls=LazyGroup,
    entries={"check": Entry("doctor_check", "check", "Verify every file of stopped data folders.")},
    invoke_without_command=True,
    context_settings=HELP_OPTIONS,
)
@click.option(
    "--data-dir",
    type=FilePath(path_type=Path),
    envvar="BARNABAS_DATA_DIR",
    show_envvar=True,
    help="Also check this data folder.",
)
@click.option("--no-broker", is_flag=True, help="Do not connect to a broker.")
@connection_options
@output_option
@click.pass_context
def doctor(context: click.Context, connection: Connection, output: Output, data_dir: Path | None, no_broker: bool) -> int:
    """Check this machine, Spark's Python if PySpark is installed, a data folder and a broker.

    Exit code 1 means that a check failed; warnings do not count.
    """
    if context.invoked_subcommand is not None:
        return 0
    findings = [*check_machine(), *spark_findings()]
    if data_dir is not None:
        if not data_dir.is_dir():
            raise BadInput(f"there is no folder {data_dir}")
        findings += check_data_folder(data_dir)
    if not no_broker:
        findings += check_broker(connection)
    output.table([asdict(finding) for finding in findings], COLUMNS)
    return 1 if any(finding.status == FAILED for finding in findings) else 0


def check_machine() -> Iterator[Finding]:
    supported = OK if sys.version_info >= (3, 11) else FAILED
    yield Finding("python", supported, f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}")
    yield Finding("packages", OK, ", ".join(f"{name} {_version(name)}" for name in LIBRARIES))
    if find_spec("uvloop") is None:
        yield Finding(
            "event loop", WARNING, "uvloop is not installed: the broker runs on asyncio's own loop, at about half the speed"
        )
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # a broker raises its soft limit to the hard limit
    allowed = sys.maxsize if most == resource.RLIM_INFINITY else most
    status = OK if allowed >= OPEN_FILES_WANTED else WARNING if allowed >= OPEN_FILES_NEEDED else FAILED
    advice = "" if status == OK else f"; a broker with many partitions needs {OPEN_FILES_WANTED} (ulimit -Hn)"
    yield Finding("open files", status, f"{'any number' if most == resource.RLIM_INFINITY else most} allowed{advice}")
    yield Finding("processors", OK, f"{os.cpu_count()}; one broker uses one of them")


def spark_findings() -> Iterator[Finding]:
    from barnabas.cli.doctor_spark import check_spark

    for check, is_good, detail in check_spark():
        yield Finding(check, OK if is_good else WARNING, detail)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def check_data_folder(path: Path) -> Iterator[Finding]:
    from barnabas.cli.dump import describe_data_folder

    usage = shutil.disk_usage(path)
    share = usage.free / usage.total
    status = FAILED if usage.free < FREE_BYTES_NEEDED else WARNING if share < FREE_SHARE_WANTED else OK
    yield Finding("disk", status, f"{usage.free / 1e9:.1f} GB of {usage.total / 1e9:.1f} GB free ({share:.0%})")
    writable = os.access(path, os.R_OK | os.W_OK | os.X_OK)
    yield Finding("rights", OK if writable else FAILED, f"{path} {'can' if writable else 'cannot'} be written by this user")
    described = describe_data_folder(path, check_crc=True)
    meta, partitions = described["meta"], described["partitions"]
    owner = f"broker {meta.get('node.id', meta.get('broker.id', '?'))} of cluster {meta.get('cluster.id', '?')}"
    yield Finding("data folder", OK if meta else WARNING, f"belongs to {owner}" if meta else "no meta.properties: not used yet")
    running = is_locked(path)
    if running or described["clean_shutdown"]:
        yield Finding("last stop", OK, "a broker is running on it" if running else "clean")
    elif partitions:
        yield Finding("last stop", WARNING, "not clean: the next start checks the logs from their recovery points on")
    problems = described["problems"]
    yield Finding("logs", FAILED if problems else OK, _log_summary(partitions, problems))
    for problem in problems[:PROBLEMS_SHOWN]:
        yield Finding("log", FAILED, problem)


def _log_summary(partitions: list[dict[str, Any]], problems: list[str]) -> str:
    segments = sum(len(p["segments"]) for p in partitions)
    size = sum(p["bytes"] for p in partitions)
    state = f"{len(problems)} problems (barnabas log dump shows all)" if problems else "every CRC and index fits"
    return f"{len(partitions)} partitions, {segments} segments, {size / 1e6:.1f} MB: {state}"


def check_broker(connection: Connection) -> Iterator[Finding]:
    from barnabas.cli.cluster import describe_cluster

    began = time.perf_counter()
    try:
        with connection.wire() as wire:
            elapsed_ms = (time.perf_counter() - began) * 1000
            apis, name = len(wire.versions), wire.name
        yield Finding("broker", OK, f"{name} answered in {elapsed_ms:.1f} ms and supports {apis} requests")
        cluster = describe_cluster(connection)
    except (click.ClickException, BarnabasError) as error:
        yield Finding("broker", FAILED, error.format_message() if isinstance(error, click.ClickException) else str(error))
        return
    yield Finding(
        "cluster",
        OK,
        f"{cluster['cluster_id']} with {len(cluster['brokers'])} brokers, {cluster['topics']} topics, "
        f"{cluster['partitions']} partitions",
    )
    yield _replica_finding("leaders", cluster["leaderless"], "without a leader: clients can neither read nor write them", FAILED)
    yield _replica_finding("replicas", cluster["under_replicated"], "with replicas that are not in sync", WARNING)


def _replica_finding(check: str, partitions: list[str], what: str, status: str) -> Finding:
    if not partitions:
        return Finding(check, OK, "every partition has a leader" if check == "leaders" else "every replica is in sync")
    more = "..." if len(partitions) > PROBLEMS_SHOWN else ""
    return Finding(check, status, f"{len(partitions)} partitions {what}: {', '.join(partitions[:PROBLEMS_SHOWN])}{more}")
