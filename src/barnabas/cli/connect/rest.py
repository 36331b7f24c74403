"""Questions to the REST interface of barnabas or of Kafka Connect, and the options of the commands that ask."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import click

from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.properties import parse_pairs, read_properties_file
from barnabas.cli.service_http import ServiceHttp
from barnabas.cli.types import READABLE, TIMEOUT, Text, checked
from barnabas.errors import ConfigError

DEFAULT_URL = "http://127.0.0.1:8083"
AGAIN_S = 0.5  # before a request is sent again that Kafka Connect refused while its group rebalances
USERS = frozenset({400, 404, 409, 415})  # statuses of what a user can mend


class Rest:
    """One worker.

    Args:
        timeout_s: for one answer, and for a rebalance.
    """

    def __init__(self, service: ServiceHttp, timeout_s: float) -> None:
        self._service, self._timeout_s = service, timeout_s

    def ask(self, method: str, *path: str, body: Any = None, query: Mapping[str, object] | None = None) -> Any:
        """The body of an answer; None if it has none. Raises BadInput for what a user can mend, Failure for others."""
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            status, text = self._service.ask(method, path, query, data)
            message = _message(text)
            if status != 409 or "rebalance" not in message or time.monotonic() > deadline_s:
                break
            time.sleep(AGAIN_S)
        for each in self._service.warnings:
            click.echo(f"barnabas: {each}", err=True)
        if status >= 300:
            raise (BadInput if status in USERS else Failure)(f"{self._service.url} refuses: {message}")
        try:
            return json.loads(text) if text else None
        except ValueError:
            raise Failure(f"{self._service.url} is no Connect: its answer is not JSON") from None

    def get(self, *path: str, query: Mapping[str, object] | None = None) -> Any:
        """The body of an answer; raises as `ask`."""
        return self.ask("GET", *path, query=query)


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, TypeError, KeyError):
        return text[:200]


def read_url(text: str) -> str:
    """A URL of a worker. Raises BadInput."""
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # the port is not a number
        is_url = False
    if not is_url or not text.isascii() or not text.isprintable() or " " in text:
        raise BadInput(f"{text!r} is no URL such as {DEFAULT_URL}")
    return text


def rest_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a worker, and call it with a `rest`."""

    @functools.wraps(function)
    def command(*, url: str, command_config: str | None, settings: tuple[str, ...], timeout: float, **options: Any) -> Any:
        from barnabas.client.config import ClientConfig

        properties = read_properties_file(command_config) if command_config else {}
        properties |= parse_pairs(settings, "-X")
        limit_ms = str(max(1, round(timeout * 1000)))
        given = {"bootstrap.servers": "127.0.0.1:9092", **properties, "request.timeout.ms": limit_ms}
        try:
            config = ClientConfig.from_options(given)
        except ConfigError as error:
            raise BadInput(str(error)) from None
        return function(rest=Rest(ServiceHttp("Connect", url, config), timeout), **options)

    for option in (
        click.option("--timeout", type=TIMEOUT, default=60.0, show_default=True, metavar="SECONDS", help="Seconds to wait for an answer."),
        click.option("-X", "settings", metavar="KEY=VALUE", multiple=True, help="A setting of the file, here; repeatable."),
        click.option("--command-config", type=READABLE, help="A file of client settings (key=value lines), for TLS and log-in."),
        click.option("--url", type=Text(checked(read_url)), metavar="URL", default=DEFAULT_URL, envvar="BARNABAS_CONNECT_URL",
                     show_default=True, show_envvar=True, help="A worker of barnabas or of Kafka Connect."),
    ):  # fmt: skip
        command = option(command)
    return command
