"""An Iceberg table, by the library pyiceberg: appends and replacements. The summary of each snapshot has offsets of records.

They are those of all topic partitions of the connector, those of other tasks too: each commit takes over what its parent
has. So the newest snapshot of the connector says all. A commit names its parent, and the catalog refuses it if another one came between.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TooManyRequestsError,
)
from pyiceberg.table import Table
from pyiceberg.table.upsert_util import create_match_filter
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)

from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.plugins.databases.columns import last_of_each
from barnabas.connect.plugins.iceberg.settings import Partition, Settings, partitions_of
from barnabas.connect.plugins.lakes.fitting import storable
from barnabas.connect.plugins.lakes.gathering import Place, Rows
from barnabas.connect.plugins.lakes.sink import Overtaken

RETRIES = "commit.retry.num-retries"
_AWAY = (
    ServerError, ServiceUnavailableError, TooManyRequestsError, CommitStateUnknownException, ConnectionError, TimeoutError,
)  # fmt: skip
_TIMES: Mapping[str, Any] = {"year": YearTransform, "month": MonthTransform, "day": DayTransform, "hour": HourTransform}


class Iceberg:
    """See `lakes/sink.py: LakeTable`."""

    def __init__(self, table: Table, name: str, settings: Settings) -> None:
        self._table, self._name, self._settings = table, name, settings
        self._branch = settings.of_table(name, "commit-branch", settings.branch)
        columns = table.schema().as_arrow()
        self.schema: pa.Schema = pa.schema([pa.field(each.name, storable(each.type) or each.type) for each in columns])

    def add_columns(self, fields: Sequence[pa.Field[Any]]) -> None:
        with told("change", self._name), self._table.update_schema() as update:
            update.union_by_name(pa.schema(fields))

    def offsets(self, places: Sequence[Place]) -> Mapping[Place, int]:
        known = self._known()
        return {place: known[place[0]][str(place[1])] for place in places if str(place[1]) in known.get(place[0], {})}

    def _known(self) -> dict[str, dict[str, int]]:
        """The offsets by topic and partition: those of the newest snapshot that has any."""
        snapshot = self._table.snapshot_by_name(self._branch)
        while snapshot is not None:
            text = snapshot.summary.additional_properties.get(self._settings.offsets_key) if snapshot.summary else None
            if text is not None:
                found: dict[str, dict[str, int]] = json.loads(text)
                return found
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._table.snapshot_by_id(parent)
        return {}

    def commit(self, rows: Rows, ends: Mapping[Place, int]) -> None:
        given = pa.Table.from_arrays(rows.rows.columns, schema=_required(rows.rows.schema, self._table))
        properties = self._summary(ends)
        self._table.metadata.properties[RETRIES] = "0"  # the library's own tries would not read the offsets again
        with told("write", self._name), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Delete operation did not match any records")
            with self._table.transaction() as transaction:
                if self._settings.upserts:
                    last = given.take(last_of_each(given, list(self._settings.ids_of(self._name))))
                    same = create_match_filter(last, list(self._settings.ids_of(self._name)))
                    transaction.overwrite(last, same, snapshot_properties=properties, branch=self._branch)
                else:
                    transaction.append(given, snapshot_properties=properties, branch=self._branch)

    def record(self, offsets: Mapping[Place, int]) -> None:
        """Record offsets alone."""
        self._table.metadata.properties[RETRIES] = "0"
        with told("change", self._name):
            self._table.append(
                self._table.schema().as_arrow().empty_table(), snapshot_properties=self._summary(offsets), branch=self._branch
            )

    def _summary(self, ends: Mapping[Place, int]) -> dict[str, str]:
        known = self._known()
        for (topic, partition), end in ends.items():
            known.setdefault(topic, {})[str(partition)] = end
        return {self._settings.offsets_key: json.dumps(known, separators=(",", ":"))}


def _required(schema: pa.Schema, table: Table) -> pa.Schema:
    """The columns with the requirements of the table, which a schema of Arrow says by its nullability."""
    required = {each.name for each in table.schema().fields if each.required}
    return pa.schema([pa.field(each.name, each.type, each.name not in required) for each in schema])


def catalog_of(settings: Settings) -> Catalog:
    """Connect to the catalog. Raises ConnectError."""
    with told("open", f"of the catalog {settings.catalog}"):
        return load_catalog(settings.catalog, **settings.properties)


def opened(catalog: Catalog, name: str, settings: Settings) -> Iceberg | None:
    """A table; None if there is none. Raises ConnectError."""
    with told("read", name):
        try:
            return Iceberg(catalog.load_table(name), name, settings)
        except NoSuchTableError:
            return None


def create(catalog: Catalog, name: str, schema: pa.Schema, settings: Settings) -> None:
    """Create a table, unless there is one. Raises ConnectError."""
    key = f"iceberg.table.{name}.partition-by"
    fields = partitions_of(key, settings.of_table(name, "partition-by", settings.partition_by))
    if missing := [each.column for each in fields if each.column not in schema.names]:
        raise ConnectError(f"{key} names {missing[0]}, which the records lack; they have {', '.join(schema.names)}")
    with told("create", name):
        namespace = name.rpartition(".")[0]
        try:
            if not catalog.namespace_exists(namespace):
                catalog.create_namespace(namespace)
        except NamespaceAlreadyExistsError:
            pass  # another task was first
        try:
            with catalog.create_table_transaction(name, schema, properties=dict(settings.create_properties)) as creating:
                if fields:
                    with creating.update_spec() as spec:
                        for each in fields:
                            spec.add_field(each.column, _transform(each), _field_name(each))
        except (TableAlreadyExistsError, CommitFailedException):
            return


def _transform(field: Partition) -> Any:
    if field.transform == "bucket":
        return BucketTransform(field.width or 1)
    if field.transform == "truncate":
        return TruncateTransform(field.width or 1)
    made = _TIMES.get(field.transform.removesuffix("s"))
    return IdentityTransform() if made is None else made()


def _field_name(field: Partition) -> str:
    return field.column if field.transform == "identity" else f"{field.column}_{field.transform.removesuffix('s')}"


@contextmanager
def told(verb: str, name: str) -> Iterator[None]:
    """Errors of the library as ours, in one line."""
    try:
        yield
    except CommitFailedException as error:
        raise Overtaken(_line(error)) from None
    except _AWAY as error:
        raise RetriableError(f"cannot {verb} the table {name}: {_line(error)}") from None
    except ModuleNotFoundError as error:
        raise ConnectError(f"cannot {verb} the table {name}: it needs the package {error.name}") from None
    except Exception as error:  # noqa: BLE001 - catalogs and storages raise errors of their own libraries
        text = _line(error)
        kind = RetriableError if "database is locked" in text else ConnectError
        raise kind(f"cannot {verb} the table {name}: {text}") from None


def _line(error: BaseException) -> str:
    """An error of the library in one line."""
    return " ".join(str(error).split())[:500] or type(error).__name__
