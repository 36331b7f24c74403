"""Asks a worker what is wrong with the config of a connector in a file."""

from __future__ import annotations

from typing import Any

from barnabas.cli.connect.files import FileConnector
from barnabas.cli.connect.rest import Rest
from barnabas.cli.errors import BadInput


def errors_of(rest: Rest, connector: FileConnector) -> list[tuple[str, str]]:
    """The errors of a config, each with its key. Raises BadInput for one without a class."""
    cls = connector.config.get("connector.class")
    if cls is None:
        raise BadInput(f"the connector {connector.name} has no connector.class")
    body = {**connector.config, "name": connector.name}
    report: Any = rest.ask("PUT", "connector-plugins", cls, "config", "validate", body=body)
    return [(config["value"]["name"], error) for config in report["configs"] for error in config["value"]["errors"]]
