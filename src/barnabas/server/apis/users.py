"""Users with SCRAM credentials, made, changed and described (KIP-554). Thin: what they are is said in `security/users.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cluster.metadata.declared import Changes, Kind
from barnabas.errors import KafkaError
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas.security import users

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.server.broker import Broker
    from barnabas.server.requests import RequestContext


async def alter_users(
    broker: Broker, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    deletions = [users.Deletion(item.name, item.mechanism) for item in request.deletions]
    upsertions = [
        users.Upsertion(item.name, item.mechanism, item.iterations, bytes(item.salt), bytes(item.salted_password))
        for item in request.upsertions
    ]
    secret = broker.new_id().bytes + broker.new_id().bytes  # from where the broker has all its chance

    def declaring(image: MetadataImage) -> tuple[dict[str, KafkaError | None], Changes]:
        errors, changed = users.alter(image.declarations(Kind.USER), deletions, upsertions, secret=secret)
        return errors, {(Kind.USER, user): fields for user, fields in changed.items()}

    try:
        errors = await broker.controller.declare(declaring)
    except KafkaError as error:
        names = [item.name for item in request.deletions] + [item.name for item in request.upsertions]
        errors = dict.fromkeys(names, error)
    return AlterUserScramCredentialsResponse(results=[_result(user, error) for user, error in errors.items()])


def describe_users(
    broker: Broker, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    names = None if request.users is None else [user.name for user in request.users]
    described = users.describe(broker.metadata.declarations(Kind.USER), names)
    return DescribeUserScramCredentialsResponse(error_message=None, results=[_described(each) for each in described])


def _result(user: str, error: KafkaError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user=user, error_message=None)
    return AlterUserScramCredentialsResult(user=user, error_code=error.code, error_message=error.message)


def _described(each: users.Described) -> DescribeUserScramCredentialsResult:
    infos = [CredentialInfo(mechanism=mechanism, iterations=iterations) for mechanism, iterations in each.infos]
    if each.error is None:
        return DescribeUserScramCredentialsResult(user=each.user, error_message=None, credential_infos=infos)
    return DescribeUserScramCredentialsResult(user=each.user, error_code=each.error.code, error_message=each.error.message)


HANDLERS = {ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: describe_users, ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_users}
