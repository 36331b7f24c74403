"""Config keys of Debezium that change what a capture reads or writes, and that the captures here do not have.

Debezium's other keys that are not known here have no effect, as in Kafka Connect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.connect.config_types import invalid

HARMLESS = ("", "false")  # values of a key that ask for nothing
KEYS: Mapping[str, str] = {
    "column.include.list": "list the other columns in column.exclude.list",
    "message.key.columns": "the key of a record is the primary key; the transform ValueToKey makes another one",
    "provide.transaction.metadata": "there are no records of transactions; source has the id of each",
    "read.only": "incremental snapshots write into signal.data.collection",
    "slot.failover": "a slot is not copied to standby servers",
    "snapshot.include.collection.list": "a snapshot has all captured tables",
    "snapshot.select.statement.overrides": "a snapshot has all rows",
}
PREFIXES: Mapping[str, str] = {
    "column.mask.": "the transform MaskField hides values",
    "column.truncate.": "values keep their lengths",
}


def unsupported(config: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """The errors of such keys in a config, by key."""
    found = dict[str, Sequence[str]]()
    for name, value in config.items():
        reason = KEYS.get(name) or next((each for prefix, each in PREFIXES.items() if name.startswith(prefix)), None)
        if reason is not None and value.strip().lower() not in HARMLESS:
            found[name] = [str(invalid(name, value, f"This key is not supported: {reason}"))]
    return found
