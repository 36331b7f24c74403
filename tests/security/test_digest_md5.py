"""DIGEST-MD5, held against the example of RFC 2831 and against challenges that are wrong."""

from __future__ import annotations

import pytest

from barnabas.security.digest_md5 import BadChallenge, Login, answer, check_server

LOGIN = Login("chris", "secret", "imap/elwood.innosoft.com")
CHALLENGE = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
NONCE = "OA6MHXh6VqTrRk"


def test_the_example_of_the_rfc() -> None:
    response, expected = answer(LOGIN, CHALLENGE, NONCE)
    parts = dict(part.split("=", 1) for part in response.decode().split(","))
    assert parts == {
        "charset": "utf-8",
        "username": '"chris"',
        "realm": '"elwood.innosoft.com"',
        "nonce": '"OA6MG9tEQGm2hh"',
        "nc": "00000001",
        "cnonce": '"OA6MHXh6VqTrRk"',
        "digest-uri": '"imap/elwood.innosoft.com"',
        "response": "d388dad90d4bbd760a152321f2143af7",
        "qop": "auth",
    }
    assert expected == "ea40f60335c427b5527b84dbabcdfffd"
    check_server(expected, b"rspauth=ea40f60335c427b5527b84dbabcdfffd")


def test_names_that_need_escapes_stay_in_their_quotes() -> None:
    response, _ = answer(Login('a"b\\,c', "x", "u/h"), CHALLENGE, NONCE)
    assert b'username="a\\"b\\\\,c",realm=' in response


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (b"", "without a nonce"),
        (b'realm="x"', "without a nonce"),
        (b'nonce="x",algorithm=md5', "another algorithm"),
        (b'nonce="x",qop="auth-conf"', "quality of protection"),
        (b'nonce="x', "character 1"),
        (b'nonce="x",=', "character 11"),
        (b"\xff", "no text"),
    ],
)
def test_challenges_that_cannot_be_answered(challenge: bytes, reason: str) -> None:
    with pytest.raises(BadChallenge, match=reason):
        answer(LOGIN, challenge, NONCE)


@pytest.mark.parametrize(
    "message", [b"", b"rspauth=ea40f60335c427b5527b84dbabcdfffe", b'rspauth=""', b"nonce=x", "rspauth=é".encode()]
)
def test_a_server_that_does_not_know_the_password(message: bytes) -> None:
    with pytest.raises(BadChallenge, match="does not know the password"):
        check_server(answer(LOGIN, CHALLENGE, NONCE).expected, message)


def test_no_text_shows_the_password() -> None:
    assert "secret" not in repr(LOGIN)
