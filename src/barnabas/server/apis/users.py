"""Creates, changes and describes users with SCRAM credentials (KIP-554). The handlers are thin: `security/users.py` has the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

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
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.membership.standalone_controller import StandaloneController
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.server.requests import RequestContext


class UserBroker(Protocol):
    """The parts of the broker that this module uses."""

    controller: StandaloneController | Member

    def new_id(self) -> UUID: ...

    @property
    def metadata(self) -> MetadataImage: ...


async def alter_users(
    broker: UserBroker, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    deletions = [users.Deletion(item.name, item.mechanism) for item in request.deletions]
    upsertions = [
        users.Upsertion(item.name, item.mechanism, item.iterations, bytes(item.salt), bytes(item.salted_password))
        for item in request.upsertions
    ]
    secret = broker.new_id().bytes + broker.new_id().bytes  # the broker's only source of randomness

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
    broker: UserBroker, context: RequestContext, request: DescribeUserScramCredentialsRequest
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


HANDLERS: dict[int, Handler[UserBroker]] = {
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: takes(DescribeUserScramCredentialsRequest, describe_users),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: takes(AlterUserScramCredentialsRequest, alter_users),
}
