"""The rights of callers on subjects: maps Confluent's operations on subjects to the cluster's rights on topics.

Rules
  1. `orders-key` and `orders-value` belong to the topic `orders`. Any other subject counts as a topic with the same name. If
     its context is not the default one, the context stays in the name: `:.staging:orders`.
  2. Settings for everything belong to the cluster; settings of a context belong to a name such as `:.staging:`.
  3. Each route has a rule in `RULES`. A route without a rule needs the right to alter the cluster.
  4. Lists and requests by id show only subjects that the caller may read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from barnabas.registry.core import names
from barnabas.security.acls import CLUSTER, Operation, Resource, ResourceType
from barnabas.web.routing import Caller, HttpError

SUFFIXES = ("-key", "-value")
DENIED = 40301  # error code of Confluent's registry


class Right(NamedTuple):
    """One of Confluent's operations.

    Args:
        name: its name in Confluent's error.
        on_topic, on_cluster: the operation of Kafka that allows it on a topic and on the cluster.
    """

    name: str
    on_topic: Operation
    on_cluster: Operation


READ = Right("Read", Operation.DESCRIBE, Operation.DESCRIBE)
WRITE = Right("Write", Operation.WRITE, Operation.ALTER)
DELETE = Right("Delete", Operation.DELETE, Operation.ALTER)
READ_SETTINGS = Right("ReadCompatibility", Operation.DESCRIBE_CONFIGS, Operation.DESCRIBE_CONFIGS)
WRITE_SETTINGS = Right("WriteCompatibility", Operation.ALTER_CONFIGS, Operation.ALTER_CONFIGS)


class Rule(NamedTuple):
    """The rights that a route needs.

    Args:
        right: the right. None if every authenticated caller may call the route; then its handler checks the subjects that it
            shows or changes.
        on_subject: whether the right is needed on the subject or context in the first segment; otherwise on the context of the
            path, or on everything.
        alias: whether the subject may be an alias.
    """

    right: Right | None
    on_subject: bool = True
    alias: bool = True


BY_HANDLER = Rule(None)
OTHERWISE = Rule(WRITE, on_subject=False)
_SETTING = {"GET": READ_SETTINGS, "PUT": WRITE_SETTINGS, "DELETE": WRITE_SETTINGS}
RULES: dict[tuple[str, str], Rule] = {
    **dict.fromkeys(
        [
            ("GET", "/"), ("POST", "/"), ("GET", "/subjects"), ("GET", "/schemas"), ("GET", "/schemas/types"),
            ("GET", "/schemas/ids/{}"), ("GET", "/schemas/ids/{}/schema"), ("GET", "/schemas/ids/{}/subjects"),
            ("GET", "/schemas/ids/{}/versions"), ("GET", "/schemas/guids/{}"), ("GET", "/schemas/guids/{}/ids"),
            ("GET", "/contexts"), ("DELETE", "/contexts/{}"), ("GET", "/v1/metadata/id"), ("GET", "/v1/metadata/version"),
            ("GET", "/associations/resources/{}/{}"), ("GET", "/associations/resources/{}"), ("POST", "/associations"),
            ("PUT", "/associations/resources/{}"), ("DELETE", "/associations/resources/{}"),
            ("POST", "/associations:batchGet"), ("POST", "/associations:batchMutate"),
        ],
        BY_HANDLER,
    ),
    **dict.fromkeys(
        [
            ("POST", "/subjects/{}"), ("GET", "/subjects/{}/metadata"), ("GET", "/subjects/{}/versions"),
            ("GET", "/subjects/{}/versions/{}"), ("GET", "/subjects/{}/versions/{}/schema"),
            ("GET", "/subjects/{}/versions/{}/referencedby"), ("GET", "/associations/subjects/{}"),
        ],
        Rule(READ),
    ),
    **dict.fromkeys(
        [
            ("POST", "/subjects/{}/versions"), ("POST", "/subjects/{}/versions/{}/tags"),
            ("POST", "/compatibility/subjects/{}/versions/{}"), ("POST", "/compatibility/subjects/{}/versions"),
        ],
        Rule(WRITE),
    ),
    ("DELETE", "/subjects/{}"): Rule(DELETE),
    ("DELETE", "/subjects/{}/versions/{}"): Rule(DELETE),
    **{(method, f"/{kind}"): Rule(right, on_subject=False) for method, right in _SETTING.items() for kind in ("config", "mode")},
    **{(method, f"/{kind}/{{}}"): Rule(right, alias=False) for method, right in _SETTING.items() for kind in ("config", "mode")},
}  # fmt: skip


class Rights(Protocol):
    """The source of the decisions; see `security/rights.py: ClusterRights`."""

    async def refresh(self) -> None:
        """Called before decisions; raises BarnabasError."""

    async def renew(self) -> bool:
        """Called after a refusal: read the cluster's bindings again, unless that was done a moment ago; returns whether they
        were read."""

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        """Whether a principal may do an operation."""


def resource_of(qualified: str) -> Resource:
    """The cluster's resource for a subject, a context or everything ("")."""
    name = names.parse(qualified)
    if name.context == names.GLOBAL_CONTEXT or not (name.subject or name.prefix):
        return CLUSTER
    return Resource(ResourceType.TOPIC, name.prefix + topic_of(name.subject))


def topic_of(subject: str) -> str:
    """The topic whose keys or values a subject describes, according to the subject's name."""
    for suffix in SUFFIXES:
        if subject.endswith(suffix) and subject != suffix:
            return subject.removesuffix(suffix)
    return subject


def allowed(rights: Rights, caller: Caller, right: Right, qualified: str) -> bool:
    """Whether a caller has a right on a subject, a context or everything ("")."""
    resource = resource_of(qualified)
    operation = right.on_cluster if resource == CLUSTER else right.on_topic
    return rights.allows(caller.principal, caller.host, operation, resource)


def denied(right: Right, qualified: str) -> HttpError:
    """The error for a caller without a right."""
    place = f"Subject: {qualified}" if qualified else "this server."
    return HttpError(403, f"User is denied operation {right.name} on {place}", DENIED)


def denied_schema(schema_id: object) -> HttpError:
    """The error for a caller who may not read any subject of a schema."""
    return HttpError(403, f"User is denied operation {READ.name} on Schema: {schema_id}", DENIED)


def readable(rights: Rights, caller: Caller) -> Callable[[str], bool]:
    """A function that says whether a caller may read a subject; it decides once for each topic."""
    known: dict[Resource, bool] = {}

    def may(qualified: str) -> bool:
        resource = resource_of(qualified)
        found = known.get(resource)
        if found is None:
            found = known[resource] = allowed(rights, caller, READ, qualified)
        return found

    return may
