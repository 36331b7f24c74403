"""The source of HTTP: polls an interface page by page, and goes on where it was."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from barnabas.connect.api import Batch, Config, Offset, Source
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type, invalid
from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.plugins.http import settings
from barnabas.connect.plugins.http.client import Answer, Client, Request, pause_s, place_of
from barnabas.connect.plugins.http.paging import MODES, RESERVED, Paging, State
from barnabas.connect.plugins.http.settings import METHODS, URL
from barnabas.connect.plugins.http.templates import at_pointer, filled, for_json, for_url, names_of
from barnabas.connect.validators import Checked, NonEmptyString, Range, one_of

logger = logging.getLogger(__name__)
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
OFFSET = "offset."
INITIAL, FIELDS, SIZE = "http.offset.initial", "http.response.record.offset.pointer", "http.page.size"
PLACES = {"page": "page", "offset": "start", "cursor": "cursor"}  # what the modes put into requests


def pairs_of(name: str, value: Sequence[str]) -> dict[str, str]:
    """Names and values as `since=0,kind=a`. Raises ConfigError."""
    found = {}
    for each in value or ():
        key, equals, text = each.partition("=")
        if not equals or not key:
            raise invalid(name, each, "a name, =, and a value")
        found[key.strip()] = text.strip()
    return found


def _pairs(name: str, value: Any) -> None:
    pairs_of(name, value)


def _pointer(name: str, value: Any) -> None:
    if value and not value.startswith("/"):
        raise invalid(name, value, "a JSON pointer such as /data/items")


POINTER, PAIRS = Checked(_pointer, "a JSON pointer"), Checked(_pairs, "names and values")


class HttpSource(Source):
    """Polls an HTTP interface that answers with JSON."""

    config = settings.with_common(
        ConfigDef()
        .define("topic", Type.STRING, importance=HIGH, documentation="The topic of the records.", validator=NonEmptyString())
        .define(
            "http.url", Type.STRING, importance=HIGH, validator=URL,
            documentation="The URL, which may have places for offsets: https://a.example/items?since=${offset.since}.",
        )
        .define("http.method", Type.STRING, "GET", importance=MEDIUM, validator=one_of(*METHODS), documentation="The method.")
        .define(
            "http.body", Type.STRING, None, importance=MEDIUM,
            documentation="The body of a request, which may have places for offsets too. Values have the escapes of JSON strings.",
        )
        .define("poll.interval.ms", Type.LONG, 60_000, importance=HIGH, validator=Range(1), documentation="The pause behind the last page.")
        .define(
            INITIAL, Type.LIST, "", importance=HIGH, validator=PAIRS,
            documentation="The offsets of the first request: since=2025-01-01T00:00:00Z,page=0.",
        )
        .define(
            "http.response.list.pointer", Type.STRING, "", importance=HIGH, validator=POINTER,
            documentation="A JSON pointer to the list of records in an answer, such as /data/items. Empty: the whole answer.",
        )
        .define(
            "http.response.record.pointer", Type.STRING, "", importance=LOW, validator=POINTER,
            documentation="A JSON pointer to the value of a record in an entry of the list. Empty: the whole entry.",
        )
        .define(
            "http.response.record.key.pointer", Type.STRING, "", importance=MEDIUM, validator=POINTER,
            documentation="A JSON pointer to the key of a record in an entry.",
        )
        .define(
            FIELDS, Type.LIST, "", importance=HIGH, validator=PAIRS,
            documentation="Offsets that records have, with their JSON pointers in an entry: since=/updated_at. The greatest one counts.",
        )
        .define(
            "http.page.mode", Type.STRING, "none", importance=HIGH, validator=one_of(*MODES),
            documentation="How pages follow: none; link (the header Link, or a URL at http.next.page.pointer); cursor (at "
            "http.next.page.pointer, for ${offset.cursor}); page (${offset.page} counts pages); offset (${offset.start} counts records).",
        )
        .define(
            SIZE, Type.INT, 0, importance=MEDIUM, validator=Range(0),
            documentation="The records of a full page of the mode page: a page with fewer is the last one.",
        )
        .define(
            "http.next.page.pointer", Type.STRING, "", importance=MEDIUM, validator=POINTER,
            documentation="A JSON pointer to the cursor or the URL of the next page in an answer.",
        )
    )  # fmt: skip

    def __init__(self) -> None:
        self._closed = threading.Event()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        found = dict(settings.errors(config))
        try:
            _check(config)
        except ConfigError as error:
            found["http.url"] = [str(error)]
        return found

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        self._config = config
        self._paging = Paging(
            config["http.page.mode"], config["http.response.list.pointer"], config["http.next.page.pointer"],
            pairs_of(INITIAL, config[INITIAL]), pairs_of(FIELDS, config[FIELDS]), config[SIZE],
        )  # fmt: skip
        partition = {"url": place_of(config["http.url"])}
        known = next((offset for found, offset in offsets if found == partition), None)
        client = settings.client_of(config)
        try:
            yield from self._rounds(client, partition, self._paging.begin(known))
        finally:
            client.close()

    def _rounds(self, client: Client, partition: Mapping[str, Any], state: State) -> Iterator[Batch | None]:
        told = state
        while not self._closed.is_set():
            page = None
            while page is None or not page.is_last:
                request = self._request(state)
                answer = self._answered(client, request)
                if answer is None:
                    return
                if answer.status >= 300:
                    raise ConnectError(f"{request.method} {place_of(request.url)} answers {answer.status} {answer.reason}")
                page = self._paging.page_of(answer, request.url, state)
                state = page.state
                if page.items or (page.is_last and state != told):
                    told = state
                    yield Batch(self._records(page.items), state, partition, is_records=True)
            state = self._paging.begin(state)
            due_s = time.monotonic() + self._config["poll.interval.ms"] / 1000
            while not self._closed.is_set() and time.monotonic() < due_s:
                yield None

    def _request(self, state: State) -> Request:
        config = self._config
        values = {OFFSET + name: each for name, each in state.items()}
        url = state["next"] if "next" in state else filled(config["http.url"], values, for_url)
        if config["http.body"] is None:
            return Request(config["http.method"], url, {"accept": "application/json"})
        body = filled(config["http.body"], values, for_json).encode()
        return Request(config["http.method"], url, {"accept": "application/json", "content-type": "application/json"}, body)

    def _answered(self, client: Client, request: Request) -> Answer | None:
        """The answer to a request, which is tried again; None if the task ends meanwhile. Raises ConnectError."""
        most, first_s = self._config["max.retries"], self._config["retry.backoff.ms"] / 1000
        tries = 0
        while not self._closed.wait(client.delay_s()):
            try:
                return client.send(request)
            except RetriableError as error:
                if most >= 0 and tries >= most:
                    raise ConnectError(f"{error}, after {tries + 1} tries") from None
                wait_s = pause_s(tries, first_s, error.after_s)
                logger.warning("event=request-tried-again pause_s=%.1f reason=%r", wait_s, str(error))
                tries += 1
                if self._closed.wait(wait_s):
                    break
        return None

    def _records(self, items: Sequence[Any]) -> pa.Table:
        """Entries as records. Their columns have the types of the values, as those of JsonConverter."""
        config = self._config
        columns = {"value": _column([at_pointer(each, config["http.response.record.pointer"]) for each in items])}
        if config["http.response.record.key.pointer"]:
            columns["key"] = _column([at_pointer(each, config["http.response.record.key.pointer"]) for each in items])
        return pa.table(columns)

    def close(self) -> None:
        self._closed.set()


def _column(values: Sequence[Any]) -> Any:
    texts = pa.array([msgspec.json.encode(each) for each in values], pa.binary())
    return JsonConverter({"schemas.enable": "false"}, is_key=False).decode(texts).column


def _check(config: Mapping[str, str]) -> None:
    """Raises ConfigError for places and offsets that do not fit together."""
    mode = (config.get("http.page.mode") or "none").strip()
    initial, fields = (
        pairs_of(key, [each.strip() for each in (config.get(key) or "").split(",") if each.strip()]) for key in (INITIAL, FIELDS)
    )
    if taken := sorted(fields.keys() & RESERVED):
        raise invalid(FIELDS, taken[0], "the source has an offset of this name itself")
    used = names_of(config.get("http.url") or "") + names_of(config.get("http.body") or "")
    known = {OFFSET + each for each in (*initial, *fields, *([PLACES[mode]] if mode in PLACES else ()))}
    for name in used:
        if name not in known:
            raise invalid("http.url", f"${{{name}}}", f"nothing gives this offset a value: {INITIAL}, {FIELDS} or http.page.mode")
    if mode in PLACES and OFFSET + PLACES[mode] not in used:
        raise invalid("http.page.mode", mode, f"neither http.url nor http.body has ${{{OFFSET}{PLACES[mode]}}}")
    if mode == "page" and not fields and (config.get(SIZE) or "0").strip() == "0":
        raise invalid(
            SIZE,
            0,
            f"it is needed for the mode page, because a page that is not full may have more later, unless {FIELDS} is set",
        )
    if mode == "cursor" and not config.get("http.next.page.pointer"):
        raise invalid("http.page.mode", mode, "http.next.page.pointer is needed")
