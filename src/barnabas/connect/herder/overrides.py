"""What configs of connectors may say of clients: `connector.client.config.override.policy` of the workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.errors import ConfigError

POLICY, ALL, PRINCIPAL = "connector.client.config.override.policy", "All", "Principal"
_PREFIXES = ("producer.override.", "consumer.override.", "admin.override.")
_OF_PRINCIPALS = frozenset({"security.protocol", "sasl.jaas.config", "sasl.mechanism"})
_ALLOWED: Mapping[str, frozenset[str]] = {"None": frozenset(), PRINCIPAL: _OF_PRINCIPALS}
_CLASS = "ConnectorClientConfigOverridePolicy"  # a policy may be named by its class


def policy_of(worker: Mapping[str, str]) -> str:
    """The name of the policy. Raises ConfigError of `barnabas.errors` for one that there is not."""
    text = worker.get(POLICY, ALL).strip()
    name = text.rpartition(".")[2].removesuffix(_CLASS)
    if name != ALL and name not in _ALLOWED:
        raise ConfigError(POLICY, text, f"one of {ALL}, {', '.join(_ALLOWED)}")
    return name


def override_errors(keys: Iterable[str], worker: Mapping[str, str]) -> dict[str, list[str]]:
    """The keys of a config that the policy of the workers forbids, with the errors about them."""
    policy = policy_of(worker)
    if policy == ALL:
        return {}
    found = {}
    for key in keys:
        prefix = next((each for each in _PREFIXES if key.startswith(each)), None)
        if prefix is not None and (name := key.removeprefix(prefix)) not in _ALLOWED[policy]:
            found[key] = [f"The '{policy}' policy does not allow '{name}' to be overridden in the connector configuration."]
    return found
