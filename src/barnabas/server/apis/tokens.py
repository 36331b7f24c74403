"""Creates, renews, expires and describes delegation tokens (KIP-48). The handlers are thin: `security/tokens.py` has the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from barnabas import limits
from barnabas.cluster.metadata.declared import Changes, Kind
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from barnabas.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from barnabas.security import tokens
from barnabas.security.acls import Operation, ResourceType
from barnabas.security.tokens import Lifetimes, Token
from barnabas.server.handlers import Handler, Parts, takes

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.clock import Clock
    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.membership.standalone_controller import StandaloneController
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig
    from barnabas.security.access import Access
    from barnabas.server.authorization.access_control import AccessControl
    from barnabas.server.requests import RequestContext

ANONYMOUS = "User:ANONYMOUS"


class ExpiringBroker(Protocol):
    """The parts of the broker that the removal of tokens uses."""

    clock: Clock
    controller: StandaloneController | Member

    @property
    def metadata(self) -> MetadataImage: ...


class TokenBroker(ExpiringBroker, Protocol):
    """The parts of the broker that this module uses."""

    authorizer: AccessControl | None
    config: BrokerConfig

    def new_id(self) -> UUID: ...


async def create_token(
    broker: TokenBroker, context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    owner = context.principal
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    try:
        key = _key(broker, context)
        token = tokens.create(
            str(broker.new_id()),
            owner=owner,
            requester=context.principal,
            renewers=[f"{renewer.principal_type}:{renewer.principal_name}" for renewer in request.renewers],
            lifetime_ms=request.max_lifetime_ms,
            lifetimes=_lifetimes(broker),
            now_ms=broker.clock.now_ms(),
        )

        def declaring(image: MetadataImage) -> tuple[None, Changes]:
            if len(image.declarations(Kind.TOKEN)) >= limits.MAX_DELEGATION_TOKENS:
                raise KafkaError(ErrorCode.POLICY_VIOLATION)
            return None, {(Kind.TOKEN, token.token_id): token.encode()}

        await broker.controller.declare(declaring)
    except KafkaError as error:
        return CreateDelegationTokenResponse(
            error_code=error.code,
            **_named("principal", owner),
            **_requester(context.principal),
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
        )
    return CreateDelegationTokenResponse(
        **_named("principal", token.owner),
        **_requester(token.requester),
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expires_ms,
        max_timestamp_ms=token.max_ms,
        token_id=token.token_id,
        hmac=tokens.secret_of(token.token_id, key),
    )


async def renew_token(
    broker: TokenBroker, context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    now_ms = broker.clock.now_ms()

    def renewed(token: Token) -> Token:
        return tokens.renew(token, context.principal, request.renew_period_ms, _lifetimes(broker), now_ms)

    try:
        token = await _change(broker, context, bytes(request.hmac), renewed)
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=_refused_ms(error))
    return RenewDelegationTokenResponse(expiry_timestamp_ms=now_ms if token is None else token.expires_ms)


async def expire_token(
    broker: TokenBroker, context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    now_ms = broker.clock.now_ms()

    def expired(token: Token) -> Token | None:
        return tokens.expire(token, context.principal, request.expiry_time_period_ms, now_ms)

    try:
        token = await _change(broker, context, bytes(request.hmac), expired)
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=_refused_ms(error))
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms if token is None else token.expires_ms)


def describe_tokens(
    broker: TokenBroker, context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """The tokens that the client may see: its own, and those that the authorizer allows; all tokens without an authorizer."""
    try:
        key = _key(broker, context)
    except KafkaError as error:
        return DescribeDelegationTokenResponse(error_code=error.code)
    owners = None
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    access = None if broker.authorizer is None else broker.authorizer.of_request(context).silent
    found = [
        _described(token, key)
        for token in tokens.tokens_of(broker.metadata.declarations(Kind.TOKEN))
        if (owners is None or token.owner in owners) and (token.is_of(context.principal) or _may_see(access, token))
    ]
    return DescribeDelegationTokenResponse(tokens=found)


async def remove_expired(broker: ExpiringBroker) -> None:
    """Remove expired tokens, if this broker is the controller."""
    now_ms = broker.clock.now_ms()
    if not broker.controller.is_controller or not _over(broker.metadata, now_ms):
        return

    def declaring(image: MetadataImage) -> tuple[None, Changes]:
        return None, {(Kind.TOKEN, token.token_id): None for token in _over(image, now_ms)}

    await broker.controller.declare(declaring)


def _over(image: MetadataImage, now_ms: int) -> list[Token]:
    return [token for token in tokens.tokens_of(image.declarations(Kind.TOKEN)) if token.is_over(now_ms)]


async def _change(
    broker: TokenBroker, context: RequestContext, secret: bytes, change: Callable[[Token], Token | None]
) -> Token | None:
    key = _key(broker, context)

    def declaring(image: MetadataImage) -> tuple[Token | None, Changes]:
        token = tokens.find(image.declarations(Kind.TOKEN), secret, key)
        changed = change(token)
        return changed, {(Kind.TOKEN, token.token_id): None if changed is None else changed.encode()}

    return await broker.controller.declare(declaring)


def _key(broker: TokenBroker, context: RequestContext) -> str:
    """The secret key of all tokens; raises KafkaError if none is set, or if the client may not use tokens."""
    if not may_ask(context):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if not broker.config.delegation_token_secret_key:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return broker.config.delegation_token_secret_key


def _may_see(access: Access | None, token: Token) -> bool:
    if access is None or access.allows(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id):
        return True
    return access.allows(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)


def may_ask(context: RequestContext) -> bool:
    """Whether the client has a name and did not log in by a token."""
    return context.principal != ANONYMOUS and not context.by_token


def _lifetimes(broker: TokenBroker) -> Lifetimes:
    return Lifetimes(broker.config.delegation_token_max_lifetime_ms, broker.config.delegation_token_expiry_time_ms)


def _refused_ms(error: KafkaError) -> int:
    """The expiry time in ms that Kafka gives with a refusal."""
    return -1 if error.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED else 0


def _named(prefix: str, principal: str) -> dict[str, Any]:
    kind, _, name = principal.partition(":")
    return {f"{prefix}_type": kind, f"{prefix}_name": name}


def _requester(principal: str) -> dict[str, Any]:
    return _named("token_requester_principal", principal)


def _described(token: Token, key: str) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        **_named("principal", token.owner),
        **_requester(token.requester),
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=tokens.secret_of(token.token_id, key),
        renewers=[DescribedDelegationTokenRenewer(**_named("principal", renewer)) for renewer in token.renewers],
    )


HANDLERS: dict[int, Handler[TokenBroker]] = {
    ApiKey.CREATE_DELEGATION_TOKEN: takes(CreateDelegationTokenRequest, create_token),
    ApiKey.RENEW_DELEGATION_TOKEN: takes(RenewDelegationTokenRequest, renew_token),
    ApiKey.EXPIRE_DELEGATION_TOKEN: takes(ExpireDelegationTokenRequest, expire_token),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: takes(DescribeDelegationTokenRequest, describe_tokens),
}


def parts(_broker: object, context: RequestContext, request: Message) -> tuple[Message | None, Message | None]:
    """Refuse a client that may not use tokens here; the controller handles all other requests."""
    return (None, request) if may_ask(context) else (request, None)


PARTS: dict[int, Parts[object]] = dict.fromkeys(
    (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN), parts
)
