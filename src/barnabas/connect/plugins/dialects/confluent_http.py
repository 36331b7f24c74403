"""Confluent's sink of HTTP, by its class name and keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type, invalid
from barnabas.connect.errors import BadRecords
from barnabas.connect.plugins.dialects.translation import Texts, TranslatedSink, idle, refusing
from barnabas.connect.plugins.http.settings import CODES, URL
from barnabas.connect.plugins.http.sink import HttpSink
from barnabas.connect.validators import Range, ValidString, one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
PATTERNS, REPLACEMENTS, BETWEEN = "regex.patterns", "regex.replacements", "regex.separator"
REPORTER = "there are no records of answers; errors.deadletterqueue.topic.name gets the records that are refused"
LICENSE = "no license is needed"
REFUSED = {
    "http.proxy.host": "requests go to the server itself",
    "https.ssl.truststore.location": "ssl.ca.location takes a file of certificates in PEM",
    "https.ssl.keystore.location": "there is no log-in by a certificate",
    "batch.key.pattern": "a request has records of one topic",
    "oauth2.client.headers": "the request for the token has no further headers",
}
_GROUP = re.compile(r"\$(\d)")


def _definition() -> ConfigDef:
    made = (
        ConfigDef()
        .define("http.api.url", Type.STRING, importance=HIGH, validator=URL, documentation="The URL; it may have ${topic} and ${key}.")
        .define(
            "request.method", Type.STRING, "POST", importance=HIGH,
            validator=ValidString(("POST", "PUT", "PATCH"), is_case_sensitive=False), documentation="The method.",
        )
        .define(
            "behavior.on.null.values", Type.STRING, "ignore", importance=LOW, validator=one_of("ignore", "delete", "log", "fail"),
            documentation="What becomes of a record without a value: it is left out, DELETE is sent to the URL, or it is an error.",
        )
        .define(
            "behavior.on.error", Type.STRING, "fail", importance=LOW, validator=one_of("fail", "log", "ignore"),
            documentation="What becomes of a record that the server refuses: it is an error, by errors.tolerance, or it is left out.",
        )
        .define("headers", Type.STRING, "", importance=HIGH, documentation="Headers of each request: Accept: text/plain|X-Team: a.")
        .define("header.separator", Type.STRING, "|", importance=HIGH, documentation="What separates headers.")
        .define("request.body.format", Type.STRING, "string", importance=MEDIUM, validator=one_of("string", "json"),
                documentation="The form of the values: their text, or JSON.")
        .define("batch.max.size", Type.INT, 1, importance=HIGH, validator=Range(1), documentation="The records of a request.")
        .define("batch.prefix", Type.STRING, "", importance=HIGH, documentation="The begin of a body of the format string.")
        .define("batch.suffix", Type.STRING, "", importance=HIGH, documentation="Its end.")
        .define("batch.separator", Type.STRING, ",", importance=HIGH, documentation="What is between its records.")
        .define("batch.json.as.array", Type.BOOLEAN, False, importance=HIGH,
                documentation="Whether the body of the format json is an array for one record too.")
        .define(PATTERNS, Type.STRING, "", importance=MEDIUM, documentation="Regular expressions that are replaced in texts of values.")
        .define(REPLACEMENTS, Type.STRING, "", importance=MEDIUM, documentation="What replaces each of them; it may have $1.")
        .define(BETWEEN, Type.STRING, "~", importance=MEDIUM, documentation="What separates patterns, and replacements.")
        .define("max.retries", Type.INT, 10, importance=MEDIUM, validator=Range(0), documentation="How often a request is tried again.")
        .define("retry.backoff.ms", Type.INT, 3000, importance=MEDIUM, validator=Range(1),
                documentation="The pause before the second try; each further one is twice as long, up to a minute.")
        .define("retry.on.status.codes", Type.LIST, "400-", importance=MEDIUM, validator=CODES,
                documentation="The codes of answers after which a request is tried again.")
        .define("http.request.timeout.ms", Type.INT, 30_000, importance=LOW, validator=Range(1),
                documentation="How long an answer is waited for.")
        .define("auth.type", Type.STRING, "NONE", importance=HIGH,
                validator=ValidString(("NONE", "BASIC", "OAUTH2"), is_case_sensitive=False),
                documentation="How the connector logs in: NONE, BASIC, or OAUTH2 with client credentials.")
        .define("connection.user", Type.STRING, None, importance=HIGH, documentation="The user of BASIC.")
        .define("connection.password", Type.PASSWORD, None, importance=HIGH, documentation="The password of BASIC.")
        .define("oauth2.token.url", Type.STRING, None, importance=HIGH, validator=URL, documentation="Where OAUTH2 gets its token.")
        .define("oauth2.client.id", Type.STRING, None, importance=HIGH, documentation="The client of OAUTH2.")
        .define("oauth2.client.secret", Type.PASSWORD, None, importance=HIGH, documentation="The secret of OAUTH2.")
        .define("oauth2.client.scope", Type.STRING, "any", importance=MEDIUM, documentation="The scope of OAUTH2.")
        .define("oauth2.token.property", Type.STRING, "access_token", importance=MEDIUM,
                documentation="The property of the answer that has the token.")
        .define("ssl.ca.location", Type.STRING, None, importance=LOW,
                documentation="A key of barnabas: a file with certificates of authorities, in place of the system's.")
    )  # fmt: skip
    idle(
        made, REPORTER, "reporter.bootstrap.servers", "reporter.result.topic.name", "reporter.result.topic.replication.factor",
        "reporter.result.topic.partitions", "reporter.error.topic.name", "reporter.error.topic.replication.factor",
        "reporter.error.topic.partitions", "report.errors.as",
    )  # fmt: skip
    idle(
        made, LICENSE, "confluent.license", "confluent.topic", "confluent.topic.bootstrap.servers",
        "confluent.topic.replication.factor",
    )  # fmt: skip
    idle(made, "http.request.timeout.ms holds for connecting too", "http.connect.timeout.ms")
    idle(made, "https in the URL says it", "ssl.enabled", "https.ssl.protocol")
    return refusing(made, REFUSED, {"batch.key.pattern": "someKey"})


class ConfluentHttpSink(TranslatedSink, HttpSink):
    """io.confluent.connect.http.HttpSinkConnector."""

    config = _definition()
    behind = HttpSink.config
    families = ("reporter.", "confluent.topic.")
    refused: ClassVar[Mapping[str, str]] = REFUSED
    renamed: ClassVar[Mapping[str, str]] = {
        "http.api.url": "http.url", "request.method": "http.method", "http.request.timeout.ms": "http.timeout.ms",
        "headers": "http.headers",
    }  # fmt: skip

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        found = super().translated(given)
        found["http.method"] = found["http.method"].upper()
        found["http.headers"] = "|".join(given.get("headers", "").split(given["header.separator"] or "|"))
        if given["behavior.on.null.values"] == "log":
            found["behavior.on.null.values"] = "ignore"
        if given["request.body.format"] == "json":
            for key in ("batch.prefix", "batch.suffix", "batch.separator"):
                del found[key]
        _replacements(given)
        return found

    def open(self, config: Config) -> None:
        self._replacements = _replacements(self.own(config) | {key: config[key] for key in (PATTERNS, REPLACEMENTS, BETWEEN)})
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


def _replacements(given: Mapping[str, str]) -> Sequence[tuple[re.Pattern[str], str]]:
    """Patterns with what replaces them, as Python has them. Raises ConfigError."""
    patterns, replacements = (
        given[key].split(given[BETWEEN] or "~") if given.get(key) else [] for key in (PATTERNS, REPLACEMENTS)
    )
    if len(patterns) != len(replacements):
        raise invalid(REPLACEMENTS, given.get(REPLACEMENTS, ""), f"there are {len(patterns)} {PATTERNS}")
    try:
        return [(re.compile(each), _GROUP.sub(r"\\g<\1>", to)) for each, to in zip(patterns, replacements, strict=True)]
    except re.error as error:
        raise ConfigError(f"Invalid value {given[PATTERNS]} for configuration {PATTERNS}: {error}") from None
