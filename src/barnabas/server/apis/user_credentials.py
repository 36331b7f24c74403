"""Shows the SCRAM credentials of all users, for a mirror link that copies them to another cluster. Kafka shows none.

A credential is no password, but its hashes help to guess one, and to pretend to be the server. So DescribeConfigs of this resource type
answers only:

Rules
  1. There is an authorizer, and the caller is named in super.users: nobody else has all rights on the cluster, whatever ACLs say.
  2. The caller has logged in itself: neither as User:ANONYMOUS nor with a delegation token.
  3. The connection is encrypted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.metadata.declared import Kind
from barnabas.config.config_key import ConfigType
from barnabas.config.describe import ConfigEntry, Source
from barnabas.config.listeners import has_tls
from barnabas.errors import ErrorCode, KafkaError
from barnabas.security.users import SECRET

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.authorization.access_control import AccessControl
    from barnabas.server.requests import RequestContext

ANONYMOUS = "User:ANONYMOUS"


class CredentialsBroker(Protocol):
    """The parts of the broker that this module uses."""

    config: BrokerConfig
    authorizer: AccessControl | None

    @property
    def metadata(self) -> MetadataImage: ...


def credential_entries(broker: CredentialsBroker, context: RequestContext) -> list[ConfigEntry]:
    """An entry for each user, with the stored fields as JSON; raises KafkaError(CLUSTER_AUTHORIZATION_FAILED) as the rules say."""
    _check(broker, context)
    return [
        ConfigEntry(user, json.dumps(fields), Source.LINK, True, False, ConfigType.STRING, (), "")
        for user, fields in broker.metadata.declarations(Kind.USER).items()
        if user != SECRET
    ]


def _check(broker: CredentialsBroker, context: RequestContext) -> None:
    authorizer = broker.authorizer
    if authorizer is None:
        raise _refused("a broker without authorizer.class.name shows no credentials")
    if context.principal == ANONYMOUS or not authorizer.is_super_user(context):
        raise _refused("only a user of super.users gets credentials")
    if context.by_token:
        raise _refused("a delegation token gets no credentials")
    protocols = {endpoint.listener: endpoint.protocol for endpoint in broker.config.listener_endpoints}
    if not has_tls(protocols.get(context.listener, "")):
        raise _refused("credentials go over a listener with TLS only")


def _refused(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
