"""Connectors in files: YAML, JSON and properties.

A connector is an object with `name`, `config` and, if wanted, `initial_state`; or a flat config with `name`, as Kafka Connect's standalone
mode has it. A YAML or JSON file may have several, as a list; a YAML file also as several documents. A config without a name that is alone
in its file has that of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from barnabas.cli.errors import BadInput
from barnabas.cli.properties import read_properties_file, read_text

SUFFIXES = (".json", ".properties", ".yaml", ".yml")


class FileConnector(Struct, frozen=True):
    """A connector of a file."""

    name: str
    config: dict[str, str]
    initial_state: str | None = None

    def request(self) -> dict[str, Any]:
        """The body of a request to create it."""
        state = {} if self.initial_state is None else {"initial_state": self.initial_state}
        return {"name": self.name, "config": self.config, **state}


def read_file(path: str) -> list[FileConnector]:
    """The connectors of a file. Raises BadInput."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise BadInput(f"{path} is none of {', '.join(SUFFIXES)}")
    found = [read_properties_file(path)] if suffix == ".properties" else _parsed(path, suffix)
    found = list(found)
    name = Path(path).stem if len(found) == 1 else None
    return [_connector(path, each, name) for each in found]


def read_folder(path: str) -> list[FileConnector]:
    """The connectors of all files of a folder, by name. Raises BadInput, also for a name that is there twice."""
    places: dict[str, Path] = {}
    found = []
    for file in sorted(each for each in Path(path).iterdir() if each.suffix.lower() in SUFFIXES):
        for connector in read_file(str(file)):
            if connector.name in places:
                raise BadInput(f"the connector {connector.name} is in {places[connector.name]} and in {file}")
            places[connector.name] = file
            found.append(connector)
    if not found:
        raise BadInput(f"{path} has no connectors: files that end in {', '.join(SUFFIXES)}")
    return sorted(found, key=lambda each: each.name)


def _parsed(path: str, suffix: str) -> Iterable[Any]:
    text = read_text(path)
    if suffix == ".json":
        try:
            data = json.loads(text)
        except ValueError as error:
            raise BadInput(f"{path} is not JSON: {error}") from None
        return data if isinstance(data, list) else [data]
    try:
        import yaml
    except ImportError:
        raise BadInput("YAML needs the extra: pip install 'barnabas[pipelines]'") from None
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except yaml.YAMLError as error:
        raise BadInput(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    return [one for each in documents for one in (each if isinstance(each, list) else [each])]


def _connector(path: str, data: Any, default: str | None) -> FileConnector:
    if not isinstance(data, dict):
        raise BadInput(f"{path} has something that is no connector: an object with name and config")
    is_whole = isinstance(data.get("config"), dict)
    if is_whole and (unknown := sorted(map(str, data.keys() - {"name", "config", "initial_state"}))):
        raise BadInput(f"{path}: a connector has name, config and initial_state, not {unknown[0]}")
    config = {str(key): _text(path, key, value) for key, value in (data["config"] if is_whole else data).items()}
    name = data.get("name", config.get("name", default))
    if not isinstance(name, str | int) or not str(name).strip():
        raise BadInput(f"{path} has a connector without a name")
    state = data.get("initial_state") if is_whole else None
    return FileConnector(str(name).strip(), config, None if state is None else str(state).upper())


def _text(path: str, key: Any, value: Any) -> str:
    """The value of a key as configs have it: YAML and JSON know numbers, booleans and lists."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(_text(path, key, each) for each in value)
    if isinstance(value, str | int | float):
        return str(value)
    raise BadInput(f"{path}: the value of {key} is text, a number, true, false or a list of these")
