"""Runs a source of dlt without a pipeline: no folder, no destination, and its state in a dictionary of ours.

Only this module knows the inside of dlt: the contexts in which it runs resources, and how it marks their items.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from msgspec import Struct

from barnabas.connect.errors import ConnectError

logger = logging.getLogger(__name__)
MISSING = "dlt is not installed here: pip install 'barnabas[dlt]'"
STATE, VERSION = "state", "version"  # of an offset
FORMAT = 1
HARD_DELETE = "hard_delete"  # dlt's hint of a column


class Items(Struct, frozen=True):
    """Some rows of a resource.

    Args:
        rows: dictionaries, or a table.
        key: the columns of the primary key; of the merge key, if there is none.
        deletes: the column that marks rows which are gone; None: there is none.
    """

    resource: str
    rows: Sequence[Mapping[str, Any]] | pa.Table
    key: Sequence[str]
    deletes: str | None


def is_installed() -> bool:
    """Whether dlt is there."""
    return find_spec("dlt") is not None


def function_of(name: str) -> Callable[..., Any]:
    """The function of `module:function`. Raises ConnectError."""
    if not is_installed():
        raise ConnectError(MISSING)
    module, _, attribute = name.partition(":")
    try:
        found = import_module(module)
    except ImportError as error:
        raise ConnectError(f"the module {module} of dlt.source cannot be imported: {error}") from error
    for part in attribute.split("."):
        found = getattr(found, part, None)  # type: ignore[assignment]  # of any type
    if not callable(found):
        raise ConnectError(f"{module} has no function {attribute}")
    return found


def argument(text: str) -> Any:
    """The value of an argument: JSON, or else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class Extraction:
    """One round of a source: its items, and the state behind them.

    Args:
        function: makes a source, a resource or a list of resources.
        resources: names of those that are read; empty: all that the source selects.
        offset: that was committed; empty at first.

    Raises:
        ConnectError: the function gives no source, or the offset is of another version.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], resources: Sequence[str], offset: Mapping[str, Any]
    ) -> None:  # fmt: skip
        from dlt.common.json import json as typed_json

        if offset and offset.get(VERSION) != FORMAT:
            raise ConnectError(f"the offset has the version {offset.get(VERSION)}, and this connector knows {FORMAT}")
        self._json = typed_json
        self._state: dict[str, Any] = typed_json.typed_loads(offset[STATE]) if offset else {}
        self._function, self._arguments, self._resources = function, arguments, resources
        self._hints: dict[str, tuple[str, Sequence[str], str | None]] = {}

    @property
    def offset(self) -> dict[str, Any]:
        """The state after the items that came; dlt's own text keeps times and decimals in it."""
        return {VERSION: FORMAT, STATE: self._json.typed_dumps(self._state, sort_keys=True)}

    def items(self) -> Iterator[Items]:
        """The items of all resources. The source's errors pass."""
        from dlt.common.configuration.container import Container
        from dlt.common.configuration.resolve import inject_section
        from dlt.common.pipeline import StateInjectableContext
        from dlt.extract.pipe_iterator import ManagedPipeIterator
        from dlt.extract.source import SourceInjectableContext, SourceSchemaInjectableContext

        state, container = StateInjectableContext(state=self._state), Container()  # type: ignore[arg-type]  # dlt fills it
        with container.injectable_context(state):
            source = self._source()
        section = source._get_config_section_context()
        contexts = [section, state, SourceSchemaInjectableContext(source.schema), SourceInjectableContext(source)]
        with (
            inject_section(section), container.injectable_context(state), container.injectable_context(contexts[2]),
            container.injectable_context(contexts[3]),
        ):  # fmt: skip
            running: Any = ManagedPipeIterator.from_pipes(source.resources.selected_pipes)
        running.set_context(contexts)
        try:
            for item in running:
                rows = _rows(item.item)
                if len(rows):
                    yield from self._items(source.resources.with_pipe(item.pipe), rows, item.meta)
        finally:
            running.close()

    def _items(self, resource: Any, rows: Any, meta: Any) -> Iterator[Items]:
        if meta is None and not resource._table_name_hint_fun and not resource._table_has_other_dynamic_hints:
            if resource.name not in self._hints:
                self._hints[resource.name] = _hints(resource, _first(rows), None)
            name, key, deletes = self._hints[resource.name]
            yield Items(name, rows, key, deletes)
            return
        for each in [rows] if isinstance(rows, pa.Table) else [[row] for row in rows]:  # each row may have hints of its own
            name, key, deletes = _hints(resource, _first(each), meta)
            yield Items(name, each, key, deletes)

    def _source(self) -> Any:
        from dlt.common.schema import Schema
        from dlt.extract.resource import DltResource
        from dlt.extract.source import DltSource

        try:
            made = self._function(**self._arguments)
        except TypeError as error:
            raise ConnectError(f"{self._function.__name__} does not take the arguments dlt.arg.*: {error}") from error
        if not isinstance(made, DltSource):
            found = [made] if isinstance(made, DltResource) else list(made) if isinstance(made, (list, tuple)) else []
            if not found or not all(isinstance(each, DltResource) for each in found):
                raise ConnectError(f"{self._function.__name__} gives {type(made).__name__}, and no source or resource of dlt")
            made = DltSource(Schema(found[0].name), found[0].section, found)
        if self._resources:
            if unknown := [name for name in self._resources if name not in made.resources]:
                raise ConnectError(f"the source has no resource {unknown[0]}; it has {', '.join(made.resources)}")
            made = made.with_resources(*self._resources)
        return made


def _rows(item: Any) -> Any:
    """The rows of an item of dlt: a dictionary, a list of them, or a frame."""
    if item is None:
        return ()
    if isinstance(item, pa.RecordBatch):
        return pa.Table.from_batches([item])
    if isinstance(item, pa.Table):
        return item
    if type(item).__module__.startswith("pandas."):
        return pa.Table.from_pandas(item, preserve_index=False)
    return item if isinstance(item, list) else [item]


def _first(rows: Any) -> Any:
    return rows.slice(0, 1).to_pylist()[0] if isinstance(rows, pa.Table) else rows[0]


def _hints(resource: Any, row: Any, meta: Any) -> tuple[str, Sequence[str], str | None]:
    """The name of the table that dlt would fill, the columns of its key, and the column that marks rows which are gone."""
    schema = resource.compute_table_schema(row, meta)
    columns: Mapping[str, Mapping[str, Any]] = schema.get("columns", {})
    key = [name for name, hints in columns.items() if hints.get("primary_key")]
    key = key or [name for name, hints in columns.items() if hints.get("merge_key")]
    return schema["name"], tuple(key), next((name for name, hints in columns.items() if hints.get(HARD_DELETE)), None)
