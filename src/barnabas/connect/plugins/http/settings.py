"""The config keys that the source and the sink of HTTP have in common. Those that Confluent's HTTP connectors have are named as there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type, invalid
from barnabas.connect.plugins.http.client import Client
from barnabas.connect.validators import Checked, Range, ValidString

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
AUTH = {
    "NONE": (), "BASIC": ("connection.user", "connection.password"), "BEARER": ("bearer.token",),
    "OAUTH2": ("oauth2.token.url", "oauth2.client.id", "oauth2.client.secret"),
}  # fmt: skip
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_CODES = re.compile(r"(\d{3})(-(\d{3})?)?")


def _url(name: str, value: Any) -> None:
    if value is not None and (urlsplit(value).scheme not in {"http", "https"} or not urlsplit(value).netloc):
        raise invalid(name, value, "a URL that begins with http:// or https://")


def codes_of(name: str, value: Sequence[str]) -> frozenset[int]:
    """Codes of answers, such as `429,500-599` or `500-`. Raises ConfigError."""
    found: set[int] = set()
    for each in value:
        match = _CODES.fullmatch(each)
        if match is None:
            raise invalid(name, each, "a code such as 429, or a range such as 500-599 or 500-")
        first = int(match[1])
        found |= set(range(first, int(match[3] or 599) + 1)) if match[2] else {first}
    return frozenset(found)


def headers_of(name: str, value: str) -> dict[str, str]:
    """Headers as `Accept: text/plain|X-Key: 1`. Raises ConfigError."""
    found = {}
    for each in filter(None, (value or "").split("|")):
        title, colon, text = each.partition(":")
        if not colon or not title.strip() or any(char in text for char in "\r\n"):
            raise invalid(name, each, "a header such as Accept: application/json; | separates several")
        found[title.strip()] = text.strip()
    return found


def _headers(name: str, value: Any) -> None:
    headers_of(name, value)


def _codes(name: str, value: Any) -> None:
    codes_of(name, value or ())


URL, HEADERS, CODES = Checked(_url, "a URL"), Checked(_headers, "headers"), Checked(_codes, "codes")


def with_common(definition: ConfigDef) -> ConfigDef:
    """Add the keys."""
    made = (
        definition.define(
            "http.headers", Type.STRING, "", importance=MEDIUM, validator=HEADERS,
            documentation="Headers of each request, such as Accept: application/json|X-Team: a.",
        )
        .define(
            "http.timeout.ms", Type.INT, 30_000, importance=LOW, validator=Range(1), documentation="How long an answer is waited for.",
        )
        .define(
            "requests.per.second", Type.DOUBLE, 0.0, importance=LOW, validator=Range(0),
            documentation="The requests in a second at most. 0: any number.",
        )
        .define(
            "max.retries", Type.INT, 10, importance=MEDIUM, validator=Range(-1),
            documentation="How often a request is tried again. -1: without end.",
        )
        .define(
            "retry.backoff.ms", Type.INT, 1000, importance=MEDIUM, validator=Range(1),
            documentation="The pause before the second try; each further one is twice as long, up to a minute.",
        )
        .define(
            "retry.on.status.codes", Type.LIST, "408,425,429,500-599", importance=MEDIUM, validator=CODES,
            documentation="The codes of answers after which a request is tried again. Retry-After is honoured.",
        )
        .define(
            "auth.type", Type.STRING, "NONE", importance=HIGH, validator=ValidString(tuple(AUTH), is_case_sensitive=False),
            documentation="How the connector logs in: NONE, BASIC, BEARER, or OAUTH2 with client credentials.",
        )
        .define(
            "ssl.ca.location", Type.STRING, None, importance=LOW,
            documentation="A file with certificates of authorities, in place of the system's.",
        )
    )  # fmt: skip
    for name, says in (
        ("connection.user", "The user of BASIC."), ("oauth2.token.url", "Where OAUTH2 gets its token."),
        ("oauth2.client.id", "The client of OAUTH2."), ("oauth2.client.scope", "The scope of OAUTH2."),
    ):  # fmt: skip
        made.define(
            name, Type.STRING, None, importance=MEDIUM, documentation=says, validator=URL if name.endswith("url") else None
        )
    made.define(
        "oauth2.token.property",
        Type.STRING,
        "access_token",
        importance=LOW,
        documentation="The property of the answer that has the token.",
    )
    for name, says in (
        ("connection.password", "The password of BASIC."), ("bearer.token", "The token of BEARER."),
        ("oauth2.client.secret", "The secret of OAUTH2."),
    ):  # fmt: skip
        made.define(name, Type.PASSWORD, None, importance=MEDIUM, documentation=says)
    return made


def errors(config: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """What does not fit together, by key."""
    kind = (config.get("auth.type") or "NONE").strip().upper()
    return {key: [f"{key} is needed if auth.type is {kind}"] for key in AUTH.get(kind, ()) if not (config.get(key) or "").strip()}


def client_of(config: Config, *, connections: int = 1) -> Client:
    """The client of a task."""
    codes = codes_of("retry.on.status.codes", config["retry.on.status.codes"])
    return Client(config, codes, headers_of("http.headers", config["http.headers"]), connections)
