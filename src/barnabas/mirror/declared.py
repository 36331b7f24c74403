"""ACLs, quotas and users of the source, as declarations here (`cluster/metadata/declared.py`). Pure.

Rules
  1. A declaration that a link has made has a mark of its own (`Kind.MIRRORED`), written in the same commit. The link changes
     and removes only declarations with its mark. All others stay, also where the source has something else for the same key.
  2. A declaration that is gone in the source is removed here, with its mark.
  3. A declaration that no longer belongs to the link, such as an ACL of a promoted topic, only loses its mark. It stays here.
  4. A source that does not answer, or refuses, changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from barnabas.cluster.metadata.declared import MAX_KEY_BYTES, Kind
from barnabas.cluster.metadata.image import MetadataImage
from barnabas.config.mirror_settings import MIRROR_LINK
from barnabas.errors import KafkaError
from barnabas.mirror.link import Link
from barnabas.quota.entities import Entity, Quotas, check_entity, check_quota, encode_entity
from barnabas.security.acls import WILDCARD, Acl, PatternType, ResourceType, acl_as_json, acl_key
from barnabas.security.users import is_stored_user

MARK: Mapping[str, Any] = {}
Wanted = Mapping[str, Any]  # the declarations of the source, by their keys here
DeclaredChanges = dict[tuple[Kind, str], Any]
COPIED_RESOURCES = frozenset({ResourceType.TOPIC, ResourceType.GROUP})


def mark_key(link: str, kind: Kind, key: str) -> str:
    """The key of a mark. Names of links have no slash."""
    return f"{link}/{kind.value}/{key}"


def marks_of(image: MetadataImage, link: str) -> list[str]:
    """The keys of all marks of a link."""
    return [key for key in image.declarations(Kind.MIRRORED) if key.startswith(f"{link}/")]


def changes(
    image: MetadataImage, link: str, kind: Kind, wanted: Wanted, is_released: Callable[[str], bool] = lambda _: False
) -> DeclaredChanges:
    """The changes so that the declarations of a kind follow those of the source.

    Args:
        is_released: whether what the link made under a key belongs to this cluster from now on.
    """
    found: DeclaredChanges = {}
    declared, marks = image.declarations(kind), image.declarations(Kind.MIRRORED)
    prefix = mark_key(link, kind, "")
    ours = {mark.removeprefix(prefix) for mark in marks if mark.startswith(prefix)}
    for key in sorted(ours - wanted.keys()):
        found[Kind.MIRRORED, prefix + key] = None
        if not is_released(key) and key in declared:
            found[kind, key] = None
    for key, value in wanted.items():
        is_ours, before = key in ours, declared.get(key)
        if before == value or (before is not None and not is_ours) or len((prefix + key).encode()) > MAX_KEY_BYTES:
            continue
        found[kind, key] = value
        if not is_ours:
            found[Kind.MIRRORED, prefix + key] = MARK
    return found


def pieces(found: DeclaredChanges, at_once: int) -> Iterable[DeclaredChanges]:
    """The changes in commits of at most `at_once` keys, a declaration always together with its mark."""
    by_key: dict[str, DeclaredChanges] = {}
    for (kind, key), value in found.items():
        own = key.split("/", 2)[2] if kind is Kind.MIRRORED else key
        by_key.setdefault(own, {})[kind, key] = value
    rest = iter(by_key.values())
    while group := list(islice(rest, max(at_once // 2, 1))):
        yield {key: value for each in group for key, value in each.items()}


# ACLs


def copied_acls(link: Link, theirs: Iterable[Acl], image: MetadataImage) -> dict[str, Any]:
    """The ACLs of the source that the link declares here, as declarations.

    A literal name must be that of a copy of the link, or of a group whose offsets the link copies. A prefix, and the name *, must match
    the patterns of the link as a name does: it reaches further than the copies.
    """
    found = {}
    for acl in theirs:
        if acl.resource_type not in COPIED_RESOURCES or not link.copies_acls_of(acl.principal):
            continue
        local = _local(link, acl, image)
        if local is not None:
            found[acl_key(local)] = acl_as_json(local)
    return found


def _local(link: Link, acl: Acl, image: MetadataImage) -> Acl | None:
    if acl.resource_type is ResourceType.GROUP:
        return acl if link.copies_group(acl.name) else None
    if not link.copies(acl.name):
        return None
    is_literal = acl.pattern is PatternType.LITERAL and acl.name != WILDCARD
    if is_literal:
        name = link.local_name(acl.name)
        return acl._replace(name=name) if is_copy(image, link.name, name) else None
    if not link.prefix:
        return acl
    name = link.prefix if acl.name == WILDCARD else link.local_name(acl.name)
    return acl._replace(name=name, pattern=PatternType.PREFIXED)


def is_copy(image: MetadataImage, link: str, topic: str) -> bool:
    """Whether a topic here is a copy of the link."""
    return image.topic_config(topic).get(MIRROR_LINK) == link


def is_released_acl(image: MetadataImage, link: str, key: str) -> bool:
    """Whether an ACL is about a topic that the link copied once: it was promoted. One of a topic that is gone is not released."""
    acl = image.declarations(Kind.ACL).get(key)
    if (
        acl is None
        or acl["resource"] != ResourceType.TOPIC.name
        or acl["pattern"] != PatternType.LITERAL.name
        or acl["name"] == WILDCARD
    ):
        return False
    return image.topic(acl["name"]) is not None and not is_copy(image, link, acl["name"])


# Users


def copied_users(link: Link, theirs: Mapping[str, Any], super_users: frozenset[str]) -> dict[str, Any]:
    """The SCRAM users of the source as declarations here. Super users of this cluster are left out: their rights do not come from ACLs, and
    the source must not choose their passwords.

    Args:
        super_users: principals, such as User:admin.
    """
    return {
        user: fields
        for user, fields in theirs.items()
        if user
        and not user.startswith("\0")
        and f"User:{user}" not in super_users
        and link.copies_user(user)
        and is_stored_user(fields)
    }


# Quotas


def copied_quotas(theirs: Mapping[Entity, Quotas]) -> dict[str, Any]:
    """The quotas of the source as declarations here; those that cannot be declared here are left out."""
    found = {}
    for entity, quotas in theirs.items():
        accepted = {key: value for key, value in quotas.items() if _is_quota(entity, key, value)}
        if accepted:
            found[encode_entity(entity)] = accepted
    return found


def _is_quota(entity: Entity, key: str, value: float) -> bool:
    try:
        check_entity(entity)
        check_quota(entity, key, value)
    except KafkaError:
        return False
    return True
