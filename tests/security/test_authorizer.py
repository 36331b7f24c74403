"""Decisions by access control lists: each rule, and all of them against a plain reading of the rules."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas import limits
from barnabas.security.access import Access
from barnabas.security.acls import (
    AUDIT_TOPIC,
    CLUSTER,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
    acl_as_json,
    acl_from_json,
    acl_key,
)
from barnabas.security.authorizer import Authorizer, Session, covers_host, membership
from barnabas.server.authorization.access_control import AccessControl

ALICE = Session("User:alice", "10.1.2.3")
BOB = Session("User:bob", "10.1.2.3")
ORDERS = Resource(ResourceType.TOPIC, "orders")


def acl(
    operation: Operation,
    *,
    name: str = "orders",
    principal: str = ALICE.principal,
    host: str = "*",
    prefixed: bool = False,
    deny: bool = False,
    kind: ResourceType = ResourceType.TOPIC,
) -> Acl:
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    return Acl(kind, name, pattern, principal, host, operation, Permission.DENY if deny else Permission.ALLOW)


def test_nothing_is_allowed_without_a_binding_unless_configured() -> None:
    assert not Authorizer().is_allowed(ALICE, Operation.READ, ORDERS)
    open_house = Authorizer([acl(Operation.READ)], allow_if_no_acl=True)
    assert open_house.is_allowed(BOB, Operation.WRITE, Resource(ResourceType.TOPIC, "other"))
    assert not open_house.is_allowed(BOB, Operation.READ, ORDERS)  # ORDERS has a binding


def test_super_users_may_do_everything_even_what_is_denied() -> None:
    authorizer = Authorizer([acl(Operation.ALL, deny=True)], super_users=["User:alice"])
    assert authorizer.is_allowed(ALICE, Operation.DELETE, ORDERS)
    assert authorizer.is_allowed_anywhere(ALICE, Operation.WRITE, ResourceType.TOPIC)
    assert not authorizer.is_allowed(BOB, Operation.DELETE, ORDERS)


def test_the_audit_log_is_changed_by_who_may_act_for_the_cluster() -> None:
    audit = Resource(ResourceType.TOPIC, AUDIT_TOPIC)
    rights = [acl(Operation.ALL, name=name) for name in ("*", AUDIT_TOPIC)]
    allowed = Authorizer(rights).operations(ALICE, audit)
    assert allowed == [Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS]
    broker = Authorizer([acl(Operation.CLUSTER_ACTION, name=CLUSTER.name, kind=ResourceType.CLUSTER)])
    changes = [Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS]
    assert broker.operations(ALICE, audit) == changes
    assert all(broker.is_allowed(ALICE, operation, audit) for operation in changes)
    assert not broker.is_allowed(ALICE, Operation.READ, audit)


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_describing_is_implied(operation: Operation) -> None:
    authorizer = Authorizer([acl(operation)])
    assert authorizer.is_allowed(ALICE, Operation.DESCRIBE, ORDERS)
    assert not authorizer.is_allowed(ALICE, Operation.DESCRIBE_CONFIGS, ORDERS)
    denied = Authorizer([acl(operation, deny=True), acl(Operation.DESCRIBE)])
    assert denied.is_allowed(ALICE, Operation.DESCRIBE, ORDERS)  # a denial implies nothing
    assert Authorizer([acl(Operation.ALTER_CONFIGS)]).is_allowed(ALICE, Operation.DESCRIBE_CONFIGS, ORDERS)


def test_a_denial_goes_before_whatever_allows() -> None:
    authorizer = Authorizer([acl(Operation.ALL, name="*"), acl(Operation.READ, name="ord", prefixed=True, deny=True)])
    assert not authorizer.is_allowed(ALICE, Operation.READ, ORDERS)
    assert authorizer.is_allowed(ALICE, Operation.WRITE, ORDERS)
    assert authorizer.is_allowed(ALICE, Operation.READ, Resource(ResourceType.TOPIC, "others"))


def test_patterns_are_of_one_type_of_resource() -> None:
    authorizer = Authorizer([acl(Operation.READ, name="", prefixed=True)])
    assert authorizer.is_allowed(ALICE, Operation.READ, ORDERS)
    assert not authorizer.is_allowed(ALICE, Operation.READ, Resource(ResourceType.GROUP, "orders"))
    assert not authorizer.is_allowed(ALICE, Operation.DESCRIBE, CLUSTER)


def test_hosts_are_addresses_or_ranges() -> None:
    authorizer = Authorizer([acl(Operation.READ, host="10.1.0.0/16"), acl(Operation.READ, host="10.1.2.9", deny=True)])
    assert authorizer.is_allowed(ALICE, Operation.READ, ORDERS)
    assert not authorizer.is_allowed(ALICE._replace(host="10.1.2.9"), Operation.READ, ORDERS)
    assert not authorizer.is_allowed(ALICE._replace(host="10.2.0.1"), Operation.READ, ORDERS)
    assert covers_host("2001:db8::/32", "2001:db8::1")
    assert not covers_host("10.0.0.0/8", "2001:db8::1")
    assert not covers_host("no range/8", "10.0.0.1")
    assert not covers_host("10.0.0.0/8", "unknown")


@pytest.mark.parametrize(
    ("written", "host"),
    [("0:0:0:0:0:0:0:1", "::1"), ("2001:DB8::1", "2001:db8::1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("no address", "no address")],
)
def test_an_address_is_the_same_however_it_is_spelled(written: str, host: str) -> None:
    session = ALICE._replace(host=host)
    denial = acl(Operation.READ, host=written, deny=True)
    authorizer = Authorizer([acl(Operation.READ), denial])
    assert not authorizer.is_allowed(session, Operation.READ, ORDERS)
    assert authorizer.is_allowed(session._replace(host="::2"), Operation.READ, ORDERS)
    assert authorizer.matching(AclFilter(host=written)) == [denial], "as it was given"


@pytest.mark.parametrize(
    ("who", "name", "prefixed", "denied"),
    [
        ("User:alice", "Role:auditor", False, True),
        ("Group:finance", "Role:auditor", False, True),
        ("User:*", "Role:", True, True),
        ("User:alice", "*", False, True),
        ("User:bob", "Role:auditor", False, False),
        ("User:alice", "Role:other", False, False),
    ],
)
def test_a_role_that_is_denied_is_not_had(who: str, name: str, prefixed: bool, denied: bool) -> None:
    denial = acl(Operation.ALL, name=name, principal=who, prefixed=prefixed, deny=True, kind=ResourceType.USER)
    authorizer = Authorizer([membership("Role:auditor", "Group:finance"), denial])
    session = ALICE._replace(groups=("Group:finance",))
    assert ("Role:auditor" in authorizer.with_roles(session).groups) is not denied
    authorizer.remove(denial)
    assert "Role:auditor" in authorizer.with_roles(session).groups


def test_bindings_come_and_go() -> None:
    authorizer = Authorizer()
    authorizer.add(acl(Operation.READ))
    authorizer.add(acl(Operation.READ))
    assert authorizer.matching(AclFilter()) == [acl(Operation.READ)]
    authorizer.remove(acl(Operation.READ))
    authorizer.remove(acl(Operation.READ))
    assert not authorizer.is_allowed(ALICE, Operation.READ, ORDERS)
    assert authorizer.matching(AclFilter()) == []


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (AclFilter(), {"orders", "ord", "*"}),
        (AclFilter(pattern=PatternType.LITERAL), {"orders", "*"}),
        (AclFilter(pattern=PatternType.PREFIXED), {"ord"}),
        (AclFilter(name="orders"), {"orders"}),
        (AclFilter(name="orders", pattern=PatternType.MATCH), {"orders", "ord", "*"}),
        (AclFilter(name="other", pattern=PatternType.MATCH), {"*"}),
        (AclFilter(principal="User:bob"), {"*"}),
        (AclFilter(operation=Operation.READ), {"orders"}),
        (AclFilter(permission=Permission.DENY), {"ord"}),
        (AclFilter(resource_type=ResourceType.GROUP), set()),
        (AclFilter(host="10.0.0.1"), set()),
    ],
)
def test_filters(wanted: AclFilter, names: set[str]) -> None:
    bindings = [
        acl(Operation.READ),
        acl(Operation.WRITE, name="ord", prefixed=True, deny=True),
        acl(Operation.ALL, name="*", principal="User:bob"),
    ]
    assert {each.name for each in Authorizer(bindings).matching(wanted)} == names


@pytest.mark.parametrize(
    ("bindings", "expected"),
    [
        ([], False),
        ([acl(Operation.WRITE)], True),
        ([acl(Operation.READ)], False),
        ([acl(Operation.WRITE), acl(Operation.WRITE, deny=True)], False),
        ([acl(Operation.WRITE), acl(Operation.ALL, name="*", deny=True)], False),
        ([acl(Operation.WRITE), acl(Operation.WRITE, name="or", prefixed=True, deny=True)], False),
        ([acl(Operation.WRITE, name="o", prefixed=True), acl(Operation.WRITE, name="or", prefixed=True, deny=True)], True),
        ([acl(Operation.WRITE, name="*"), acl(Operation.WRITE, deny=True)], True),
    ],
)
def test_whether_there_is_anything_to_write_to(bindings: list[Acl], expected: bool) -> None:
    assert Authorizer(bindings).is_allowed_anywhere(ALICE, Operation.WRITE, ResourceType.TOPIC) is expected


NAMES = st.sampled_from(["*", "a", "ab", "abc", "b"])
ACLS = st.builds(
    Acl,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    NAMES,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["User:*", "User:alice", "User:bob"]),
    st.sampled_from(["*", "10.1.2.3", "10.1.0.0/16", "10.9.9.9"]),
    st.sampled_from([Operation.ALL, Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALTER]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)


def plainly(bindings: list[Acl], session: Session, operation: Operation, resource: Resource) -> bool:
    """The rules, read one after the other over all bindings."""
    about = [
        each
        for each in bindings
        if each.covers(resource) and each.principal in ("User:*", session.principal) and each.host not in ("10.9.9.9",)
    ]
    if any(each.permission is Permission.DENY and each.operation in (operation, Operation.ALL) for each in about):
        return False
    wanted = {operation, Operation.ALL}
    if operation is Operation.DESCRIBE:
        wanted |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    return any(each.permission is Permission.ALLOW and each.operation in wanted for each in about)


@given(
    st.lists(ACLS, max_size=8),
    st.sampled_from([ALICE, BOB]),
    st.sampled_from([Operation.READ, Operation.WRITE, Operation.DESCRIBE]),
    st.builds(Resource, st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]), st.sampled_from(["a", "ab", "abc", "b", "c"])),
)
def test_the_index_changes_no_decision(bindings: list[Acl], session: Session, operation: Operation, resource: Resource) -> None:
    assert Authorizer(bindings).is_allowed(session, operation, resource) is plainly(bindings, session, operation, resource)


def test_who_has_a_role_has_its_rights() -> None:
    read = acl(Operation.READ, principal="Role:auditor")
    authorizer = Authorizer([read, membership("Role:auditor", ALICE.principal), membership("Role:auditor", "Group:staff")])
    alice, bob = authorizer.with_roles(ALICE), authorizer.with_roles(BOB)
    assert authorizer.is_allowed(alice, Operation.READ, ORDERS)
    assert authorizer.with_roles(BOB._replace(groups=("Group:staff",))).groups == ("Group:staff", "Role:auditor")
    assert bob == BOB
    authorizer.remove(membership("Role:auditor", ALICE.principal))
    assert authorizer.with_roles(ALICE) == ALICE


def test_a_role_may_be_had_from_some_hosts_only() -> None:
    authorizer = Authorizer([membership("Role:auditor", ALICE.principal, "10.1.0.0/16")])
    assert authorizer.with_roles(ALICE).groups == ("Role:auditor",)
    assert authorizer.with_roles(ALICE._replace(host="10.2.0.1")).groups == ()


def test_what_follows_from_roles_is_listed_with_the_bindings_of_a_member() -> None:
    read = acl(Operation.READ, principal="Role:auditor", host="10.0.0.1")
    own, has = acl(Operation.WRITE), membership("Role:auditor", ALICE.principal)
    authorizer = Authorizer([read, own, has])
    assert set(authorizer.matching(AclFilter(principal=ALICE.principal))) == {own, has, read._replace(principal=ALICE.principal)}
    assert set(authorizer.matching(AclFilter())) == {read, own, has}


@pytest.mark.parametrize(
    "other",
    [
        membership("Role:auditor", ALICE.principal)._replace(permission=Permission.DENY),
        membership("Role:auditor", ALICE.principal)._replace(operation=Operation.CREATE_TOKENS),
        membership("Role:auditor", ALICE.principal)._replace(pattern=PatternType.PREFIXED),
        membership("User:bob", ALICE.principal),
    ],
)
def test_other_bindings_of_users_give_no_role(other: Acl) -> None:
    assert Authorizer([other]).with_roles(ALICE) == ALICE


def test_the_version_grows_with_each_change() -> None:
    authorizer = Authorizer()
    versions = [authorizer.version]
    for change in (authorizer.add, authorizer.remove):
        change(acl(Operation.READ))
        versions.append(authorizer.version)
    assert versions == sorted(set(versions))


def test_operations_are_those_that_a_resource_knows_and_the_session_may() -> None:
    authorizer = Authorizer([acl(Operation.WRITE)], super_users=["User:root"])
    assert authorizer.operations(ALICE, ORDERS) == [Operation.WRITE, Operation.DESCRIBE]
    assert authorizer.operations(Session("User:root", ""), CLUSTER)[0] is Operation.CREATE


@given(st.sampled_from(list(Operation)[2:]), st.sampled_from(list(ResourceType)[2:]), st.text(), st.text())
def test_a_binding_is_read_as_it_was_written_down(operation: Operation, kind: ResourceType, name: str, principal: str) -> None:
    written = Acl(kind, name, PatternType.PREFIXED, principal, "*", operation, Permission.DENY)
    assert acl_from_json(json.loads(json.dumps(acl_as_json(written)))) == written
    assert acl_key(written) != acl_key(written._replace(permission=Permission.ALLOW))


def test_a_long_name_is_looked_at_once_for_each_length_of_prefixes() -> None:
    class Name(str):
        looks = 0

        def __getitem__(self, key: Any) -> str:
            type(self).looks += 1
            return super().__getitem__(key)

    prefixes = [acl(Operation.READ, name=name, prefixed=True) for name in ("a", "b", "long", "x" * 500)]
    of_groups = acl(Operation.READ, name="a-group", prefixed=True, kind=ResourceType.GROUP)
    authorizer = Authorizer([*prefixes, of_groups])
    assert authorizer.is_allowed(ALICE, Operation.READ, Resource(ResourceType.TOPIC, Name("long" + "y" * 400)))
    assert Name.looks == 2
    authorizer.remove(prefixes[2])
    assert not authorizer.is_allowed(ALICE, Operation.READ, Resource(ResourceType.TOPIC, Name("long")))


def test_a_decision_about_a_long_name_is_not_remembered() -> None:
    control = AccessControl(frozenset(), allow_if_no_acl=True)
    access = Access(ALICE, control._authorizer)
    for size in (limits.MAX_REMEMBERED_NAME, limits.MAX_REMEMBERED_NAME + 1):
        assert access.allows_topic(Operation.READ, "x" * size)
    assert [len(name) for _, _, name in access._decided] == [limits.MAX_REMEMBERED_NAME]


def test_a_length_counts_for_as_long_as_a_prefix_has_it() -> None:
    prefixes = [acl(Operation.READ, name=name, prefixed=True) for name in ("ab", "cd")]
    authorizer = Authorizer(prefixes)
    name = Resource(ResourceType.TOPIC, "cd-1")
    assert authorizer.is_allowed(ALICE, Operation.READ, name)
    authorizer.remove(prefixes[0])
    authorizer.remove(prefixes[0])
    assert authorizer.is_allowed(ALICE, Operation.READ, name)
    authorizer.remove(prefixes[1])
    assert not authorizer.is_allowed(ALICE, Operation.READ, name)
    authorizer.add(prefixes[1])
    authorizer.add(prefixes[1])
    assert authorizer.is_allowed(ALICE, Operation.READ, name)
