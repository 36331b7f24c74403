"""Key stores and trust stores of every format, and what is said of those that do not do."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from barnabas.errors import ConfigError
from barnabas.testing.certificates import PASSWORD, Certificates
from barnabas.tls.contexts import client_context, openssl_name, server_context
from barnabas.tls.settings import TlsSettings, client_settings
from barnabas.tls.source import ContextSource


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("stores") / "authority")


def shakes_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """The version that both agree on, over memory; raises SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    open_ends = list(ends)
    while open_ends:
        for end in list(open_ends):
            try:
                end.do_handshake()
                open_ends.remove(end)
            except ssl.SSLWantReadError:
                continue
    ends[1].write(b"hello")
    assert ends[0].read() == b"hello"
    return ends[0].version()


def both_contexts(options: Mapping[str, str]) -> None:
    server_context(client_settings(options))
    client_context(client_settings(options))


def encrypted(key: Path, password: str) -> str:
    private = load_pem_private_key(key.read_bytes(), None)
    encryption = BestAvailableEncryption(password.encode())
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def on_one_line(pem: str) -> str:
    return pem.replace("\n", " ")


@pytest.mark.parametrize("kind", ["combined", "pkcs12", "pkcs12 of no type", "separate", "inline", "one line", "encrypted"])
def test_keys_of_every_format_do_for_both_sides(certificates: Certificates, tmp_path: Path, kind: str) -> None:
    files = certificates.broker
    chain, key = files.certificate.read_text(), files.key.read_text()
    (tmp_path / "encrypted.pem").write_text(encrypted(files.key, "secret") + chain)
    options = {
        "combined": {"ssl.keystore.location": str(files.combined), "ssl.keystore.type": "PEM"},
        "pkcs12": {
            "ssl.keystore.location": str(files.keystore),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": PASSWORD,
        },
        "pkcs12 of no type": {"ssl.keystore.location": str(files.keystore), "ssl.keystore.password": PASSWORD},
        "separate": {"ssl.certificate.location": str(files.certificate), "ssl.key.location": str(files.key)},
        "inline": {"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain},
        "one line": {"ssl.key.pem": on_one_line(key), "ssl.certificate.pem": on_one_line(chain)},
        "encrypted": {"ssl.keystore.location": str(tmp_path / "encrypted.pem"), "ssl.key.password": "secret"},
    }[kind]
    trust = {"ssl.truststore.location": certificates.ca_file}
    context = server_context(client_settings(options))
    assert shakes_hands(context, client_context(client_settings({**trust, **options}))) == "TLSv1.3"


@pytest.mark.parametrize("kind", ["pem", "pkcs12", "inline", "of librdkafka"])
def test_trust_of_every_format(certificates: Certificates, kind: str) -> None:
    options = {
        "pem": {"ssl.truststore.location": certificates.ca_file},
        "pkcs12": {"ssl.truststore.location": str(certificates.authority.truststore), "ssl.truststore.password": PASSWORD},
        "inline": {"ssl.truststore.certificates": on_one_line(certificates.authority.ca_file.read_text())},
        "of librdkafka": {"ssl.ca.location": certificates.ca_file},
    }[kind]
    server = server_context(TlsSettings(keystore_location=str(certificates.broker.combined)))
    assert shakes_hands(server, client_context(client_settings(options)))


@pytest.mark.parametrize(
    ("options", "key", "said"),
    [
        ({}, "ssl.keystore.location", "needs a certificate"),
        ({"keystore.location": "missing"}, "ssl.keystore.location", "No such file"),
        ({"keystore.location": "jks"}, "ssl.keystore.location", "keytool -importkeystore"),
        ({"keystore.location": "p12", "keystore.password": "wrong"}, "ssl.keystore.location", "opens with ssl.keystore.password"),
        ({"keystore.location": "p12"}, "ssl.keystore.location", "opens with ssl.keystore.password"),
        ({"keystore.location": "pem", "keystore.type": "DER"}, "ssl.keystore.type", "PEM or PKCS12"),
        ({"keystore.location": "pem", "keystore.type": "PEM", "keystore.password": "x"}, "ssl.keystore.password", "nothing for a"),
        ({"keystore.location": "certificate"}, "ssl.keystore.location", "there is no private key"),
        ({"keystore.location": "key"}, "ssl.keystore.location", "there is no certificate"),
        ({"keystore.location": "noise"}, "ssl.keystore.location", "which is text"),
        ({"keystore.location": "encrypted"}, "ssl.key.password", "which is encrypted"),
        ({"keystore.location": "encrypted", "key.password": "wrong"}, "ssl.key.password", "the password of the private key"),
        ({"keystore.location": "mixed"}, "ssl.keystore.location", "do not belong together"),
        ({"keystore.location": "broken"}, "ssl.keystore.location", "that OpenSSL takes"),
        ({"keystore.key": "x"}, "ssl.keystore.certificate.chain", "go together"),
        ({"key.location": "key"}, "ssl.certificate.location", "go together"),
        ({"keystore.location": "pem", "truststore.location": "key"}, "ssl.truststore.location", "there is no certificate"),
        ({"keystore.location": "pem", "truststore.location": "missing"}, "ssl.truststore.location", "No such file"),
        ({"keystore.location": "pem", "truststore.location": "p12", "truststore.password": "wrong"}, "ssl.truststore.location",
         "opens with ssl.truststore.password"),
        ({"keystore.location": "pem", "enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols", "older versions are not safe"),
        ({"keystore.location": "pem", "cipher.suites": "NONSENSE"}, "ssl.cipher.suites", "that OpenSSL has"),
        ({"keystore.location": "pem", "cipher.suites": "TLS_AES_256_GCM_SHA384"}, "ssl.cipher.suites", "or none of them"),
    ],
)  # fmt: skip
def test_what_does_not_do_is_named(
    certificates: Certificates, tmp_path: Path, options: Mapping[str, str], key: str, said: str
) -> None:
    files = certificates.broker
    places = {"pem": files.combined, "p12": files.keystore, "certificate": files.certificate, "key": files.key}
    texts = {
        "jks": b"\xfe\xed\xfe\xed\0\0\0\2",
        "noise": bytes(range(128, 256)),
        "encrypted": (encrypted(files.key, "secret") + files.certificate.read_text()).encode(),
        "mixed": certificates.client("else").key.read_bytes() + files.certificate.read_bytes(),
        "broken": files.key.read_bytes() + b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    }
    for name, text in texts.items():
        places[name] = tmp_path / name
        places[name].write_bytes(text)
    given = {f"ssl.{name}": str(places.get(value, value)) for name, value in options.items()}
    with pytest.raises(ConfigError) as caught:
        both_contexts(given)
    assert (caught.value.key, said in caught.value.allowed) == (key, True), caught.value
    assert not {"secret", "wrong"} & set(str(caught.value).split("'"))


def test_a_server_that_asks_for_certificates_must_know_whom_to_believe(certificates: Certificates) -> None:
    from barnabas.tls.settings import ClientAuth

    settings = TlsSettings(keystore_location=str(certificates.broker.combined), client_auth=ClientAuth.REQUIRED)
    with pytest.raises(ConfigError, match=r"truststore\.location.*ssl\.client\.auth=required"):
        server_context(settings)


@pytest.mark.parametrize(
    ("options", "version"),
    [
        ({"ssl.enabled.protocols": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}, "TLSv1.2"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256"}, "TLSv1.3"),
    ],
)
def test_versions_and_suites_are_chosen(certificates: Certificates, options: dict[str, str], version: str) -> None:
    server = server_context(client_settings({"ssl.keystore.location": str(certificates.broker.combined), **options}))
    client = client_context(client_settings({"ssl.ca.location": certificates.ca_file}))
    assert shakes_hands(server, client) == version


@pytest.mark.parametrize(
    ("standard", "name"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_128_CBC_SHA256", "DHE-RSA-AES128-SHA256"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
    ],
)
def test_suites_have_their_names_in_openssl(standard: str, name: str) -> None:
    assert openssl_name(standard) == name
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(name)


def test_no_text_of_settings_shows_a_secret(certificates: Certificates) -> None:
    words = {
        "ssl.keystore.password": "secret-1",
        "ssl.key.password": "secret-2",
        "ssl.truststore.password": "secret-3",
        "ssl.keystore.key": "secret-4",
    }
    assert "secret" not in repr(client_settings(words))


def test_changed_files_make_another_context_and_broken_ones_do_not(certificates: Certificates, tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_bytes(certificates.broker.combined.read_bytes())
    source = ContextSource(TlsSettings(keystore_location=str(store)), server_context)
    first = source.context
    assert not source.refresh()
    assert source.context is first
    store.write_text("half a file")
    assert not source.refresh()
    assert source.context is first
    store.write_bytes(certificates.client("other").combined.read_bytes())
    assert source.refresh()
    assert source.context is not first
