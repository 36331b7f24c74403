"""What the author of a connector writes: a `Source` or a `Sink`.

A batch of records is a `pyarrow.Table` with these columns, as far as they are there:

    value       any type: a struct is a record with fields; required
    key         any type
    topic       string; by default the `topic` of the connector's config
    partition   int32
    timestamp   timestamp[us, UTC]; of a source, also milliseconds since 1970; null or none: the time of writing
    headers     list<struct<key: string, value: binary>>; of a source, values of any type, which `header.converter` writes, or a map
    offset      int64, for sinks
    original_topic   string, for sinks behind transforms: the topic that the record was read from
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from barnabas.connect.config_def import ConfigDef

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Config = Mapping[str, Any]  # parsed by the connector's ConfigDef
Offset = Mapping[str, Any]  # JSON; what it says is the connector's own affair


class Batch(Struct, frozen=True):
    """Records that a source has read, and where it goes on behind them.

    Args:
        rows: dictionaries, or a `pyarrow.Table` or `RecordBatch`: one column for each field of the value. If `is_records`, a table of the
            form above.
        offset: where the source goes on after these rows. None: the rows belong together with those of the next batches, up to one that
            has an offset; all of them go into one transaction.
        partition: the part of the source that the offset is for, such as `{"filename": "/a"}`.
        topic: of the rows; None: that of the config.
        key: names of the fields that make the key; one name makes a key of that field alone.
        forgets: whether this part of the source is gone, so that its offset is forgotten; the offset here says nothing then.
        rejected: what the source has found between these rows that is no record, such as a line that cannot be parsed: its bytes, and
            the reason. They become dead letters if errors are tolerated; otherwise the task fails.
        name: of the schema of the values, as Kafka Connect's converters write it; None: it has none.
    """

    rows: Sequence[Mapping[str, Any]] | pa.Table | pa.RecordBatch
    offset: Offset | None
    partition: Mapping[str, Any] = {}
    topic: str | None = None
    key: Sequence[str] = ()
    is_records: bool = False
    forgets: bool = False
    rejected: Sequence[tuple[bytes, str]] = ()
    name: str | None = None


class Connector:
    """What sources and sinks have in common.

    Attributes:
        config: the definitions of the config keys beyond those that all connectors have.
        families: how keys begin that it reads and `config` does not define, such as those with a name of the user in them.
        idle: how keys begin that configs of others have and that do nothing here, with the reason.
        needs_spark: whether it works with a Spark session; then its tasks run in the driver of the active engine.
        spark: a session of the task's own, if it needs one; set before `read` or `open` is called.
    """

    config: ClassVar[ConfigDef] = ConfigDef()
    families: ClassVar[tuple[str, ...]] = ()
    idle: ClassVar[Mapping[str, str]] = {}
    needs_spark: ClassVar[bool] = False
    spark: SparkSession

    @classmethod
    def tasks(cls, config: Config, most: int) -> list[Mapping[str, str]]:
        """Config keys that each task has beyond those of the connector, for at most so many tasks. By default one task with none.

        Called when the connector is created or changed, outside Spark. Raises ConnectError for a config that cannot work.
        """
        return [{}]

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """Errors by config key, beyond what the definitions say; for keys that must fit to each other.

        Called for a config that the definitions accept, when a connector is created or changed and when a task of it starts.
        """
        return {}


class Source(Connector):
    """Brings records into topics."""

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        """Batches, from the offsets on that were committed for this connector; forever, or until the source has no more.

        None says that there is nothing at the moment, and that the framework may wait a moment. What was yielded and not committed is
        read again after a failure, from a new call.
        """
        raise NotImplementedError

    @classmethod
    def check_offset(cls, config: Mapping[str, str], partition: Mapping[str, Any], offset: Offset | None) -> None:
        """Raises ConnectError for an offset that somebody sets and that `read` could not go on from; None removes one."""

    def committed(self, partition: Mapping[str, Any], offset: Offset) -> None:
        """The records up to this offset are in the log for good: a slot or a queue may forget them."""

    def keep_alive(self) -> None:
        """Report to the source's server. Called again and again while a batch waits for the log, by the thread that runs `read`."""

    def close(self) -> None:
        """Release what `read` holds; called from another thread too, to end a `read` that waits."""


class Sink(Connector):
    """Brings records of topics out. Its tasks share the partitions.

    One thread calls `open`, `write`, `pre_commit` and `close`; another one calls `close` for a task that does not end.
    """

    @classmethod
    def tasks(cls, config: Config, most: int) -> list[Mapping[str, str]]:
        """As many tasks as there may be."""
        return [{} for _ in range(most)]

    def open(self, config: Config) -> Mapping[tuple[str, int], int] | None:
        """Connect to the target. Offsets by topic and partition that the target itself has recorded go before those of the group."""
        return None

    def write(self, records: pa.Table, identity: Identity) -> None:
        """Write a batch: all of it, or raise. A batch that may have been written in part comes again with the same identity.
        Its records were read from one topic.

        A batch has no rows if all of its records became dead letters.
        """
        raise NotImplementedError

    @classmethod
    def alter_offsets(cls, config: Config, offsets: Mapping[tuple[str, int], int | None]) -> None:
        """Let a target that records offsets itself take others; None forgets one. Called while no task runs."""

    def pre_commit(self, offsets: Mapping[tuple[str, int], int]) -> Mapping[tuple[str, int], int]:
        """The offsets that may be committed: the records before them are in the target for good. By default those of all records that
        were written.

        Called behind each batch until the answer stays the same, each answer being committed; and about once a second while there are
        no records. So a sink that gathers records can write here those that are due, a part before each commit. RetriableError asks
        for another call. Records behind these offsets come again after a kill, perhaps in other batches.

        Args:
            offsets: behind the records that were written, by topic and partition. The answer may leave out places that lack nothing.
        """
        return offsets

    def close(self) -> None:
        """Release the target."""


class Identity(Struct, frozen=True):
    """Which records a batch of a sink has: by topic and partition the offset of the first one, and the offset behind the last one."""

    connector: str
    ranges: Mapping[tuple[str, int], tuple[int, int]]
