"""Roles: named sets of access control lists, and who has them.

A role is a template: its bindings are without a principal, and each member has them all. What follows are plain bindings, so that whoever
decides, and every tool of Kafka's, sees those and needs to know nothing of roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from barnabas.security.acls import Acl, acl_as_json, acl_from_json

NOBODY = ""  # the principal of a template


class Role(NamedTuple):
    """A role as it is kept.

    Args:
        templates: bindings whose principal is NOBODY.
        members: principals ("User:alice", "Group:finance").
    """

    templates: tuple[Acl, ...] = ()
    members: tuple[str, ...] = ()

    @property
    def acls(self) -> list[Acl]:
        """What its members have by it."""
        return [template._replace(principal=member) for member in self.members for template in self.templates]


def role_as_json(role: Role) -> dict[str, Any]:
    return {"acls": [acl_as_json(template) for template in role.templates], "members": list(role.members)}


def role_from_json(kept: Mapping[str, Any]) -> Role:
    """What `role_as_json` wrote."""
    return Role(tuple(acl_from_json(each) for each in kept["acls"]), tuple(kept["members"]))


def acls_of_roles(roles: Iterable[Role]) -> dict[Acl, None]:
    """All that members have by roles, once each."""
    return dict.fromkeys(acl for role in roles for acl in role.acls)
