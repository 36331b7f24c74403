"""OAUTHBEARER: the exchange, what claims make a token good, and whose signature does."""

from __future__ import annotations

from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas import limits
from barnabas.security.exchange import AuthenticationFailed, Identity
from barnabas.security.jwt_keys import BadKeys, KeySet, UnknownKey
from barnabas.security.oauth import OAuthExchange, TokenRefused, TokenRules, check_claims, read_unsecured
from tests.security.tokens import NOW_S, Provider, key_set, unsecured

NOW_MS = NOW_S * 1000
GOOD: dict[str, Any] = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 300}
INVALID = b'{"status":"invalid_token"}'


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


def only(token: str) -> Identity:
    if token != "good":
        raise TokenRefused("another")
    return Identity("alice", 5)


def first(token: str = "good", authorization: str = "", more: str = "") -> bytes:
    return f"n,{authorization},\x01auth=Bearer {token}\x01{more}\x01".encode()


@pytest.mark.parametrize("message", [first(), first(authorization="a=alice"), first(more="traceId=1 2\x01"), first(" good ")])
def test_a_good_token_is_who_it_says(message: bytes) -> None:
    exchange = OAuthExchange(only)
    assert exchange.evaluate(message) == b""
    assert exchange.identity == Identity("alice", 5)
    with pytest.raises(AuthenticationFailed, match="too many"):
        exchange.evaluate(message)


def test_a_refusal_is_told_as_json_and_then_fails() -> None:
    for last, told in ((b"\x01", INVALID.decode()), (first(), None)):
        exchange = OAuthExchange(only)
        assert exchange.evaluate(first("bad")) == INVALID
        with pytest.raises(AuthenticationFailed) as caught:
            exchange.evaluate(last)
        assert caught.value.told == told
        assert exchange.identity is None


def test_another_authorization_id() -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        OAuthExchange(only).evaluate(first(authorization="a=bob"))
    assert caught.value.told is not None
    assert "(bob) that is different from the token's principal name (alice)" in caught.value.told


@given(
    st.binary(max_size=40)
    | st.sampled_from(
        [
            b"y,,\x01auth=Bearer good\x01\x01",
            b"n,,\x01\x01",
            b"n,,\x01auth=Basic good\x01\x01",
            b"n,,\x01auth=Bearer \x01\x01",
            b"\x01",
        ]
    )
)
def test_what_cannot_be_read_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        OAuthExchange(only).evaluate(message)


def test_a_message_that_is_too_long() -> None:
    with pytest.raises(AuthenticationFailed, match="too long"):
        OAuthExchange(only).evaluate(first("x" * limits.MAX_BEARER_BYTES))


def refusal(claims: dict[str, Any], rules: TokenRules, now_ms: int = NOW_MS) -> str:
    try:
        check_claims(claims, rules, now_ms)
    except TokenRefused as refused:
        return refused.reason
    return ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""), ({"aud": "x", "iss": "y", "scope": ["a", "b"]}, ""),
        ({"exp": None}, "no time"), ({"iat": None}, "no time"), ({"exp": "soon"}, "exp is no time"), ({"exp": True}, "is no time"),
        ({"exp": 1e300}, "is no time"), ({"exp": NOW_S - 29}, "before it was issued"), ({"exp": NOW_S - 29, "iat": 1}, ""),
        ({"exp": NOW_S - 30, "iat": 1}, "expired"),
        ({"nbf": NOW_S + 30}, ""), ({"nbf": NOW_S + 31}, "has not come"), ({"iat": NOW_S + 299}, ""),
        ({"sub": None}, "no sub"), ({"sub": " "}, "no sub"), ({"sub": 7}, "no sub"),
        ({"scope": ["a", "a"]}, "twice"), ({"scope": 5}, "no text"), ({"scope": [5]}, "no text"),
    ],
)  # fmt: skip
def test_claims_of_a_signed_token(changes: dict[str, Any], reason: str) -> None:
    assert reason in refusal(GOOD | changes, TokenRules())
    assert bool(reason) == bool(refusal(GOOD | changes, TokenRules()))


