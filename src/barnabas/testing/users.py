"""Users of a test broker: the settings that require a log-in, and their passwords in the broker's data folder."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.store.embedded import EmbeddedStore
from barnabas.cluster.store.interface import Put
from barnabas.config.jaas import quote
from barnabas.security.scram import HASHES, MIN_ITERATIONS, SALT_BYTES, credential_of
from barnabas.security.users import SECRET, SECRET_BYTES, encode, encode_secret

MECHANISMS = ("PLAIN", *HASHES)
LISTENERS, TLS_LISTENERS = "SASL_PLAINTEXT://127.0.0.1:0", "SASL_SSL://127.0.0.1:0"
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def settings_for(users: Mapping[str, str], *, tls: bool = False) -> dict[str, str]:
    """Broker settings that let `users` (passwords by name) log in with every mechanism that uses passwords."""
    options = " ".join(f"{quote(f'user_{user}')}={quote(password)}" for user, password in users.items())
    return {
        "listeners": TLS_LISTENERS if tls else LISTENERS,
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.jaas.config": f"{PLAIN_LOGIN} required {options};",
    }


def store_users(data_dir: Path, users: Mapping[str, str]) -> None:
    """Write the users into the metadata of a stopped broker, if they are missing."""
    with EmbeddedStore(data_dir) as store:
        wanted = {
            user: {
                mechanism: encode(credential_of(mechanism, password, secrets.token_bytes(SALT_BYTES), MIN_ITERATIONS))
                for mechanism in HASHES
            }
            for user, password in users.items()
            if store.get(store_entries.declaration_path(Kind.USER, user)) is None
        }
        if wanted and store.get(store_entries.declaration_path(Kind.USER, SECRET)) is None:
            wanted[SECRET] = encode_secret(secrets.token_bytes(SECRET_BYTES))
        if wanted:
            store.commit(
                [
                    Put(store_entries.declaration_path(Kind.USER, user), store_entries.encode(kept))
                    for user, kept in wanted.items()
                ]
            )
