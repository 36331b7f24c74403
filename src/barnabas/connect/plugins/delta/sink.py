"""`barnabas.DeltaSink`: writes records to Delta tables, each of them once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from barnabas.connect.api import Config
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.delta.settings import CONFIG, Settings, errors_of, settings_of
from barnabas.connect.plugins.files.places import is_url
from barnabas.connect.plugins.files.storage import options_of
from barnabas.connect.plugins.lakes.gathering import Numbers, Place
from barnabas.connect.plugins.lakes.sink import LakeSink, LakeTable, by_topic


class DeltaSink(LakeSink):
    """See the module."""

    families = ("store.",)
    config = CONFIG
    creating, evolving = "auto.create=true", "auto.evolve=true"
    choice: Settings

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return errors_of(config)

    def open(self, config: Config) -> None:
        self._library = _library()
        self.choice = settings_of(config)
        self._options = _options(config)

    def routes(self, records: pa.Table) -> Mapping[str, Numbers]:
        found: dict[str, Numbers] = {}
        for topic, which in by_topic(records).items():
            name = self.choice.table_of(topic)
            found[name] = which if name not in found else np.sort(np.concatenate([found[name], which]))
        return found

    def table(self, name: str) -> LakeTable | None:
        table = self._library.opened(_url(self.choice, name), self._options)
        if table is None:
            return None
        made: LakeTable = self._library.Delta(table, self.choice.connector, self.keys.get(name, ()), self.choice.codec)
        return made

    def create(self, name: str, schema: pa.Schema) -> None:
        self._library.create(_url(self.choice, name), self._options, schema, self.choice.partition_by)

    @classmethod
    def alter_offsets(cls, config: Config, offsets: Mapping[Place, int | None]) -> None:
        library, choice, options = _library(), settings_of(config), _options(config)
        by_table: dict[str, dict[Place, int | None]] = {}
        for place, offset in offsets.items():
            by_table.setdefault(choice.table_of(place[0]), {})[place] = offset
        for name, some in by_table.items():
            table = library.opened(_url(choice, name), options)
            if table is not None:
                library.alter_offsets(table, choice.connector, some)


def _library() -> Any:
    """The module that needs deltalake. Raises ConnectError."""
    try:
        return import_module("barnabas.connect.plugins.delta.delta_table")
    except ModuleNotFoundError as error:
        raise ConnectError(f"barnabas.DeltaSink needs the package {error.name}: pip install 'barnabas[delta]'") from None


def _options(config: Config) -> dict[str, str]:
    options = options_of(config) if is_url(config["store.url"]) else {}
    if options.get("endpoint", "").startswith("http://"):
        options.setdefault("allow_http", "true")
    return options


def _url(choice: Settings, name: str) -> str:
    return f"{choice.place.removeprefix('file://')}/{quote(name, safe='/') if is_url(choice.place) else name}"
