"""`barnabas cluster migrate`: copies the metadata of a standalone broker into ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.errors import BadInput
from barnabas.cli.output import Output, output_option
from barnabas.cli.types import FilePath
from barnabas.cli.zookeeper import address_of, open_store

MIGRATED_SUFFIX = ".migrated"
FOLDER_TYPE = FilePath(path_type=Path, exists=True, file_okay=False)


@click.command("migrate")
@click.option("--data-dir", type=FOLDER_TYPE, required=True, help="The broker's first data folder, which has metadata.db.")
@click.option("--metadata", metavar="ADDRESS", required=True, help="Where to: zookeeper://HOST:PORT,.../ROOT.")
@output_option
def migrate(output: Output, data_dir: Path, metadata: str) -> None:
    """Make a stopped broker the first of a cluster.

    Topics, settings and ids are copied into ZooKeeper; the logs stay where they are. Then start the broker with the same id, folders and
    --metadata, and others beside it. The address must be empty, or hold only the remains of an interrupted copy: give the
    cluster a root that nothing else uses.

    Exit code 2, and nothing was done: the broker runs, metadata.db is missing, a metadata.db.migrated of an earlier migration
    exists, or the address holds a cluster or foreign data.
    """
    from barnabas.cli.data_folder import locked
    from barnabas.cluster.offline.migration import ClusterExists, ForeignEntry, is_named
    from barnabas.cluster.offline.migration import migrate as carry_out
    from barnabas.cluster.store.embedded import FILE_NAME, EmbeddedStore

    address = address_of(metadata)
    database = data_dir / FILE_NAME
    if not database.is_file():
        raise BadInput(f"{data_dir} has no {FILE_NAME}: no standalone broker used it, or it was migrated already")
    kept = database.with_name(FILE_NAME + MIGRATED_SUFFIX)
    if kept.exists():
        raise BadInput(f"{kept} is there already, and metadata.db is to get that name; move it away first")
    with locked(data_dir):
        with EmbeddedStore(data_dir) as source:
            if not is_named(source.list("/")):
                raise BadInput(f"{database} has no cluster id yet; start the broker on an empty ZooKeeper instead")
            with open_store(address) as target:
                try:
                    done = carry_out(source, target)
                except (ClusterExists, ForeignEntry) as error:
                    raise BadInput(str(error)) from error
        database.rename(kept)
    message = f"copied {done.topics} topics with {done.partitions} partitions of cluster {done.cluster_id} to {address}"
    output.done(message, done._asdict())
