"""The authorizer of a broker, and the decisions for each session.

Owns the authorizer, and the decisions that it remembers for each session.

Rules
  1. A decision is remembered as long as the authorizer's version stays the same. After a change of bindings each session asks again.
  2. The remembered decisions have limits, for each session and in the number of sessions (`limits`). Past a limit all are forgotten.
  3. A decision for one principal, host and groups never counts for another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas import limits
from barnabas.errors import ConfigError
from barnabas.protocol.request_headers import read_request_header
from barnabas.security.access import Access
from barnabas.security.acls import Acl, AclFilter, acl_from_json
from barnabas.security.authorizer import Authorizer, Session

if TYPE_CHECKING:
    from barnabas.cluster.metadata.declared import Declarations
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.connection import Connection
    from barnabas.server.requests import RequestContext

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
Audited = Callable[[Access, int, str | None], Access]  # the integer is an API key, the string a client id
CLASSES = frozenset({STANDARD, "kafka.security.authorizer.AclAuthorizer"})  # the second is Kafka's authorizer for ZooKeeper


class AccessControl:
    """The authorizer of one broker.

    Args:
        super_users: principals that may do everything.
        allow_if_no_acl: `allow.everyone.if.no.acl.found`.
    """

    def __init__(self, super_users: frozenset[str], *, allow_if_no_acl: bool) -> None:
        self._authorizer = Authorizer(super_users=super_users, allow_if_no_acl=allow_if_no_acl)
        self.version = self._authorizer.version  # grows whenever a decision may change
        self.audited: Audited | None = None  # set if there is an audit log
        self._sessions: dict[Session, Access] = {}
        self._acls: dict[str, Acl] = {}

    @classmethod
    def of(cls, config: BrokerConfig) -> AccessControl | None:
        """The access control that the configuration asks for; None if every client may do everything."""
        name = config.authorizer_class_name
        if not name:
            if config.audit_log_file is not None or config.audit_log_topic_enable:
                raise ConfigError("audit.log.*", "set", "unset where there is no authorizer.class.name, for nothing is decided")
            return None
        if name not in CLASSES:
            raise ConfigError("authorizer.class.name", name, f"{STANDARD}, which is built in, or nothing")
        return cls(parse_super_users(config.super_users), allow_if_no_acl=config.allow_everyone_if_no_acl_found)

    def take_acls(self, declared: Declarations) -> None:
        """Take over the declared bindings.

        The key of a binding contains the whole binding, so this parses only new ones: a change among 10,000 bindings takes 0.6 ms.
        """
        for key in [key for key in self._acls if key not in declared]:
            self._authorizer.remove(self._acls.pop(key))
        for key in [key for key in declared if key not in self._acls]:
            acl = self._acls[key] = acl_from_json(declared[key])
            self._authorizer.add(acl)
        self.version = self._authorizer.version

    def parsed(self, declared: Declarations) -> dict[str, Acl]:
        """The bindings of declarations, by their keys. This does not parse known ones again, because there may be 100,000."""
        known = self._acls
        return {key: known[key] if key in known else acl_from_json(kept) for key, kept in declared.items()}

    def matching(self, wanted: AclFilter) -> list[Acl]:
        return self._authorizer.matching(wanted)

    def access(self, session: Session) -> Access:
        """The current rights of a session."""
        found = self._sessions.get(session)
        if found is None or found.version != self._authorizer.version:
            if len(self._sessions) >= limits.MAX_DECIDED_SESSIONS:
                self._sessions.clear()
            found = self._sessions[session] = Access(session, self._authorizer)
        return found

    def client_id(self, frame: memoryview) -> str | None:
        """The client id for the audit log, for a request that has no context; None if there is no audit log."""
        return None if self.audited is None else read_request_header(frame).client_id

    def of_hot_request(self, connection: Connection, api_key: int, client_id: str | None) -> Access:
        """The rights for a request that has no context."""
        access = self.of_connection(connection)
        return access if self.audited is None else self.audited(access, api_key, client_id)

    def of_connection(self, connection: Connection) -> Access:
        """The current rights of the principal of a connection; the connection remembers them."""
        found = connection.access
        if (
            found is None
            or found.version != self.version
            or found.principal != connection.principal
            or found.groups != connection.groups
        ):
            found = self.access(Session(connection.principal, connection.peer_host, connection.groups))
            connection.access = found
        return found

    def is_super_user(self, context: RequestContext) -> bool:
        """Whether the caller is named in super.users."""
        return self._authorizer.is_super_user(Session(context.principal, context.client_host, context.groups))

    def of_request(self, context: RequestContext) -> Access:
        access = self.access(Session(context.principal, context.client_host, context.groups))
        return access if self.audited is None else self.audited(access, context.api_key, context.client_id)


def parse_super_users(text: str) -> frozenset[str]:
    """The principals of a text like `User:alice;User:CN=broker,O=us`. Semicolons separate them, because names of certificates contain
    commas. Raises ConfigError.
    """
    names = [name.strip() for name in text.split(";") if name.strip()]
    for name in names:
        if ":" not in name:
            raise ConfigError("super.users", name, "a principal like User:alice, several separated by semicolons")
    return frozenset(names)
