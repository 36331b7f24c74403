"""The broker keys that give the default of a topic's or a group's setting, and groups of broker keys that set the same value in
different units."""

from __future__ import annotations

from barnabas.config import definitions

HOURS_AND_MS = {
    "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
SAME_SETTING = {name: names for names in HOURS_AND_MS.values() for name in names if name != "log.flush.scheduler.interval.ms"}

BROKER_KEY_OF_TOPIC = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
OF_MECHANISMS = (  # these keys have a SASL mechanism between the listener's prefix and the key
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)


def broker_key_of_group(name: str) -> str:
    """The broker key that is the default of a group's setting; the setting itself if there is none."""
    broker_key = f"group.{name}"
    return broker_key if broker_key in definitions.BROKER else name


def broker_synonyms(name: str) -> tuple[str, ...]:
    """The keys that set the same value as `name`, the strongest first."""
    if name.startswith("listener.name."):
        base = name.split(".", 3)[3]
        return (name, next((key for key in OF_MECHANISMS if base.endswith(f".{key}")), base))
    return SAME_SETTING.get(name, (name,))
