"""Key stores with one fault each, with and without a password: the setting and the reason that are named are the true ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from barnabas.errors import ConfigError
from barnabas.tls.contexts import server_context
from barnabas.tls.settings import client_settings

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
SUITES = "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,DEFAULT@SECLEVEL=0"
STORE, PASSWORD_KEY = "ssl.keystore.location", "ssl.key.password"
# `cryptography` does not sign with SHA-1 and makes no keys in RC2 or DES. The program openssl made these.
SHA1 = """-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQggukZWdATmECTr4en
CFplK4dts79WfdJBkqzr9lsyIQChRANCAAQxgi6vPfV6DHPkZGGlEm3tZdTHmz0o
5A1/A6KswHmRz/sLAL217sfwzkUi+EictH7W6BMM9WjrIeUYL6OGoDcE
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBGDCBwAIUG5QC1z3SKDJiAnEZrfMqTJgSKWQwCQYHKoZIzj0EATANMQswCQYD
VQQDDAJjYTAgFw0yNjExMjgyMTEwMzFaGA8yMTI2MTEwNDIxMTAzMVowETEPMA0G
A1UEAwwGYnJva2VyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMYIurz31egxz
5GRhpRJt7WXUx5s9KOQNfwOirMB5kc/7CwC9te7H8M5FIvhInLR+1ugTDPVo6yHl
GC+jhqA3BDAJBgcqhkjOPQQBA0gAMEUCIQD4LOU7EIeXrdwsAm3ZP3yygZ95vOZN
bFbnSsDYogYX4gIgbeDabXBewET2u+N0bVg/oa0V2Xs0miu/7esSqlbqeV8=
-----END CERTIFICATE-----
"""
IN_DES = """-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHgMEsGCSqGSIb3DQEFDTA+MCkGCSqGSIb3DQEFDDAcBAi1RQg4xaa9jQICCAAw
DAYIKoZIhvcNAgkFADARBgUrDgMCBwQIUWQc1d8OzZsEgZCDmhJY4ePtLn9lWovv
O3PBqqgw38X/eNhF+w2LMnr8VWaxB+1InpE4SRIK/eUl7qN4BbXOxcdpw4qLmaId
I9B9nuB2i4sblQebvhkysXjtRsGq3BEV4YB1BJnfSvGqmQjRQL2FNCkH+nmdXcHE
eUqYPCU+xTzdk0MeqzA+H7fhp7KqYxQh0h/cgIym37LEIF8=
-----END ENCRYPTED PRIVATE KEY-----
"""
IN_RC2 = """-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHrMFYGCSqGSIb3DQEFDTBJMCwGCSqGSIb3DQEFDDAfBAgjeLZc9Xka2QICCAAC
ARAwDAYIKoZIhvcNAgkFADAZBggqhkiG9w0DAjANAgE6BAgmzbU5nJH97ASBkG2w
1yk/PHBPB+DYOhrsKxs89eakIldWBlkXBaOkyaqpawR/HSfroGp27qoK7H4xJ/1x
7n/8k/IYl4qYg2LUJm4PgVZHu6ouHSXXEypHhTATT3El5zZcMDlyv7vnLnHUojjJ
pT5dyuKy5wl/4Cq41kHlHMsUi2bxlOgqTcN6e655A4mvIsT0pFk5qNFXiiaAzw==
-----END ENCRYPTED PRIVATE KEY-----
"""


@cache
def key_of(what: str) -> Key:
    return rsa.generate_private_key(65537, 1024) if what == "short" else ec.generate_private_key(ec.SECP256R1())


def name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificate(key: Key, *, ends_in_days: int = 10) -> str:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name("broker")).issuer_name(name("ca")).serial_number(1)
    builder = builder.not_valid_before(now - timedelta(days=99)).not_valid_after(now + timedelta(days=ends_in_days))
    return builder.public_key(key.public_key()).sign(key_of("ca"), SHA256()).public_bytes(Encoding.PEM).decode()


def text_of(key: Key, password: str | None) -> str:
    encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def good(password: str | None = None) -> str:
    return text_of(key_of("broker"), password) + certificate(key_of("broker"))


def damaged_certificate(password: str | None) -> str:
    shown = certificate(key_of("broker"))
    return text_of(key_of("broker"), password) + shown[:200] + shown[280:]


def damaged_key(password: str | None) -> str:
    shown = text_of(key_of("broker"), password)
    return shown[:80] + shown[100:] + certificate(key_of("broker"))


FAULTS: dict[str, tuple[Callable[[str | None], str], str]] = {
    "another key": (lambda p: text_of(key_of("other"), p) + certificate(key_of("broker")), "do not belong together"),
    "a short key": (lambda p: text_of(key_of("short"), p) + certificate(key_of("short")), "a certificate with a longer key"),
    "a damaged certificate": (damaged_certificate, "number 1 in the text is damaged"),
    "a damaged key": (damaged_key, "a private key that can be read; this one is damaged"),
    "no key": (lambda _: certificate(key_of("broker")), "there is no private key"),
    "no certificate": (lambda p: text_of(key_of("broker"), p), "there is no certificate"),
    "a signature with SHA-1": (lambda _: SHA1, "signed with SHA-256 or better"),
}


def refused(folder: Path, text: str, **options: str) -> ConfigError:
    store = folder / "store.pem"
    store.write_text(text)
    with pytest.raises(ConfigError) as caught:
        server_context(client_settings({STORE: str(store), **options}))
    assert "secret" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("password", [None, "secret"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_true_reason_is_named(tmp_path: Path, fault: str, password: str | None) -> None:
    make, said = FAULTS[fault]
    error = refused(tmp_path, make(password), **({} if password is None else {PASSWORD_KEY: password}))
    assert (error.key, said in error.allowed) == (STORE, True), error


def test_a_wrong_password_is_blamed_where_it_is_wrong(tmp_path: Path) -> None:
    error = refused(tmp_path, good("secret"), **{PASSWORD_KEY: "wrong"})
    assert (error.key, error.allowed) == (PASSWORD_KEY, "the password of the private key")


@pytest.mark.parametrize("key", [IN_DES, IN_RC2], ids=["DES", "RC2"])
def test_an_encryption_that_openssl_does_not_have_is_named(tmp_path: Path, key: str) -> None:
    error = refused(tmp_path, key + certificate(key_of("broker")), **{PASSWORD_KEY: "secret"})
    assert (error.key, "in an encryption that OpenSSL has" in error.allowed) == (STORE, True), error


@pytest.mark.parametrize(("what", "key"), [("certificate", "ssl.certificate.location"), ("key", "ssl.key.location")])
def test_the_file_with_the_fault_is_named(tmp_path: Path, what: str, key: str) -> None:
    texts = {"certificate": certificate(key_of("broker")), "key": text_of(key_of("broker"), None)}
    texts[what] = (damaged_certificate if what == "certificate" else damaged_key)(None)
    for each, text in texts.items():
        (tmp_path / each).write_text(text)
    options = {"ssl.certificate.location": str(tmp_path / "certificate"), "ssl.key.location": str(tmp_path / "key")}
    with pytest.raises(ConfigError) as caught:
        server_context(client_settings(options))
    assert caught.value.key == key


@pytest.mark.parametrize("text", [
    lambda: text_of(key_of("broker"), "secret") + certificate(key_of("broker"), ends_in_days=-1),
    lambda: good("secret"),
    lambda: good(None),
], ids=["expired", "encrypted", "password without need"])  # fmt: skip
def test_what_kafka_loads_is_loaded(tmp_path: Path, text: Callable[[], str]) -> None:
    (tmp_path / "store.pem").write_text(text())
    server_context(client_settings({STORE: str(tmp_path / "store.pem"), PASSWORD_KEY: "secret"}))


@pytest.mark.parametrize("text", [lambda: SHA1, lambda: FAULTS["a short key"][0](None)], ids=["SHA-1", "short"])
def test_the_way_out_that_the_documentation_names(tmp_path: Path, text: Callable[[], str]) -> None:
    (tmp_path / "store.pem").write_text(text())
    server_context(client_settings({STORE: str(tmp_path / "store.pem"), "ssl.cipher.suites": SUITES}))
