"""The exchange of SCRAM, by the example of RFC 7677 and by a client of the test's own."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.exchange import AuthenticationFailed, Identity
from barnabas.security.scram import HASHES, Credential, ScramExchange, credential_of, unknown

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
MECHANISMS = sorted(HASHES)


class Client:
    """A client by RFC 5802."""

    def __init__(self, mechanism: str, user: str, password: str) -> None:
        self._name = HASHES[mechanism]
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r=client"
        self._password = password

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, answer: bytes, nonce_before: str = "") -> bytes:
        fields = dict(part.split("=", 1) for part in answer.decode().split(","))
        salted = hashlib.pbkdf2_hmac(self._name, self._password.encode(), b64decode(fields["s"]), int(fields["i"]))
        client_key = hmac.digest(salted, b"Client Key", self._name)
        without_proof = f"c=biws,r={nonce_before}{fields['r']}"
        self._auth = f"{self._bare},{answer.decode()},{without_proof}".encode()
        self._server_key = hmac.digest(salted, b"Server Key", self._name)
        signature = hmac.digest(hashlib.new(self._name, client_key).digest(), self._auth, self._name)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def trusts(self, answer: bytes) -> bool:
        return b64decode(answer.removeprefix(b"v=")) == hmac.digest(self._server_key, self._auth, self._name)


def exchange(mechanism: str, credential: Credential) -> ScramExchange:
    return ScramExchange(mechanism, lambda user, _: (credential, Identity(user)), "server")


def test_the_example_of_the_rfc() -> None:
    credential = credential_of("SCRAM-SHA-256", "pencil", SALT, 4096)
    server = ScramExchange("SCRAM-SHA-256", lambda user, _: (credential, Identity(user)), "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first = server.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert server.evaluate(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.identity == Identity("user")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["alice", "a,b=c", "=2C"])
def test_who_knows_the_password_gets_in_and_the_server_proves_itself(mechanism: str, user: str) -> None:
    server = exchange(mechanism, credential_of(mechanism, "geheim", SALT, 4096))
    client = Client(mechanism, user, "geheim")
    assert client.trusts(server.evaluate(client.final(server.evaluate(client.first()))))
    assert server.identity == Identity(user)


class PostgresClient(Client):
    """A client that names no user."""

    def __init__(self, named: str, password: str) -> None:
        super().__init__("SCRAM-SHA-256", "x", password)
        self._bare = f"n={named},r=client"

    def relayed(self, user: str) -> bytes:
        return f"n,a={user},{self._bare}".encode()


@pytest.mark.parametrize("named", ["", "*"])
def test_a_relayed_client_that_names_no_user(named: str) -> None:
    server, client = (
        exchange("SCRAM-SHA-256", credential_of("SCRAM-SHA-256", "geheim", SALT, 4096)),
        PostgresClient(named, "geheim"),
    )
    assert client.trusts(server.evaluate(client.final(server.evaluate(client.relayed("a=2Cb")))))
    assert server.identity == Identity("a,b")
    server, client = (
        exchange("SCRAM-SHA-256", credential_of("SCRAM-SHA-256", "geheim", SALT, 4096)),
        PostgresClient(named, "falsch"),
    )
    final = client.final(server.evaluate(client.relayed("alice")))
    with pytest.raises(AuthenticationFailed):
        server.evaluate(final)
    assert server.identity is None


@pytest.mark.parametrize(
    "first", [b"n,,n=,r=client", b"n,a=,n=,r=client", b"n,b=alice,n=,r=client", b"n,a=alice,n=bert,r=client"]
)
def test_a_name_that_is_neither_the_users_nor_relayed(first: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        exchange("SCRAM-SHA-256", credential_of("SCRAM-SHA-256", "geheim", SALT, 4096)).evaluate(first)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_and_an_unknown_user_fail_alike(mechanism: str) -> None:
    reasons = []
    for credential in (credential_of(mechanism, "geheim", SALT, 4096), unknown(mechanism, "alice", b"secret")):
        server, client = exchange(mechanism, credential), Client(mechanism, "alice", "falsch")
        final = client.final(server.evaluate(client.first()))
        with pytest.raises(AuthenticationFailed) as caught:
            server.evaluate(final)
        reasons.append(caught.value.reason)
        assert server.identity is None
    assert reasons[0] == reasons[1]


def test_an_unknown_user_has_the_same_salt_at_each_attempt() -> None:
    mechanism = MECHANISMS[0]
    assert unknown(mechanism, "alice", b"s") == unknown(mechanism, "alice", b"s")
    assert unknown(mechanism, "alice", b"s").salt != unknown(mechanism, "bob", b"s").salt
    assert unknown(mechanism, "alice", b"s").salt != unknown(mechanism, "alice", b"t").salt


@pytest.mark.parametrize(
    "message",
    [
        b"", b"n", b"n,,", b"n,,n=user", b"n,,n=user,r=", b"p=tls-unique,,n=user,r=x", b"n,,r=x,n=user", b"n,,n=,r=x",
        b"n,a=other,n=user,r=x", b"n,,n=us=er,r=x", b"\xff\xfe", b"n,,n=user,r=" + b"x" * 5000,
    ],
)  # fmt: skip
def test_a_first_message_that_cannot_be_read(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        exchange(MECHANISMS[0], unknown(MECHANISMS[0], "user", b"s")).evaluate(message)


@pytest.mark.parametrize(
    "message",
    [
        b"", b"c=biws", b"c=biws,r=xserver", b"c=biws,r=xserver,p=", b"c=biws,r=xserver,p=!!!!", b"c=biws,r=other,p=AAAA",
        b"c=eSws,r=xserver,p=AAAA", b"c=biws,r=xserver,p=AAAA",
    ],
)  # fmt: skip
def test_a_final_message_that_does_not_fit(message: bytes) -> None:
    server = exchange(MECHANISMS[0], credential_of(MECHANISMS[0], "geheim", SALT, 4096))
    server.evaluate(b"n,,n=user,r=x")
    with pytest.raises(AuthenticationFailed):
        server.evaluate(message)
    assert server.identity is None


@given(st.lists(st.binary(max_size=60) | st.text(max_size=60).map(str.encode), min_size=1, max_size=3))
def test_garbage_never_gets_in(messages: list[bytes]) -> None:
    server = exchange(MECHANISMS[0], unknown(MECHANISMS[0], "user", b"s"))
    for message in [b"n,,n=user,r=x", *messages]:
        try:
            server.evaluate(message)
        except AuthenticationFailed:
            break
    assert server.identity is None


def test_nothing_comes_after_the_end() -> None:
    server, client = (
        exchange(MECHANISMS[0], credential_of(MECHANISMS[0], "geheim", SALT, 4096)),
        Client(MECHANISMS[0], "a", "geheim"),
    )
    server.evaluate(client.final(server.evaluate(client.first())))
    with pytest.raises(AuthenticationFailed, match="too many"):
        server.evaluate(client.first())


def test_a_token_is_looked_for_where_the_client_says_that_it_has_one() -> None:
    asked = []

    def find(name: str, by_token: bool) -> tuple[Credential, Identity]:
        asked.append((name, by_token))
        return unknown(MECHANISMS[0], name, b"s"), Identity("owner", by_token=True)

    for extension in ("", ",tokenauth=true", ",tokenauth=false"):
        ScramExchange(MECHANISMS[0], find, "server").evaluate(f"n,,n=id,r=x{extension}".encode())
    assert asked == [("id", False), ("id", True), ("id", False)]


def test_an_unknown_user_looks_like_one_who_exists() -> None:
    like = credential_of(MECHANISMS[0], "geheim", b"x" * 31, 8192)
    made = unknown(MECHANISMS[0], "alice", b"s", like)
    assert (len(made.salt), made.iterations) == (31, 8192)


def test_the_nonce_may_have_the_clients_part_twice_as_old_librdkafka_sends_it() -> None:
    mechanism = MECHANISMS[0]
    server, client = exchange(mechanism, credential_of(mechanism, "geheim", SALT, 4096)), Client(mechanism, "alice", "geheim")
    first = server.evaluate(client.first()).decode()
    server.evaluate(client.final(first.encode(), nonce_before="client"))
    assert server.identity == Identity("alice")
