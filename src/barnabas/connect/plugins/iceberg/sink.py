"""`barnabas.IcebergSink`: writes records to Iceberg tables, each of them once. It is the Apache Iceberg sink without a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import structs

from barnabas.connect.api import Config
from barnabas.connect.errors import ConnectError
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.plugins.iceberg.settings import CATALOG, CONFIG, CREATE_PROPS, TABLE, Settings, errors_of, settings_of
from barnabas.connect.plugins.lakes.gathering import Numbers, Place, Rows
from barnabas.connect.plugins.lakes.sink import LakeSink, LakeTable, Overtaken


class IcebergSink(LakeSink):
    """See the module."""

    families = (CATALOG, TABLE, CREATE_PROPS)
    config = CONFIG
    creating, evolving = "iceberg.tables.auto-create-enabled=true", "iceberg.tables.evolve-schema-enabled=true"
    choice: Settings

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return errors_of(config)

    def open(self, config: Config) -> None:
        self._library = _library()
        self._settings = self.choice = settings_of(config)
        self._catalog = self._library.catalog_of(self.choice)
        self._patterns = {name: self.choice.of_table(name, "route-regex", "") for name in self.choice.tables}

    def routes(self, records: pa.Table) -> Mapping[str, Numbers]:
        every = np.arange(records.num_rows)
        if not self.choice.route_field:
            return dict.fromkeys(self.choice.tables, every)
        texts = _texts(records, self.choice.route_field)
        found: dict[str, list[int]] = {}
        for row, text in enumerate(texts):
            for name in self._names(text):
                found.setdefault(name, []).append(row)
        return {name: np.array(rows, np.int64) for name, rows in found.items()}

    def _names(self, text: str | None) -> Sequence[str]:
        """The tables of a record by the text of its route."""
        if text is None:
            return ()
        if self.choice.is_dynamic:
            return (text.lower(),)
        return [name for name, pattern in self._patterns.items() if pattern and java_pattern(pattern).fullmatch(text)]

    def _part(self, name: str, records: pa.Table) -> Rows:
        ids = self._settings.ids_of(name) if self._settings.upserts else ()
        self.choice = structs.replace(self._settings, pk_mode="record_value" if ids else "none", pk_fields=ids)
        return super()._part(name, records)

    def table(self, name: str) -> LakeTable | None:
        made: LakeTable | None = self._library.opened(self._catalog, name, self._settings)
        return made

    def create(self, name: str, schema: pa.Schema) -> None:
        if "." not in name:
            raise ConnectError(f"the table {name} has no namespace: NAMESPACE.NAME")
        self._library.create(self._catalog, name, schema, self._settings)

    @classmethod
    def alter_offsets(cls, config: Config, offsets: Mapping[Place, int | None]) -> None:
        library, settings = _library(), settings_of(config)
        if settings.is_dynamic:
            raise ConnectError("the tables of iceberg.tables.dynamic-enabled=true are not known, so their offsets cannot be set")
        catalog = library.catalog_of(settings)
        for name in settings.tables:
            table = library.opened(catalog, name, settings)
            if table is not None:
                try:
                    table.record({place: offset or 0 for place, offset in offsets.items()})
                except Overtaken as error:
                    raise ConnectError(f"the table {name} has changed meanwhile: {error}") from None


def _library() -> Any:
    """The module that needs pyiceberg. Raises ConnectError."""
    try:
        return import_module("barnabas.connect.plugins.iceberg.iceberg_table")
    except ModuleNotFoundError as error:
        raise ConnectError(f"the Iceberg sink needs the package {error.name}: pip install 'barnabas[iceberg]'") from None


def _texts(records: pa.Table, path: str) -> list[str | None]:
    """The texts of a field of the values; a dot leads into a struct."""
    column: Any = records.column("value").combine_chunks()
    for name in path.split("."):
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return [None] * records.num_rows
        column = column.flatten()[column.type.get_field_index(name)]
    return [None if each is None else str(each) for each in column.to_pylist()]