def test_issuer_and_audience_where_they_are_expected() -> None:
    rules = TokenRules(issuer="https://id", audiences=("kafka", "barnabas"))
    for claims, reason in (
        ({}, "issuer"), ({"iss": "https://other", "aud": "kafka"}, "issuer"), ({"iss": "https://id"}, "audience"),
        ({"iss": "https://id", "aud": ["x", "barnabas"]}, ""), ({"iss": "https://id", "aud": "kafka"}, ""),
    ):  # fmt: skip
        assert reason in refusal(GOOD | claims, rules)
        assert bool(reason) == bool(refusal(GOOD | claims, rules))


def test_names_of_claims_groups_and_the_end() -> None:
    rules = TokenRules(subject_claim="client_id", scope_claim="scp")
    claims = GOOD | {"client_id": " app ", "scp": "a", "scope": ["a", "a"], "groups": ["ops"]}
    assert check_claims(claims, rules, NOW_MS) == Identity("app", (NOW_S + 300) * 1000, groups=("ops",))


def test_tokens_without_a_signature() -> None:
    rules = TokenRules(signed=False, clock_skew_ms=0, required_scope=("a", "b"))
    claims = read_unsecured(unsecured(scope=["b", "a"]))
    assert check_claims(claims, rules, NOW_MS).user == "alice"
    with pytest.raises(TokenRefused) as caught:
        check_claims(read_unsecured(unsecured(scope="a")), rules, NOW_MS)
    exchange = OAuthExchange(lambda _: (_ for _ in ()).throw(caught.value))
    assert exchange.evaluate(first()) == b'{"status":"insufficient_scope", "scope":"a b"}'
    for token in ("", "a.b", "a.b.c", "!.!.", jwt.encode(GOOD, "x" * 32, algorithm="HS256").rpartition(".")[0] + "."):
        with pytest.raises(TokenRefused):
            read_unsecured(token)


@pytest.mark.parametrize("kind", ["RS256", "PS512", "ES256"])
@pytest.mark.parametrize("key_id", ["one", None])
def test_a_token_is_signed_by_a_key_of_the_provider(kind: str, key_id: str | None) -> None:
    provider = Provider(key_id, kind)
    keys = KeySet(key_set(Provider("two").public(), provider.public()))
    assert keys.claims_of(provider.sign(groups=["ops"]))["groups"] == ["ops"]
    with pytest.raises(TokenRefused):
        keys.claims_of(Provider(key_id, kind).sign())


def test_the_key_says_the_algorithm(provider: Provider) -> None:
    token = provider.sign()
    assert KeySet(key_set(provider.public(alg="RS256"))).claims_of(token)["sub"] == "alice"
    with pytest.raises(TokenRefused):
        KeySet(key_set(provider.public(alg="PS256"))).claims_of(token)
    for odd in ({"alg": "none"}, {"use": "enc"}, {"kty": "oct", "k": "c2VjcmV0"}, {"kty": "MAGIC"}):
        assert len(KeySet(key_set(provider.public(**odd)))) == 0


def test_a_key_that_cannot_be_read_is_passed_over(provider: Provider) -> None:
    keys = KeySet(key_set({"kty": "OKP", "crv": "X25519", "x": "AAAA", "kid": "odd"}, provider.public()))
    assert keys.claims_of(provider.sign())["sub"] == "alice"


def test_what_is_no_token_of_the_provider(provider: Provider) -> None:
    keys = KeySet(key_set(provider.public()))
    with pytest.raises(UnknownKey):
        keys.claims_of(Provider("two").sign())
    head, body, signature = provider.sign().split(".")
    public = str(provider.public()["n"])
    forged = jwt.encode(GOOD, public, algorithm="HS256", headers={"kid": "one"})
    for token in ("", "a.b.c", unsecured(), forged, f"{head}.{body}.", f"{head}.{body[:-3]}AAA.{signature}", f"{head}.{body}"):
        with pytest.raises(TokenRefused):
            keys.claims_of(token)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": 5}',
        '{"keys": [{"kty": "RSA", "n": "!"}]}',
        "[" * 100_000,
        key_set(*[{}] * (limits.MAX_JWKS_KEYS + 1)),
    ],
    ids=range(7),
)
def test_what_is_no_set_of_keys(text: str) -> None:
    with pytest.raises(BadKeys):
        KeySet(text)
