"""`barnabas user`: users with SCRAM passwords, in a running cluster or in metadata that no broker uses yet.

A password comes from a prompt, a file or standard input, never from an option: every user of the machine can see options. This
process sends only the salted password; the cluster stores keys derived from it.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.output import Output, output_option, report_failures
from barnabas.cli.types import DataFolder, FilePath
from barnabas.cli.zookeeper import address_of, open_store
from barnabas.error_codes import code_name

if TYPE_CHECKING:
    from barnabas.cluster.store.interface import MetadataStore
    from barnabas.security.users import Deletion, Described, Upsertion

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS = 8192
MAX_PASSWORD_BYTES = 1024
COLUMNS = {"user": "USER", "mechanisms": "MECHANISMS"}


def place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options --data-dir and --metadata, which change metadata without a broker."""
    for option in (
        click.option("--metadata", metavar="ADDRESS", help="Use this metadata instead of a broker: zookeeper://HOST:PORT,.../ROOT."),
        click.option("--data-dir", type=DataFolder(path_type=Path, file_okay=False),
                     help="Use the data folder of a stopped broker instead of a running one; created if missing."),
    ):  # fmt: skip
        function = option(function)
    return connection_options(function)


mechanism_option = click.option(
    "--mechanism", "mechanisms", type=click.Choice(MECHANISMS, case_sensitive=False), multiple=True,
    help="Repeatable.  [default: both]",
)  # fmt: skip
password_option = click.option(
    "--password-file",
    type=FilePath(),
    metavar="FILE",
    help="The password is the first line of this file; - is standard input. Without this option a prompt asks for it.",
)
iterations_option = click.option(
    "--iterations", type=click.IntRange(4096, 16384), default=ITERATIONS, show_default=True, help="Rounds of hashing."
)


@click.group(context_settings=HELP_OPTIONS)
def user() -> None:
    """Add, list and delete users who log in by SCRAM, and change their passwords."""


@user.command("add")
@click.argument("name", metavar="USER")
@mechanism_option
@password_option
@iterations_option
@place_options
@output_option
def add(output: Output, name: str, mechanisms: Sequence[str], password_file: str | None, iterations: int, **place: Any) -> None:
    """Add a user.

    With --data-dir you can add the first user before the broker's first start.
    """
    with opened(**place) as users:
        if name in {each.user for each in users.describe()}:
            raise BadInput(f"there is a user {name} already; `barnabas user password {name}` changes the password")
        wanted = mechanisms or MECHANISMS
        users.alter([], upsertions(name, wanted, read_password(password_file), iterations))
    output.done(f"added user {name} for {', '.join(wanted)}", {"user": name, "mechanisms": list(wanted)})


@user.command("password")
@click.argument("name", metavar="USER")
@mechanism_option
@password_option
@iterations_option
@place_options
@output_option
def password(
    output: Output, name: str, mechanisms: Sequence[str], password_file: str | None, iterations: int, **place: Any
) -> None:
    """Change the password of a user, for all mechanisms of the user."""
    with opened(**place) as users:
        has = [MECHANISMS[number - 1] for each in users.describe() if each.user == name for number, _ in each.infos]
        if not has:
            raise BadInput(f"there is no user {name}")
        users.alter([], upsertions(name, mechanisms or has, read_password(password_file), iterations))
    output.done(f"changed the password of user {name}", {"user": name, "mechanisms": list(mechanisms or has)})


@user.command("list")
@place_options
@output_option
def list_users(output: Output, **place: Any) -> None:
    """List users and their mechanisms."""
    with opened(**place) as users:
        described = users.describe()
    rows = [
        {"user": each.user, "mechanisms": [MECHANISMS[number - 1] for number, _ in each.infos]}
        for each in sorted(described, key=lambda each: each.user)
    ]
    output.table(rows, COLUMNS, empty="no users")


@user.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="USER...")
@mechanism_option
@place_options
@output_option
def delete(output: Output, names: Sequence[str], mechanisms: Sequence[str], **place: Any) -> int:
    """Delete users, or single mechanisms of them. Clients that are logged in stay so until their connection or session ends."""
    from barnabas.security.users import Deletion

    with opened(**place) as users:
        has = {each.user: [number for number, _ in each.infos] for each in users.describe()}
        wanted = [MECHANISMS.index(mechanism) + 1 for mechanism in mechanisms]
        deletions = [Deletion(name, number) for name in names for number in has.get(name, ()) if not wanted or number in wanted]
        if deletions:
            users.alter(deletions, [])
    deleted = sorted({each.user for each in deletions})
    if deleted:
        output.done(f"deleted {', '.join(deleted)}", {"deleted": deleted})
    return report_failures([f"there is no such user: {name}" for name in names if name not in deleted])


def read_password(file: str | None) -> str:
    """The first line of a file or of standard input, or the answer to the prompt; raises BadInput."""
    if file is None and sys.stdin.isatty():
        text = str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    elif file in {None, "-"}:
        text = sys.stdin.readline(MAX_PASSWORD_BYTES + 3).rstrip("\r\n")
    else:
        assert file is not None
        try:
            with open(file, encoding="utf-8") as opened:
                text = opened.readline(MAX_PASSWORD_BYTES + 3).rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(
                f"--password-file: {file} cannot be read ({getattr(error, 'strerror', None) or 'no UTF-8'})"
            ) from error
    if not 0 < len(text.encode()) <= MAX_PASSWORD_BYTES:
        raise BadInput(f"a password has 1 to {MAX_PASSWORD_BYTES} bytes")
    return text


