"""Checks changes of TLS and SASL settings of a running broker before they are made.

Only the broker itself knows whether it can read its own key store. So it checks a change before the change goes to the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.planning.configs import ResourceChange, settings_after
from barnabas.config.combined_checks import check_logins
from barnabas.config.settings import check_broker
from barnabas.errors import ConfigError, ErrorCode, KafkaError
from barnabas.protocol.values import ALL_BROKERS, ResourceType

if TYPE_CHECKING:
    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.membership.standalone_controller import StandaloneController
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.tls.listeners import BrokerTls


class TlsBroker(Protocol):
    """The parts of the broker that this module uses."""

    config: BrokerConfig
    controller: StandaloneController | Member
    tls: BrokerTls

    @property
    def metadata(self) -> MetadataImage: ...


def refuse_security(broker: TlsBroker, change: ResourceChange) -> KafkaError | None:
    """The error if this broker cannot take a change of its own TLS or SASL settings; None if it can, or for a change of other settings."""
    if change.kind != ResourceType.BROKER or change.name != str(broker.config.node_id):
        return None
    if not any("sasl." in name or "ssl." in name for name, _, _ in change.changes):
        return None
    try:
        after = settings_after(change, broker.metadata.config(ResourceType.BROKER, change.name))
        check_broker(after, of_all_brokers=False)
        of_all = broker.metadata.config(ResourceType.BROKER, ALL_BROKERS)
        config = broker.controller.static.with_dynamic({**of_all, **after})
        broker.tls.check(config)
        check_logins(config, config.listener_endpoints)
    except KafkaError as error:
        return error
    except ConfigError as error:
        return KafkaError(ErrorCode.INVALID_REQUEST, str(error))
    return None
