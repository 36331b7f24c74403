"""Broker keys of who may do what, and of the audit log; `audit.*` are our own."""

from __future__ import annotations

from barnabas.config.config_key import ConfigKey, InRange, one_of
from barnabas.config.definitions.columns import BOOLEAN, DOUBLE, HIGH, HONOURED, LOW, MEDIUM, READ_ONLY, STRING

# fmt: off
KEYS = (
    ConfigKey("allow.everyone.if.no.acl.found", BOOLEAN, False, None, MEDIUM, READ_ONLY, HONOURED,
              "With an authorizer, whether everybody may use a resource that no access control list is about."),
    ConfigKey("audit.log.data.sample.rate", DOUBLE, 0.01, InRange(0, 1), LOW, READ_ONLY, HONOURED,
              "Our own key: share of the allowed reads, writes and look-ups that the audit log takes; what is refused and what changes "
              "something is always taken."),
    ConfigKey("audit.log.file", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Our own key: file to which the audit log is appended, one JSON object for each line. Needs an authorizer."),
    ConfigKey("audit.log.topic.enable", BOOLEAN, False, None, MEDIUM, READ_ONLY, HONOURED,
              "Our own key: whether the audit log goes to the topic __audit_log, which is made when it is missing. Needs an authorizer."),
    ConfigKey("authorizer.class.name", STRING, "", None, LOW, READ_ONLY, HONOURED,
              "Class that decides who may do what: Kafka's StandardAuthorizer or AclAuthorizer, both of which stand for the one that is "
              "built in. Without one everybody may do everything."),
    ConfigKey("ssl.principal.groups.attribute", STRING, None, one_of("CN", "C", "L", "ST", "STREET", "O", "OU", "UID", "DC"), LOW,
              READ_ONLY, HONOURED,
              "Our own key: attribute of a client certificate's subject whose values are the groups that the principal is in."),
    ConfigKey("super.users", STRING, "", None, HIGH, READ_ONLY, HONOURED,
              "With an authorizer, the principals that may do everything, separated by semicolons; brokers of a cluster must be among "
              "them, or be allowed CLUSTER_ACTION."),
)
# fmt: on
