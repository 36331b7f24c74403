"""The sink of HTTP: a request for each record, or for some records as a JSON array.

A batch may come again after a kill or an error. Each request has a header with a key that is the same then, so a server that knows
it does nothing twice (`http.idempotency.header`). Within one task a record that was sent is not sent again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from barnabas.connect.api import Config, Identity, Sink
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type, invalid
from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.converters.plain import StringConverter
from barnabas.connect.errors import BadRecords, ConnectError, RetriableError
from barnabas.connect.plugins.http import settings
from barnabas.connect.plugins.http.client import RefusedForNow, Request, pause_s, place_of
from barnabas.connect.plugins.http.lanes import ORDERS, Lanes, Sent, Some, lanes_of
from barnabas.connect.plugins.http.settings import METHODS, URL
from barnabas.connect.plugins.http.templates import at_pointer, filled, for_url, names_of
from barnabas.connect.validators import Range, one_of

logger = logging.getLogger(__name__)
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
NULLS = ("ignore", "delete", "fail")
IN_FLIGHT, ORDER = "max.in.flight", "max.in.flight.order"
MOST_IN_FLIGHT = 256  # threads of a task


class HttpSink(Sink):
    """Sends records to an HTTP interface."""

    config = settings.with_common(
        ConfigDef()
        .define(
            "http.url", Type.STRING, importance=HIGH, validator=URL,
            documentation="The URL, which may have places: ${topic}, ${partition}, ${offset}, ${key}, ${key.FIELD}, ${value.FIELD}.",
        )
        .define("http.method", Type.STRING, "POST", importance=HIGH, validator=one_of(*METHODS), documentation="The method.")
        .define(
            "batch.max.size", Type.INT, 1, importance=HIGH, validator=Range(1),
            documentation="The records of a request: with more than one, its body is a JSON array.",
        )
        .define(
            IN_FLIGHT, Type.INT, 1, importance=MEDIUM, validator=Range(1, MOST_IN_FLIGHT),
            documentation="The requests that wait for their answers at once.",
        )
        .define(
            ORDER, Type.STRING, "key", importance=MEDIUM, validator=one_of(*ORDERS),
            documentation="What keeps its order with several requests in flight: records of one key, of one partition, or none.",
        )
        .define(
            "batch.json.as.array", Type.BOOLEAN, False, importance=LOW, documentation="Whether the body is an array for one record too.",
        )
        .define(
            "batch.prefix", Type.STRING, None, importance=LOW,
            documentation="The begin of each body, in place of the JSON array that a body of several records is.",
        )
        .define("batch.suffix", Type.STRING, None, importance=LOW, documentation="The end of each body, likewise.")
        .define("batch.separator", Type.STRING, ",", importance=LOW, documentation="What is between the records of a body.")
        .define(
            "request.body.format", Type.STRING, "json", importance=MEDIUM, validator=one_of("json", "string"),
            documentation="The form of the values: JSON, or their text.",
        )
        .define(
            "behavior.on.null.values", Type.STRING, "ignore", importance=LOW, validator=one_of(*NULLS),
            documentation="What becomes of a record without a value: it is left out, or DELETE is sent to the URL, or it is an error.",
        )
        .define(
            "http.idempotency.header", Type.STRING, "Idempotency-Key", importance=MEDIUM,
            documentation="The header with the key of a request, which is the same when the request comes again. Empty: none.",
        )
    )  # fmt: skip

    def __init__(self) -> None:
        self._closed = threading.Event()
        self._sent: set[tuple[str, int, int]] = set()  # records of the batch that were sent
        self._tries = 0
        self._has_failed = False  # in the lanes of the batch

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        found = dict(settings.errors(config))
        try:
            _check(config.get("http.url") or "", int(config.get("batch.max.size") or 1))
        except (ConfigError, ValueError) as error:
            found["http.url"] = [str(error)]
        return found

    def open(self, config: Config) -> None:
        self._config = config
        self._client = settings.client_of(config, connections=config[IN_FLIGHT])
        self._lanes = Lanes(config[IN_FLIGHT])
        is_json = config["request.body.format"] == "json"
        self._converter = (
            JsonConverter({"schemas.enable": "false"}, is_key=False) if is_json else StringConverter({}, is_key=False)
        )
        is_array = config["batch.max.size"] > 1 and config["batch.prefix"] is None and config["batch.suffix"] is None
        self._type = "application/json" if is_json or is_array else "text/plain; charset=utf-8"

    def write(self, records: pa.Table, identity: Identity) -> None:
        config, rows = self._config, [each for each in self._rows(records) if each.place not in self._sent]
        bad: dict[int, str] = {}
        lanes = lanes_of(rows, order=config[ORDER], most=config[IN_FLIGHT], size=config["batch.max.size"])
        self._has_failed = False
        try:
            self._lanes.run(lambda lane: self._send_all(identity.connector, lane, bad), lanes)
        except RetriableError as error:
            self._retry(error)
        if bad:
            self.refuse(bad)
        self._sent.clear()

    def refuse(self, bad: Mapping[int, str]) -> None:
        """Do with records that the server refuses what the config says. Raises BadRecords."""
        raise BadRecords(bad)

    def tell_refused(self, bad: Mapping[int, str]) -> None:
        """Leave refused records out, with a line in the log."""
        logger.warning("event=records-refused count=%d first=%r", len(bad), str(BadRecords(bad)))

    def bodies(self, values: Any) -> list[Any]:
        """The values as bytes for a body; None for null."""
        return self._converter.encode(values, "").to_pylist()

    def _send_all(self, connector: str, requests: Sequence[Some], bad: dict[int, str]) -> None:
        """Send the requests of a lane, one behind the other. Records that are refused go to `bad`. Another lane's error ends it too."""
        waiting = list(reversed(requests))
        try:
            while waiting and not self._has_failed:
                some = waiting.pop()
                reason = self._refusal(connector, some)
                if reason is None:
                    self._sent.update(each.place for each in some)
                elif len(some) == 1:
                    bad[some[0].row] = reason
                else:
                    middle = len(some) // 2
                    waiting += [some[middle:], some[:middle]]
        except BaseException:
            self._has_failed = True
            raise

    def _rows(self, records: pa.Table) -> list[Sent]:
        values: Any = records.column("value").combine_chunks()
        bodies = self.bodies(values)
        keys = records.column("key").to_pylist() if "key" in records.column_names else [None] * records.num_rows
        places = zip(*(records.column(each).to_pylist() for each in ("topic", "partition", "offset")), strict=True)
        found = [
            Sent(row, place, key, value, None if value is None else body)
            for row, (place, key, value, body) in enumerate(zip(places, keys, values.to_pylist(), bodies, strict=True))
        ]
        nulls = [each.row for each in found if each.body is None]
        match self._config["behavior.on.null.values"]:
            case "fail" if nulls:
                raise BadRecords(dict.fromkeys(nulls, "it has no value"))
            case "ignore":
                return [each for each in found if each.body is not None]
        return found

    def _refusal(self, connector: str, some: Some) -> str | None:
        """Send some records; why the server refuses them, or None. Raises RetriableError, ConnectError."""
        if len(some) > 1 and any(each.body is None for each in some):
            return "deletions go one by one"
        self._wait()
        request = self._request(connector, some)
        try:
            answer = self._client.send(request)
        except RefusedForNow as error:  # a request that cannot be read does not become better
            most = self._config["max.retries"]
            if error.is_of_request and 0 <= most <= self._tries:
                tries, self._tries = self._tries + 1, 0
                return f"{error}, after {tries} tries"
            raise
        self._tries = 0
        if answer.status < 300:
            return None
        return f"{request.method} {place_of(request.url)} answers {answer.status} {answer.reason}"

    def _wait(self) -> None:
        if self._closed.wait(self._client.turn_s()):
            raise ConnectError("the task ends")

    def _retry(self, error: RetriableError) -> None:
        """Ask the framework for another call, unless there were enough."""
        most, tries = self._config["max.retries"], self._tries
        self._tries += 1
        if most >= 0 and tries >= most:
            self._tries = 0
            raise ConnectError(f"{error}, after {tries + 1} tries") from None
        raise RetriableError(str(error), after_s=pause_s(tries, self._config["retry.backoff.ms"] / 1000, error.after_s)) from None

    def _request(self, connector: str, some: Sequence[Sent]) -> Request:
        config, first, last = self._config, some[0], some[-1]
        url = filled(config["http.url"], lambda name: _value(first, name), for_url)
        headers = {}
        if config["http.idempotency.header"]:
            topic, partition, offset = first.place
            end = "" if len(some) == 1 else f"/{last.place[0]}-{last.place[1]}-{last.place[2]}/{len(some)}"
            headers[config["http.idempotency.header"]] = f"{connector}/{topic}-{partition}-{offset}{end}"
        if first.body is None:
            return Request("DELETE", url, headers)
        bodies = [each.body or b"" for each in some]
        prefix, suffix = config["batch.prefix"], config["batch.suffix"]
        has_frame = prefix is not None or suffix is not None
        if config["request.body.format"] == "string" and config["batch.max.size"] > 1 and not has_frame:
            bodies = [msgspec.json.encode(each.decode()) for each in bodies]
        if not has_frame and (config["batch.max.size"] > 1 or config["batch.json.as.array"]):
            prefix, suffix = "[", "]"
        body = b"".join([(prefix or "").encode(), config["batch.separator"].encode().join(bodies), (suffix or "").encode()])
        return Request(config["http.method"], url, {"content-type": self._type, **headers}, body)

    def close(self) -> None:
        self._closed.set()
        if hasattr(self, "_client"):
            self._lanes.close()
            self._client.close()


def _value(record: Sent, name: str) -> Any:
    """The value of a place in a URL."""
    simple = {"topic": record.place[0], "partition": record.place[1], "offset": record.place[2], "key": record.key}
    if name in simple:
        return simple[name]
    side, _, path = name.partition(".")
    return at_pointer(record.value if side == "value" else record.key, "/" + path.replace(".", "/"))


def _check(url: str, size: int) -> None:
    """Raises ConfigError for places that records do not have, or that differ within a request."""
    for name in names_of(url):
        side, dot, path = name.partition(".")
        if name not in {"topic", "partition", "offset", "key"} and not (side in {"key", "value"} and dot and path):
            raise invalid("http.url", f"${{{name}}}", "places are topic, partition, offset, key, key.FIELD and value.FIELD")
        if size > 1 and name != "topic":
            raise invalid("http.url", f"${{{name}}}", "records of one request differ in it: batch.max.size must be 1")
