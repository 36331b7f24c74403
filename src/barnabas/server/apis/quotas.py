"""Describes and changes quotas: DescribeClientQuotas and AlterClientQuotas (KIP-546, KIP-599, KIP-612)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.cluster.metadata.declared import Changes, Kind
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntryData,
    ResponseEntityData,
    ResponseEntryData,
)
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from barnabas.quota.entities import Entity, check_entity, check_quota, decode_all, encode_entity, entity_of
from barnabas.quota.filters import filter_of
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.membership.standalone_controller import StandaloneController
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.server.requests import RequestContext


class ClientQuotaBroker(Protocol):
    """The parts of the broker that this module uses."""

    controller: StandaloneController | Member

    @property
    def metadata(self) -> MetadataImage: ...


def handle_describe_client_quotas(
    broker: ClientQuotaBroker, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """DescribeClientQuotas (api 48)."""
    try:
        wanted = filter_of([(c.entity_type, c.match_type, c.match) for c in request.components], strict=request.strict)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    declared = decode_all(broker.metadata.declarations(Kind.QUOTA))
    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[ValueData(key=key, value=value) for key, value in quotas.items()],
        )
        for entity, quotas in declared.items()
        if wanted.takes(entity)
    ]
    return DescribeClientQuotasResponse(entries=entries)


async def handle_alter_client_quotas(
    broker: ClientQuotaBroker, context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """AlterClientQuotas (api 49)."""
    try:
        outcomes = await broker.controller.declare(lambda image: _alter(image, request), validate_only=request.validate_only)
    except KafkaError as error:
        outcomes = dict.fromkeys(map(_entity, request.entries), error)
    return AlterClientQuotasResponse(
        entries=[
            ResponseEntryData(
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else error.message,
                entity=[ResponseEntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            )
            for entity, error in outcomes.items()
        ]
    )


def _entity(entry: RequestEntryData) -> Entity:
    return entity_of((each.entity_type, each.entity_name) for each in entry.entity)


def _alter(image: MetadataImage, request: AlterClientQuotasRequest) -> tuple[dict[Entity, KafkaError | None], Changes]:
    """The outcome for each entity, and the changes to declare. If a request names an entity twice, the first entry counts."""
    declared = image.declarations(Kind.QUOTA)
    changes: dict[tuple[Kind, str], Any] = {}
    outcomes: dict[Entity, KafkaError | None] = {}
    for entry in request.entries:
        entity = _entity(entry)
        keys = [change.key for change in entry.ops]
        if entity in outcomes or len(set(keys)) < len(keys):
            named = ", ".join(f"{kind}={name}" for kind, name in entity)
            reason = f"Ignoring duplicate entity ClientQuotaEntity(entries={{{named}}})"
            outcomes[entity] = KafkaError(ErrorCode.INVALID_REQUEST, reason)
            continue
        try:
            check_entity(entity)
            key = encode_entity(entity)
            changes[Kind.QUOTA, key] = _changed(entity, declared.get(key) or {}, entry.ops) or None
            outcomes[entity] = None
        except KafkaError as error:
            outcomes[entity] = error
    return outcomes, changes


def _changed(entity: Entity, quotas: Mapping[str, float], changes: Sequence[OpData]) -> dict[str, float]:
    after = dict(quotas)
    for change in changes:
        if change.remove:
            after.pop(change.key, None)
        else:
            check_quota(entity, change.key, change.value)
            after[change.key] = change.value
    return after


HANDLERS: dict[int, Handler[ClientQuotaBroker]] = {
    ApiKey.DESCRIBE_CLIENT_QUOTAS: takes(DescribeClientQuotasRequest, handle_describe_client_quotas),
    ApiKey.ALTER_CLIENT_QUOTAS: takes(AlterClientQuotasRequest, handle_alter_client_quotas),
}
