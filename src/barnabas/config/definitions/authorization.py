"""Broker keys of authorization and of the audit log; `audit.*` are our own."""

from __future__ import annotations

from barnabas.config.config_key import ConfigKey, InRange, one_of
from barnabas.config.definitions.columns import BOOLEAN, DOUBLE, HIGH, HONOURED, LOW, MEDIUM, READ_ONLY, STRING

# fmt: off
KEYS = (
    ConfigKey("allow.everyone.if.no.acl.found", BOOLEAN, False, None, MEDIUM, READ_ONLY, HONOURED,
              "With an authorizer, whether everybody may use a resource without any access control list."),
    ConfigKey("audit.log.data.sample.rate", DOUBLE, 0.01, InRange(0, 1), LOW, READ_ONLY, HONOURED,
              "Our own key: share of allowed reads, writes and look-ups in the audit log. Refused operations and changes are always "
              "logged."),
    ConfigKey("audit.log.file", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Our own key: file to which the audit log is appended, one JSON object for each line. Needs an authorizer."),
    ConfigKey("audit.log.topic.enable", BOOLEAN, False, None, MEDIUM, READ_ONLY, HONOURED,
              "Our own key: whether the audit log goes to the topic __audit_log, which is created if missing. Needs an authorizer."),
    ConfigKey("authorizer.class.name", STRING, "", None, LOW, READ_ONLY, HONOURED,
              "Class that authorizes requests: Kafka's StandardAuthorizer or AclAuthorizer; both mean the built-in authorizer. Without "
              "one every client may do everything."),
    ConfigKey("ssl.principal.groups.attribute", STRING, None, one_of("CN", "C", "L", "ST", "STREET", "O", "OU", "UID", "DC"), LOW,
              READ_ONLY, HONOURED,
              "Our own key: attribute of a client certificate's subject whose values are the groups of the principal."),
    ConfigKey("super.users", STRING, "", None, HIGH, READ_ONLY, HONOURED,
              "With an authorizer, the principals that may do everything, separated by semicolons. Brokers of a cluster must be among "
              "them or be allowed CLUSTER_ACTION."),
)
# fmt: on
