"""Confluent's sink of HTTP, by its class name and keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from barnabas.connect.api import Config
from barnabas.connect.config_def import NO_DEFAULT, ConfigDef
from barnabas.connect.config_types import Importance, Type, invalid
from barnabas.connect.errors import BadRecords
from barnabas.connect.java_patterns import java_pattern, java_replacement
from barnabas.connect.plugins.dialects.translation import Row, Texts, TranslatedSink, defined, idle, refusing
from barnabas.connect.plugins.http.settings import CODES, URL
from barnabas.connect.plugins.http.sink import HttpSink
from barnabas.connect.validators import Range, ValidString, one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
HEADERS, SEPARATOR = "headers", "header.separator"
PATTERNS, REPLACEMENTS, BETWEEN = "regex.patterns", "regex.replacements", "regex.separator"
KEYS = (
    Row("http.api.url", Type.STRING, NO_DEFAULT, HIGH, "The URL; it may have ${topic} and ${key}.", URL),
    Row("request.method", Type.STRING, "POST", HIGH, "The method.", ValidString(("POST", "PUT", "PATCH"), is_case_sensitive=False)),
    Row(
        "behavior.on.null.values", Type.STRING, "ignore", LOW,
        "What becomes of a record without a value: it is left out, DELETE is sent to the URL, or it is an error.",
        one_of("ignore", "delete", "log", "fail"),
    ),
    Row(
        "behavior.on.error", Type.STRING, "fail", LOW,
        "What becomes of a record that the server refuses: it is an error, by errors.tolerance, or it is left out.",
        one_of("fail", "log", "ignore"),
    ),
    Row(HEADERS, Type.STRING, "", HIGH, "Headers of each request: Accept: text/plain|X-Team: a."),
    Row(SEPARATOR, Type.STRING, "|", HIGH, "What separates headers."),
    Row("request.body.format", Type.STRING, "string", MEDIUM, "The form of the values: their text, or JSON.", one_of("string", "json")),
    Row("batch.max.size", Type.INT, 1, HIGH, "The records of a request.", Range(1)),
    Row("batch.prefix", Type.STRING, "", HIGH, "The begin of a body of the format string."),
    Row("batch.suffix", Type.STRING, "", HIGH, "Its end."),
    Row("batch.separator", Type.STRING, ",", HIGH, "What is between its records."),
    Row("batch.json.as.array", Type.BOOLEAN, False, HIGH, "Whether the body of the format json is an array for one record too."),
    Row(PATTERNS, Type.STRING, "", MEDIUM, "Regular expressions that are replaced in texts of values."),
    Row(REPLACEMENTS, Type.STRING, "", MEDIUM, "What replaces each of them; it may have $1."),
    Row(BETWEEN, Type.STRING, "~", MEDIUM, "What separates patterns, and replacements."),
    Row("max.retries", Type.INT, 10, MEDIUM, "How often a request is tried again.", Range(0)),
    Row(
        "retry.backoff.ms", Type.INT, 3000, MEDIUM,
        "The pause before the second try; each further one is twice as long, up to a minute.", Range(1),
    ),
    Row("retry.on.status.codes", Type.LIST, "400-", MEDIUM, "The codes of answers after which a request is tried again.", CODES),
    Row("http.request.timeout.ms", Type.INT, 30_000, LOW, "How long an answer is waited for.", Range(1)),
    Row(
        "auth.type", Type.STRING, "NONE", HIGH, "How the connector logs in: NONE, BASIC, or OAUTH2 with client credentials.",
        ValidString(("NONE", "BASIC", "OAUTH2"), is_case_sensitive=False),
    ),
    Row("connection.user", Type.STRING, None, HIGH, "The user of BASIC."),
    Row("connection.password", Type.PASSWORD, None, HIGH, "The password of BASIC."),
    Row("oauth2.token.url", Type.STRING, None, HIGH, "Where OAUTH2 gets its token.", URL),
    Row("oauth2.client.id", Type.STRING, None, HIGH, "The client of OAUTH2."),
    Row("oauth2.client.secret", Type.PASSWORD, None, HIGH, "The secret of OAUTH2."),
    Row("oauth2.client.scope", Type.STRING, "any", MEDIUM, "The scope of OAUTH2."),
    Row("oauth2.token.property", Type.STRING, "access_token", MEDIUM, "The property of the answer that has the token."),
    Row(
        "ssl.ca.location", Type.STRING, None, LOW,
        "A key of barnabas: a file with certificates of authorities, in place of the system's.",
    ),
)  # fmt: skip
IDLE = {  # reasons, with the keys that do nothing
    "there are no records of answers; errors.deadletterqueue.topic.name gets the records that are refused": (
        "reporter.bootstrap.servers", "reporter.result.topic.name", "reporter.result.topic.replication.factor",
        "reporter.result.topic.partitions", "reporter.error.topic.name", "reporter.error.topic.replication.factor",
        "reporter.error.topic.partitions", "report.errors.as",
    ),
    "no license is needed": (
        "confluent.license", "confluent.topic", "confluent.topic.bootstrap.servers", "confluent.topic.replication.factor",
    ),
    "http.request.timeout.ms holds for connecting too": ("http.connect.timeout.ms",),
    "https in the URL says it": ("ssl.enabled", "https.ssl.protocol"),
}  # fmt: skip
REFUSED = {
    "http.proxy.host": "requests go to the server itself",
    "https.ssl.truststore.location": "ssl.ca.location takes a file of certificates in PEM",
    "https.ssl.keystore.location": "there is no log-in by a certificate",
    "batch.key.pattern": "a request has records of one topic",
    "oauth2.client.headers": "the request for the token has no further headers",
}


def _definition() -> ConfigDef:
    made = defined(ConfigDef(), *KEYS)
    for reason, names in IDLE.items():
        idle(made, reason, *names)
    return refusing(made, REFUSED, {"batch.key.pattern": "someKey"})


class ConfluentHttpSink(TranslatedSink, HttpSink):
    """io.confluent.connect.http.HttpSinkConnector."""

    config = _definition()
    behind = HttpSink.config
    families = ("reporter.", "confluent.topic.")
    refused: ClassVar[Mapping[str, str]] = REFUSED
    renamed: ClassVar[Mapping[str, str]] = {
        "http.api.url": "http.url", "request.method": "http.method", "http.request.timeout.ms": "http.timeout.ms",
        HEADERS: "http.headers",
    }  # fmt: skip

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        found = super().translated(given)
        found["http.method"] = found["http.method"].upper()
        found["http.headers"] = _headers(given.get(HEADERS, ""), given[SEPARATOR] or "|")
        if given["behavior.on.null.values"] == "log":
            found["behavior.on.null.values"] = "ignore"
        if given["request.body.format"] == "json":
            for key in ("batch.prefix", "batch.suffix", "batch.separator"):
                del found[key]
        _replacements(given)
        return found

    def open(self, config: Config) -> None:
        self._replacements = _replacements(config)
        self._ignores = config["behavior.on.error"] != "fail"
        super().open(config)

    def bodies(self, values: Any) -> list[Any]:
        found = super().bodies(values)
        if not self._replacements:
            return found
        return [None if each is None else self._replaced(each) for each in found]

    def _replaced(self, body: bytes) -> bytes:
        text = body.decode(errors="replace")
        for pattern, replacement in self._replacements:
            text = pattern.sub(replacement, text)
        return text.encode()

    def refuse(self, bad: Mapping[int, str]) -> None:
        if not self._ignores:
            raise BadRecords(bad)
        self.tell_refused(bad)


def _headers(text: str, separator: str) -> str:
    """Headers as the sink behind has them. Raises ConfigError."""
    if separator != "|" and "|" in text:
        raise invalid(HEADERS, text, "a header cannot have |, which separates headers here")
    return text.replace(separator, "|")


def _replacements(given: Mapping[str, Any]) -> Sequence[tuple[re.Pattern[str], str]]:
    """Patterns with what replaces them, as Python has them. Raises ConfigError."""
    patterns, replacements = (
        given[key].split(given[BETWEEN] or "~") if given.get(key) else [] for key in (PATTERNS, REPLACEMENTS)
    )
    if len(patterns) != len(replacements):
        raise invalid(REPLACEMENTS, given.get(REPLACEMENTS, ""), f"there are {len(patterns)} {PATTERNS}")
    try:
        compiled = [java_pattern(each) for each in patterns]
    except re.error as error:
        raise invalid(PATTERNS, given[PATTERNS], str(error)) from None
    try:
        return [(pattern, java_replacement(pattern, to)) for pattern, to in zip(compiled, replacements, strict=True)]
    except re.error as error:
        raise invalid(REPLACEMENTS, given[REPLACEMENTS], str(error)) from None