def upsertions(name: str, mechanisms: Sequence[str], password: str, iterations: int) -> list[Upsertion]:
    from barnabas.security.scram import SALT_BYTES, salted
    from barnabas.security.users import Upsertion

    made = []
    for mechanism in dict.fromkeys(mechanisms):
        salt = secrets.token_bytes(SALT_BYTES)
        number = MECHANISMS.index(mechanism) + 1
        made.append(Upsertion(name, number, iterations, salt, salted(mechanism, password, salt, iterations)))
    return made


class _Users:
    """A store of users, to read and to change."""

    def describe(self) -> list[Described]:
        raise NotImplementedError

    def alter(self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]) -> None:
        """Raises Failure for the first change that is refused."""
        raise NotImplementedError


class _Running(_Users):
    """Users of a running cluster."""

    def __init__(self, wire: Any) -> None:
        self._wire = wire

    def describe(self) -> list[Described]:
        from barnabas.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
        from barnabas.security.users import Described

        answer = self._wire.request(DescribeUserScramCredentialsRequest(users=None))
        _refuse("cannot list users", answer.error_code, answer.error_message)
        return [
            Described(each.user, tuple((info.mechanism, info.iterations) for info in each.credential_infos))
            for each in answer.results
            if not each.error_code
        ]

    def alter(self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]) -> None:
        from barnabas.protocol.messages.alter_user_scram_credentials import (
            AlterUserScramCredentialsRequest,
            ScramCredentialDeletion,
            ScramCredentialUpsertion,
        )

        numbers = {each.mechanism for each in deletions} | {each.mechanism for each in upsertions}
        for number in sorted(numbers):  # Apache Kafka refuses a request that names a user twice
            request = AlterUserScramCredentialsRequest(
                deletions=[
                    ScramCredentialDeletion(name=each.user, mechanism=number) for each in deletions if each.mechanism == number
                ],
                upsertions=[
                    ScramCredentialUpsertion(name=each.user, **_without_user(each))
                    for each in upsertions
                    if each.mechanism == number
                ],
            )
            for result in self._wire.request(request).results:
                _refuse(f"user {result.user}", result.error_code, result.error_message)


def _without_user(upsertion: Upsertion) -> dict[str, Any]:
    """The fields of `upsertion` without the user name, which the protocol's messages have in common."""
    return {name: value for name, value in upsertion._asdict().items() if name != "user"}


class _Stored(_Users):
    """Users in metadata, without a broker."""

    def __init__(self, store: MetadataStore) -> None:
        from barnabas.cluster.metadata import store_entries
        from barnabas.cluster.metadata.declared import Kind

        self._store = store
        self._entries = {store_entries.declaration_of_path(entry.path): entry for entry in store.list(f"/{Kind.USER.value}/")}
        self._declared: Mapping[str, Any] = {
            key[1]: store_entries.decode(entry.value) for key, entry in self._entries.items() if key is not None
        }

    def describe(self) -> list[Described]:
        from barnabas.security.users import describe

        return describe(self._declared, None)

    def alter(self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]) -> None:
        from barnabas.cluster.metadata import store_entries
        from barnabas.cluster.metadata.declared import Kind
        from barnabas.cluster.store.interface import ABSENT, Put, Remove
        from barnabas.security.users import SECRET_BYTES, alter

        errors, changed = alter(self._declared, deletions, upsertions, secret=secrets.token_bytes(SECRET_BYTES))
        for name, error in errors.items():
            if error is not None:
                raise Failure(f"user {name}: {error.message}")
        operations: list[Put | Remove] = []
        for name, fields in changed.items():
            path, found = store_entries.declaration_path(Kind.USER, name), self._entries.get((Kind.USER, name))
            version = ABSENT if found is None else found.version
            operations.append(Remove(path, version) if fields is None else Put(path, store_entries.encode(fields), version))
        self._store.commit(operations)


@contextmanager
def opened(
    *, connection: Connection | None = None, data_dir: Path | None = None, metadata: str | None = None
) -> Iterator[_Users]:
    """The store of users that the options name: a folder, a cluster's metadata, or the brokers of a connection."""
    if data_dir is not None and metadata is not None:
        raise click.UsageError("--data-dir or --metadata, not both")
    if data_dir is not None:
        from barnabas.cli.data_folder import locked
        from barnabas.cluster.store.embedded import EmbeddedStore

        data_dir.mkdir(parents=True, exist_ok=True)
        with locked(data_dir), EmbeddedStore(data_dir) as store:
            yield _Stored(store)
    elif metadata is not None:
        with open_store(address_of(metadata)) as store:
            yield _Stored(store)
    else:
        assert connection is not None, "somewhere they are"
        with connection.wire() as wire:
            yield _Running(wire)


def _refuse(what: str, code: int, message: str | None) -> None:
    if code:
        raise Failure(f"{what}: {message or code_name(code)}")
