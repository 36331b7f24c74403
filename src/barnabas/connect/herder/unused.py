"""Keys of a config that do nothing: those that no definition knows, and those whose definition says so.

Kafka Connect names them in its log. Here the answer to the request that brings them has a header `Warning` for each, and the log a line.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.catalog import Kind
from barnabas.connect.config_def import ConfigKey
from barnabas.connect.config_types import as_text
from barnabas.connect.functions import connector_class
from barnabas.connect.herder.state import Config
from barnabas.connect.herder.validation import definition_of, plugin_of
from barnabas.connect.references import Resolver

WITHOUT_EFFECT = "Without effect"  # how the documentation of such a key begins
# keys that definitions do not list one by one: settings of clients, and those of converters
OF_ALL = ("key.converter.", "value.converter.", "header.converter.")
ADMIN = "admin.override."
OF_KIND = {Kind.SOURCE: ("producer.override.",), Kind.SINK: ("consumer.override.", "producer.override.")}

OF_OTHERS = ("topic",)  # of the batches of a source that name none; the sources here define it


def unused_keys(config: Config, worker: Mapping[str, str], resolver: Resolver) -> dict[str, str]:
    """By key, why it does nothing.

    Args:
        config: one that has no errors.

    Raises:
        HttpError: the class is no longer there.
        Unresolved: a reference cannot be resolved.
    """
    given = resolver.resolved({key: value for key, value in config.items() if value is not None})
    found = plugin_of(config)
    cls = connector_class(found.load())
    known = definition_of(found, given, worker).keys
    families = (*cls.families, *OF_ALL, *OF_KIND.get(found.kind, ()))
    of_others = OF_OTHERS if found.kind is Kind.SOURCE and not cls.__module__.startswith("barnabas.") else ()
    reasons = {}
    for key, value in given.items():
        if key in known:
            if _is_idle(known[key]) and value.strip() != (as_text(known[key].default, known[key].type) or ""):
                reasons[key] = known[key].documentation.split(". ")[0].rstrip(".").removeprefix(WITHOUT_EFFECT).lstrip(":, ")
        elif key.startswith(ADMIN):
            reasons[key] = "topics are created with the client of the task"
        elif not key.startswith(families) and key not in of_others:
            reasons[key] = next(
                (why for begin, why in cls.idle.items() if key.startswith(begin)), f"{found.name} has no such key"
            )
    return reasons


def _is_idle(key: ConfigKey) -> bool:
    return not key.is_required and key.documentation.startswith(WITHOUT_EFFECT)
