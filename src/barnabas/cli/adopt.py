"""`barnabas broker adopt`: makes data folders of Apache Kafka data folders of this broker."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.errors import BadInput
from barnabas.cli.output import Output, output_option, print_fields
from barnabas.cli.properties import read_properties_file
from barnabas.cli.types import READABLE, FilePath

if TYPE_CHECKING:
    from barnabas.cluster.offline.adoption import Adoption

COLUMNS = {"topic": "TOPIC", "topic_id": "TOPIC ID", "partitions": "PARTITIONS", "bytes": "BYTES", "leader_epoch": "LEADER EPOCH",
           "settings": "SETTINGS"}  # fmt: skip
FOLDER_TYPE = FilePath(path_type=Path, exists=True, file_okay=False)


@click.command("adopt")
@click.option("--data-dir", "data_dirs", type=FOLDER_TYPE, multiple=True, help="A data folder of Kafka (log.dirs). Repeatable.")
@click.option("--config-from", type=READABLE, help="Kafka's server.properties; log.dirs and metadata.log.dir come from it.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@output_option
def adopt(output: Output, data_dirs: tuple[Path, ...], config_from: str | None, dry_run: bool) -> int:
    """Adopt the data folders of a stopped Apache Kafka broker (KRaft).

    The command keeps topics with their ids, settings and records, committed offsets, users, access control lists, quotas and
    the cluster id. So clients continue where they were. It does not change or copy the logs; it adds the file metadata.db. Then
    start the broker on the same folders, with the same node id. Do not start Kafka on these folders again.

    Exit code 2: a broker runs on a folder, or a folder cannot be adopted; then nothing was done.
    """
    from barnabas.cli.data_folder import locked
    from barnabas.cluster.offline.adoption import adopt as carry_out
    from barnabas.cluster.offline.adoption import plan_adoption
    from barnabas.security.users import SECRET_BYTES
    from barnabas.storage.files import OsFiles

    folders, metadata_dir = _places(data_dirs, config_from)
    files = OsFiles()
    with ExitStack() as stack:
        for path in folders:
            stack.enter_context(locked(path))
        plan = plan_adoption(files, folders, metadata_dir)
        if plan.obstacles:
            raise BadInput("nothing was done: " + "; ".join(plan.obstacles))
        if not dry_run:
            carry_out(files, plan, secrets.token_bytes(SECRET_BYTES))
    _show(output, plan, dry_run)
    return 0


def _places(data_dirs: tuple[Path, ...], config_from: str | None) -> tuple[list[Path], Path | None]:
    properties = read_properties_file(config_from) if config_from else {}
    told = properties.get("log.dirs", properties.get("log.dir", ""))
    folders = list(data_dirs) or [Path(each.strip()) for each in told.split(",") if each.strip()]
    if not folders:
        raise click.UsageError("no data folder: give --data-dir, or --config-from with log.dirs in it")
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"there is no folder {folder}")
    metadata = properties.get("metadata.log.dir")
    return folders, Path(metadata) if metadata else None


def _show(output: Output, plan: Adoption, dry_run: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "topic": topic.name,
            "topic_id": str(topic.topic_id),
            "partitions": len(topic.leader_epochs),
            "bytes": topic.size_bytes,
            "leader_epoch": max(topic.leader_epochs),
            "settings": [f"{key}={value}" for key, value in topic.settings.items()],
        }
        for topic in plan.topics
    ]
    if output.as_json:
        output.json(
            {
                "cluster_id": plan.cluster_id,
                "node_id": plan.node_id,
                "was_clean": plan.was_clean,
                "dry_run": dry_run,
                "topics": rows,
                "broker_settings": plan.broker_settings,
                "declared": plan.declared.counts(),
                "next_producer_id": plan.next_producer_id,
                "notes": plan.notes,
            }
        )
        return
    stopped = "yes" if plan.was_clean else "no: the next start checks the logs from their recovery points on"
    print_fields({"cluster": plan.cluster_id, "node": plan.node_id, "stopped cleanly": stopped})
    output.table(rows, COLUMNS, empty="no topics")
    declared = ", ".join(f"{count} {what}" for what, count in plan.declared.counts().items() if count)
    if declared:
        click.echo(f"also: {declared}")
    for note in plan.notes:
        click.echo(f"note: {note}")
    folders = ",".join(str(folder.path) for folder in plan.folders)
    if dry_run:
        click.echo("nothing was changed (--dry-run)")
    else:
        click.echo(f"adopted; start it with: barnabas broker start --broker-id {plan.node_id} --config log.dirs={folders}")
