"""The principal of a connection: Kafka's `KafkaPrincipalBuilder`.

A builder is called once for a connection: when it opens (PLAINTEXT), after the handshake (SSL), or at each log-in (SASL). It
runs on the broker's event loop. All other clients wait for it, so it must not block.

Brokers of a cluster forward a principal as its type, name and groups. Kafka's `KafkaPrincipalSerde` has no counterpart, because
a `Principal` has nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.plugins.base import Plugin


@dataclass(frozen=True)
class Principal:
    """The principal of a request.

    Args:
        name: for example alice.
        kind: the type of the principal; access control lists name `kind:name`.
        groups: the names of its groups; access control lists name them as `Group:name`.
    """

    name: str
    kind: str = "User"
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class AuthenticationContext:
    """The properties of a connection.

    Args:
        listener_name: the listener that accepted it.
        client_address: the client's IP address.
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
    """

    listener_name: str
    client_address: str
    security_protocol: str


@dataclass(frozen=True)
class PlaintextContext(AuthenticationContext):
    """The context of a connection without authentication."""


@dataclass(frozen=True)
class TlsContext(AuthenticationContext):
    """The context of a TLS connection without SASL.

    Args:
        certificate: the client's certificate in DER; None if it presented none.
        subject: the certificate's distinguished name, as Kafka writes it; "" without a certificate.
        default: the principal that the connection would have without a builder, by `ssl.principal.mapping.rules`; None if no
            rule matches.
    """

    certificate: bytes | None
    subject: str
    default: Principal | None


@dataclass(frozen=True)
class SaslContext(AuthenticationContext):
    """The context of a connection that logged in.

    Args:
        mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI.
        authorization_id: the authenticated name; for a delegation token its owner. With GSSAPI the short name from
            `sasl.kerberos.principal.to.local.rules`.
        groups: the groups in the claims of a bearer token.
    """

    mechanism: str
    authorization_id: str
    groups: tuple[str, ...] = ()


class PrincipalBuilder(Plugin):
    """Builds the principal of a connection."""

    def build(self, context: AuthenticationContext) -> Principal:
        """The principal; `context` is a PlaintextContext, TlsContext or SaslContext.

        Raises:
            Exception: the connection is closed, and the broker logs the exception.
        """
        raise NotImplementedError
