"""The objects of users' classes (`barnabas.plugins`): the broker makes them when it starts, and closes them when it stops.

If the broker cannot make an object, it does not start, because such classes protect something.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from barnabas.cluster.membership.policies import Policies
from barnabas.config.broker import BrokerConfig
from barnabas.config.guards import is_python_class
from barnabas.config.sasl import setting
from barnabas.plugins.base import Plugin, close_all, load
from barnabas.plugins.policies import AlterConfigPolicy, CreateTopicPolicy
from barnabas.plugins.principals import PrincipalBuilder
from barnabas.plugins.quotas import ClientQuotaCallback

P = TypeVar("P", bound=Plugin)


class Plugins:
    """The objects of one broker.

    Args:
        config: the settings at the broker's start.
        thread: makes the thread that calls the policies.

    Raises:
        ConfigError: a class cannot be made.
    """

    def __init__(self, config: BrokerConfig, thread: Callable[[], Executor]) -> None:
        self._config = config
        self._made: list[Plugin] = []
        try:
            create_topic = self._load("create.topic.policy.class.name", config.create_topic_policy_class_name, CreateTopicPolicy)
            alter_config = self._load("alter.config.policy.class.name", config.alter_config_policy_class_name, AlterConfigPolicy)
            self.quota_callback = self._load(
                "client.quota.callback.class", config.client_quota_callback_class, ClientQuotaCallback
            )
            self.principal_builders = self._load_builders()
        except BaseException:
            close_all(self._made)
            raise
        has_policies = create_topic is not None or alter_config is not None
        self.policies = Policies(create_topic, alter_config, thread()) if has_policies else None

    def _load_builders(self) -> dict[str, PrincipalBuilder]:
        """The builders by listener. A listener with Kafka's own principal builder has no entry."""
        key, found = "principal.builder.class", {}
        for endpoint in self._config.listener_endpoints:
            builder = self._load(key, str(setting(self._config, key, endpoint.listener)), PrincipalBuilder)
            if builder is not None:
                found[endpoint.listener] = builder
        return found

    def _load(self, key: str, text: str | None, base: type[P]) -> P | None:
        if text is None or not is_python_class(text):  # a class of Kafka, whose work is built in
            return None
        made = load(key, text, base, self._config.given)
        self._made.append(made)
        return made

    def close(self) -> None:
        """Close all objects; blocks until the running call of a policy is done."""
        if self.policies is not None:
            self.policies.close()
        close_all(self._made)
