"""A broker's access to ZooKeeper: converts `zookeeper.*` settings to the parameters of the connection.

Rules
  1. The text of a `ZooKeeperAccess` contains no secrets.
  2. Entries are private to the brokers if all brokers log in with the same name. A certificate or a Kerberos name usually
     differs for each broker, so then entries are private only if `zookeeper.set.acl` says so: brokers with different names
     would lock each other out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.client.kerberos import Tickets, tickets_from
from barnabas.config import jaas
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.security.digest_md5 import Login
from barnabas.tls.settings import HIDDEN, PROTOCOLS, TlsSettings

URI = "zookeeper/zk-sasl-md5"  # the service and the host name that every ZooKeeper server uses
LOGIN_MODULE, KERBEROS_MODULE = "DigestLoginModule", "Krb5LoginModule"
SERVICE = "zookeeper"  # the first part of the servers' Kerberos names, if the login context names no other
JAAS_KEY, ACL_KEY = "zookeeper.sasl.jaas.config", "zookeeper.set.acl"


@dataclass(frozen=True, slots=True)
class ZooKeeperAccess:
    """The default is an unencrypted connection without a user.

    Args:
        digest: `user:password` of ZooKeeper's own scheme.
        login: by SASL, with DIGEST-MD5 or GSSAPI.
        is_private: whether only the user that created an entry can use it.
    """

    digest: str | None = field(default=None, repr=False)
    login: Login | Tickets | None = None
    tls: TlsSettings | None = None
    is_private: bool = False


ANYBODY = ZooKeeperAccess()


def access_of(config: BrokerConfig) -> ZooKeeperAccess:
    """The access that the settings describe; raises ConfigError if they contradict each other. Files are read later, when a
    connection is opened."""
    login = _login(config.zookeeper_sasl_jaas_config)
    tls = _tls(config) if config.zookeeper_ssl_client_enable else None
    shares_name = config.zookeeper_digest is not None or isinstance(login, Login)
    is_private = shares_name if config.zookeeper_set_acl is None else config.zookeeper_set_acl
    if is_private and not shares_name and login is None and (tls is None or tls.keystore_location is None):
        raise ConfigError(ACL_KEY, "true", f"true only with zookeeper.digest, {JAAS_KEY} or a certificate of the broker's own")
    return ZooKeeperAccess(config.zookeeper_digest, login, tls, is_private)


def _login(text: str | None) -> Login | Tickets | None:
    if text is None:
        return None
    contexts = jaas.parse(text)
    if len(contexts) != 1 or contexts[0].name not in {LOGIN_MODULE, KERBEROS_MODULE}:
        raise ConfigError(JAAS_KEY, HIDDEN, f"one login context, of {LOGIN_MODULE} or {KERBEROS_MODULE}")
    if contexts[0].name == KERBEROS_MODULE:
        return tickets_from({"serviceName": SERVICE, **contexts[0].options}, JAAS_KEY)
    user, password = (contexts[0].options.get(name) for name in ("username", "password"))
    if not user or not password:
        raise ConfigError(JAAS_KEY, HIDDEN, f"{LOGIN_MODULE} with a username and a password")
    return Login(user, password, URI)


def _tls(config: BrokerConfig) -> TlsSettings:
    named = (config.zookeeper_ssl_protocol,) if config.zookeeper_ssl_protocol else PROTOCOLS
    kind = config.zookeeper_ssl_keystore_type
    return TlsSettings(
        prefix="zookeeper.",
        # The password of a PEM file protects its key. The ZooKeeper settings have no key password, so the
        # type is dropped; a listener would refuse this.
        keystore_type=None if kind is not None and kind.upper() == "PEM" else kind,
        keystore_location=config.zookeeper_ssl_keystore_location,
        keystore_password=config.zookeeper_ssl_keystore_password,
        truststore_type=config.zookeeper_ssl_truststore_type,
        truststore_location=config.zookeeper_ssl_truststore_location,
        truststore_password=config.zookeeper_ssl_truststore_password,
        enabled_protocols=config.zookeeper_ssl_enabled_protocols or named,
        cipher_suites=config.zookeeper_ssl_cipher_suites,
        check_host_name=bool(config.zookeeper_ssl_endpoint_identification_algorithm),
    )
