"""The settings of Kafka Connect's worker files: which work here, under which name, which are refused, and which have no effect and why.

A key that would open what its owner wants closed is refused. A key that only tunes Kafka Connect has no effect, and is named at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from barnabas.connect import catalog
from barnabas.connect.catalog import UnknownPlugin
from barnabas.connect.definitions import CONVERTERS
from barnabas.errors import ConfigError

LISTENERS, PORT, HOST = "listeners", 8083, "127.0.0.1"
OFFSETS_IN_TOPICS = "offsets of sources are in the topic offset.storage.topic, those of sinks in their groups"
EXACTLY_ONCE = "sources always write exactly once, their offsets in the transaction of their records"
WITHOUT_EFFECT = {
    "offset.storage.file.filename": OFFSETS_IN_TOPICS,
    "offset.flush.interval.ms": EXACTLY_ONCE,
    "offset.flush.timeout.ms": EXACTLY_ONCE,
    "exactly.once.source.support": EXACTLY_ONCE,
    "plugin.path": "plug-ins are installed Python packages",
    "plugin.discovery": "plug-ins are installed Python packages",
    "admin.listeners": "/admin is on the listener, and needs a right",
    "task.shutdown.graceful.timeout.ms": "a task has 10 seconds to end",
    "topic.tracking.enable": "topics of connectors are always tracked",
    "topic.tracking.allow.reset": "topics of connectors can always be reset",
    "response.http.headers.config": "answers have no further headers",
    "access.control.allow.origin": "no page of another origin may call the interface",
    "access.control.allow.methods": "no page of another origin may call the interface",
    "metric.reporters": "metrics are at /metrics",
    "auto.include.jmx.reporter": "metrics are at /metrics",
    "client.dns.lookup": "every address of a name is tried",
    "header.converter.plugin.version": "there is one version of each class",
    "key.converter.plugin.version": "there is one version of each class",
    "value.converter.plugin.version": "there is one version of each class",
    **dict.fromkeys(
        (
            "connections.max.idle.ms",
            "receive.buffer.bytes",
            "send.buffer.bytes",
            "reconnect.backoff.ms",
            "reconnect.backoff.max.ms",
            "retry.backoff.ms",
            "retry.backoff.max.ms",
            "socket.connection.setup.timeout.ms",
            "socket.connection.setup.timeout.max.ms",
            "metadata.max.age.ms",
            "metadata.recovery.strategy",
            "metadata.recovery.rebootstrap.trigger.ms",
        ),
        "connections of a worker have times and buffers of their own",
    ),
}
BETWEEN_WORKERS = "workers share nothing but topics"
PREFIXES_WITHOUT_EFFECT = {
    "metrics.": "metrics are at /metrics",
    "admin.": "all clients of a worker connect by its own settings",
    "inter.worker.": BETWEEN_WORKERS,
    "connect.protocol": BETWEEN_WORKERS,
    "rebalance.timeout.ms": BETWEEN_WORKERS,
    "session.timeout.ms": BETWEEN_WORKERS,
    "heartbeat.interval.ms": BETWEEN_WORKERS,
    "worker.": BETWEEN_WORKERS,
    "scheduled.rebalance.max.delay.ms": BETWEEN_WORKERS,
    "internal.key.converter": "Kafka Connect has no such setting any more",
    "internal.value.converter": "Kafka Connect has no such setting any more",
}
REFUSED = {
    "rest.extension.classes": "classes of Java do not run here; authentication.method lets callers log in",
}
RENAMED = {"rest.advertised.host.name": "host.name", "rest.host.name": "host.name"}
TLS = "listeners.https."  # settings of TLS of the listener, which begin with `listener.` here


class WorkerSettings(NamedTuple):
    """What a worker file says.

    Args:
        settings: by their names here.
        listener: the URL of the REST interface; None if the file says nothing of it.
        idle: settings without effect, each with the reason.
    """

    settings: dict[str, str]
    listener: str | None
    idle: dict[str, str]


def worker_settings(given: Mapping[str, str]) -> WorkerSettings:
    """Sort the settings of a worker. Raises ConfigError for one that cannot work."""
    settings, idle = dict[str, str](), dict[str, str]()
    for key, value in given.items():
        reason = _without_effect(key)
        if key in REFUSED and value.strip():
            raise ConfigError(key, value, f"not set here: {REFUSED[key]}")
        if reason is not None or key in REFUSED:
            if value.strip():
                idle[key] = reason or ""
        elif key.startswith(TLS):
            settings[f"listener.{key.removeprefix(TLS)}"] = value
        elif key in RENAMED:
            settings.setdefault(RENAMED[key], value)
        elif key not in {LISTENERS, "rest.port", "rest.advertised.port", "rest.advertised.listener"}:
            settings[key] = value
    for key in CONVERTERS:
        _check_converter(key, settings.get(key))
    listener = _listener(given)
    if listener is not None and listener.startswith("https:"):
        _take_tls(settings)
    return WorkerSettings(settings, listener, idle)


def _take_tls(settings: dict[str, str]) -> None:
    """The TLS of the listener is that of the worker's clients if it has no settings of its own. Raises ConfigError if neither has any."""
    if not any(key.startswith("listener.ssl.") for key in settings):
        settings |= {f"listener.{key}": value for key, value in settings.items() if key.startswith("ssl.")}
    if not any(key.startswith("listener.ssl.keystore.") for key in settings):
        raise ConfigError(f"{TLS}ssl.keystore.location", "", "a key store: a TLS listener needs a certificate")


def _without_effect(key: str) -> str | None:
    if key in WITHOUT_EFFECT:
        return WITHOUT_EFFECT[key]
    return next((reason for prefix, reason in PREFIXES_WITHOUT_EFFECT.items() if key.startswith(prefix)), None)


def _check_converter(key: str, name: str | None) -> None:
    if name is None:
        return
    try:
        catalog.find(name.strip(), [CONVERTERS[key][1]])
    except UnknownPlugin:
        known = ", ".join(each.name for each in catalog.plugins() if each.kind is CONVERTERS[key][1])
        raise ConfigError(key, name, f"one of {known}") from None


def _listener(given: Mapping[str, str]) -> str | None:
    """The URL in `listeners`, as Kafka Connect writes it: `HTTP://:8083` is every address of the machine."""
    text = given.get(LISTENERS, "").strip()
    if not text:
        port = given.get("rest.port", "").strip()
        return f"http://0.0.0.0:{port}" if port else None
    if "," in text:
        raise ConfigError(LISTENERS, text, "one address: a worker has one listener")
    try:
        parts = urlsplit(text)
        host, port_number = parts.hostname or "0.0.0.0", PORT if parts.port is None else parts.port
    except ValueError:
        raise ConfigError(LISTENERS, text, "http://HOST:PORT or https://HOST:PORT") from None
    if parts.scheme not in {"http", "https"}:
        raise ConfigError(LISTENERS, text, "http://HOST:PORT or https://HOST:PORT")
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port_number}"
