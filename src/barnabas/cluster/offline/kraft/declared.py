"""Declarations about principals in Kafka's metadata log: access control lists, SCRAM users, quotas and delegation tokens.

Owns the replay of these records, and their conversion to our declarations. Source: Kafka's record schemas
(metadata/src/main/resources/common/metadata), all in version 0.

Declarations that this broker would refuse are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from msgspec import Struct, field

from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.offline.kraft.reader import Reader
from barnabas.errors import KafkaError
from barnabas.quota.entities import Entity, check_entity, check_quota, encode_entity, entity_of
from barnabas.security.acls import Acl, Operation, PatternType, Permission, ResourceType, acl_as_json, acl_key
from barnabas.security.scram import Credential
from barnabas.security.tokens import Token
from barnabas.security.users import MECHANISM_NUMBERS, SECRET, encode, encode_secret

TOKEN, USER, QUOTA, ACL, REMOVE_ACL, REMOVE_USER, REMOVE_TOKEN = 10, 11, 14, 18, 19, 22, 26
KINDS = frozenset({TOKEN, USER, QUOTA, ACL, REMOVE_ACL, REMOVE_USER, REMOVE_TOKEN})
WORDS = {Kind.ACL: "access control entries", Kind.USER: "SCRAM users", Kind.QUOTA: "quotas", Kind.TOKEN: "delegation tokens"}


class KraftDeclared(Struct):
    """The declarations of the records that were replayed so far."""

    acls: dict[UUID, Acl] = field(default_factory=dict)
    users: dict[str, dict[str, Credential]] = field(default_factory=dict)
    quotas: dict[Entity, dict[str, float]] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)

    def replay(self, kind: int, reader: Reader) -> None:
        """Replay one record of KINDS; raises ValueError if its bytes end too early."""
        if kind == ACL:
            self._add_acl(reader)
        elif kind == REMOVE_ACL:
            self.acls.pop(reader.uuid(), None)
        elif kind == USER:
            self._add_user(reader)
        elif kind == REMOVE_USER:
            name, mechanism = reader.string(), reader.int8()
            self.users.get(name, {}).pop(MECHANISM_NUMBERS.get(mechanism, ""), None)
        elif kind == QUOTA:
            self._set_quota(reader)
        elif kind == TOKEN:
            self._add_token(reader)
        elif kind == REMOVE_TOKEN:
            self.tokens.pop(reader.string(), None)

    def _add_acl(self, reader: Reader) -> None:
        acl_id, resource_type, name, pattern = reader.uuid(), reader.int8(), reader.string(), reader.int8()
        principal, host, operation, permission = reader.string(), reader.string(), reader.int8(), reader.int8()
        try:
            self.acls[acl_id] = Acl(
                ResourceType(resource_type),
                name,
                PatternType(pattern),
                principal,
                host,
                Operation(operation),
                Permission(permission),
            )
        except ValueError:  # a value of a later Kafka version
            self.refused[WORDS[Kind.ACL]] += 1

    def _add_user(self, reader: Reader) -> None:
        name, mechanism = reader.string(), reader.int8()
        salt, stored_key, server_key, iterations = reader.blob(), reader.blob(), reader.blob(), reader.int32()
        if mechanism in MECHANISM_NUMBERS and not name.startswith("\0"):
            credential = Credential(salt, stored_key, server_key, iterations)
            self.users.setdefault(name, {})[MECHANISM_NUMBERS[mechanism]] = credential
        else:
            self.refused[WORDS[Kind.USER]] += 1

    def _set_quota(self, reader: Reader) -> None:
        pairs: list[tuple[str, str | None]] = []
        for _ in range(reader.count()):
            pairs.append((reader.string(), reader.text()))
            reader.tagged()
        entity, key, value, removes = entity_of(pairs), reader.string(), reader.float64(), reader.int8() != 0
        if removes:
            self.quotas.get(entity, {}).pop(key, None)
            return
        try:
            check_entity(entity)
            check_quota(entity, key, value)
            self.quotas.setdefault(entity, {})[key] = value
        except KafkaError:
            self.refused[WORDS[Kind.QUOTA]] += 1

    def _add_token(self, reader: Reader) -> None:
        owner, requester = reader.string(), reader.string()
        renewers = tuple(reader.string() for _ in range(reader.count()))
        issued_ms, max_ms, expires_ms, token_id = reader.int64(), reader.int64(), reader.int64(), reader.string()
        self.tokens[token_id] = Token(token_id, owner, requester, renewers, issued_ms, expires_ms, max_ms)

    def declarations(self, secret: bytes) -> Iterator[tuple[Kind, str, Any]]:
        """All of them, converted to our declarations.

        Args:
            secret: makes unknown users look like known ones (`security.users`).
        """
        for acl in dict.fromkeys(self.acls.values()):
            yield Kind.ACL, acl_key(acl), acl_as_json(acl)
        users = {name: credentials for name, credentials in self.users.items() if credentials}
        for name, credentials in users.items():
            yield Kind.USER, name, {mechanism: encode(credential) for mechanism, credential in credentials.items()}
        if users:
            yield Kind.USER, SECRET, encode_secret(secret)
        for entity, quotas in self.quotas.items():
            if quotas:
                yield Kind.QUOTA, encode_entity(entity), quotas
        for token in self.tokens.values():
            yield Kind.TOKEN, token.token_id, token.encode()

    def notes(self) -> Iterator[str]:
        """Notes for the user about the adopted declarations."""
        if self.acls:
            yield f"{WORDS[Kind.ACL]} ({len(self.acls)}) hold where authorizer.class.name is set, beside its super.users"
        if self.tokens:
            yield f"{WORDS[Kind.TOKEN]} ({len(self.tokens)}) hold with the delegation.token.secret.key of before"
        for what, count in sorted(self.refused.items()):
            yield f"{what} ({count}) do not come along: this version does not know what they say"

    def counts(self) -> dict[str, int]:
        """The number of adopted declarations of each kind."""
        users = sum(bool(credentials) for credentials in self.users.values())
        quotas = sum(map(len, self.quotas.values()))
        numbers = {Kind.ACL: len(self.acls), Kind.USER: users, Kind.QUOTA: quotas, Kind.TOKEN: len(self.tokens)}
        return {WORDS[kind]: number for kind, number in numbers.items()}
