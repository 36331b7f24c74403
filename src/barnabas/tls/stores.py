"""Reads key stores (the own certificate of a broker or client) and trust stores (the trusted authorities).

Owns the formats. A store is a file of PEM text or of PKCS12, or PEM text in the setting itself. Java's own format (JKS) is
refused with the command that converts it: it is proprietary and superseded, and PKCS12 is Java's default since version 9.

Rules
  1. Every error is a ConfigError that names the key of the setting and never shows a secret.
  2. If the type is unset or is Kafka's default, JKS, the content of the file decides, as in Java.
  3. `cryptography` is loaded only for PKCS12, since OpenSSL reads PEM itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from barnabas.errors import ConfigError
from barnabas.tls.pem import certificates_in, private_key_in
from barnabas.tls.settings import HIDDEN, TlsSettings

MAX_STORE_BYTES = 16 * 1024 * 1024  # bytes; a bundle of all public certificate authorities has about 0.25 MB
JKS_MAGICS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
DER_SEQUENCE = b"\x30"
PEM_TYPE, PKCS12_TYPE, JKS_TYPE = "PEM", "PKCS12", "JKS"


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """The own certificate with its chain, and its private key, all as PEM."""

    chain: str
    key: str = field(repr=False)
    key_password: str | None = field(repr=False)


def read_keys(settings: TlsSettings) -> KeyMaterial | None:
    """The certificate and its key; None if none is set. Raises ConfigError."""
    if settings.keystore_key or settings.keystore_certificate_chain:
        return _inline_keys(settings)
    if settings.certificate_location or settings.key_location:
        return _separate_keys(settings)
    if settings.keystore_location is None:
        return None
    key, location = settings.key("keystore.location"), settings.keystore_location
    data = _read(key, location)
    if _type_of(settings.keystore_type, settings.key("keystore.type"), key, location, data) == PEM_TYPE:
        if settings.keystore_password is not None and (settings.keystore_type or "").upper() == PEM_TYPE:
            raise ConfigError(settings.key("keystore.password"), HIDDEN, "nothing for a PEM file: a key has ssl.key.password")
        password = settings.key_password or settings.keystore_password
        return _keys(key, location, _text(key, location, data), None, password)
    return _pkcs12_keys(settings, location, data)


def read_trusted(settings: TlsSettings) -> str | None:
    """The trusted certificates as PEM; None if none are set. Raises ConfigError."""
    if settings.truststore_certificates:
        if (settings.truststore_type or JKS_TYPE).upper() == PKCS12_TYPE:
            raise ConfigError(
                settings.key("truststore.type"), PKCS12_TYPE, "PEM, for certificates in ssl.truststore.certificates"
            )
        return _trusted(settings.key("truststore.certificates"), "(text)", settings.truststore_certificates)
    if settings.truststore_location is None:
        return None
    key, location = settings.key("truststore.location"), settings.truststore_location
    data = _read(key, location)
    if _type_of(settings.truststore_type, settings.key("truststore.type"), key, location, data) == PEM_TYPE:
        return _trusted(key, location, _text(key, location, data))
    return _pkcs12_trusted(settings, location, data)


def _inline_keys(settings: TlsSettings) -> KeyMaterial:
    if (settings.keystore_type or JKS_TYPE).upper() == PKCS12_TYPE:
        raise ConfigError(settings.key("keystore.type"), PKCS12_TYPE, "PEM, for a key in ssl.keystore.key")
    for name, value in (
        ("keystore.key", settings.keystore_key),
        ("keystore.certificate.chain", settings.keystore_certificate_chain),
    ):
        if not value:
            raise ConfigError(settings.key(name), "", "set: a key and its certificate chain go together")
    key_text, chain = settings.keystore_key or "", settings.keystore_certificate_chain or ""
    if private_key_in(key_text) is None:
        raise ConfigError(settings.key("keystore.key"), HIDDEN, "a private key as PEM text")
    return _keys(settings.key("keystore.certificate.chain"), "(text)", chain, key_text, settings.key_password)


def _separate_keys(settings: TlsSettings) -> KeyMaterial:
    texts = []
    for name, location in (("certificate.location", settings.certificate_location), ("key.location", settings.key_location)):
        if not location:
            raise ConfigError(settings.key(name), "", "set: a key and its certificate go together")
        texts.append(_text(settings.key(name), location, _read(settings.key(name), location)))
    chain, key = texts
    if private_key_in(key) is None:
        raise ConfigError(settings.key("key.location"), str(settings.key_location), "a file with a private key (PEM)")
    return _keys(settings.key("certificate.location"), str(settings.certificate_location), chain, key, settings.key_password)


def _keys(key: str, shown: str, chain_text: str, key_text: str | None, password: str | None) -> KeyMaterial:
    certificates = certificates_in(chain_text)
    private = private_key_in(chain_text if key_text is None else key_text)
    if not certificates or private is None:
        missing = "certificate" if private is not None else "private key"
        raise ConfigError(key, shown, f"PEM with a private key and its certificates; there is no {missing}")
    return KeyMaterial("".join(certificates), private, password)


def _trusted(key: str, shown: str, text: str) -> str:
    certificates = certificates_in(text)
    if not certificates:
        raise ConfigError(key, shown, "PEM with the certificates of authorities; there is no certificate")
    return "".join(certificates)


def _pkcs12_keys(settings: TlsSettings, location: str, data: bytes) -> KeyMaterial:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    key = settings.key("keystore.location")
    try:
        private, certificate, others = pkcs12.load_key_and_certificates(data, _bytes(settings.keystore_password))
    except ValueError:
        raise ConfigError(key, location, "a PKCS12 file that opens with ssl.keystore.password") from None
    if private is None or certificate is None:
        raise ConfigError(key, location, "a PKCS12 file with a private key and its certificate")
    chain = "".join(each.public_bytes(Encoding.PEM).decode() for each in (certificate, *others))
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return KeyMaterial(chain, text, None)


def _pkcs12_trusted(settings: TlsSettings, location: str, data: bytes) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    key = settings.key("truststore.location")
    try:
        found = pkcs12.load_pkcs12(data, _bytes(settings.truststore_password))
    except ValueError:
        raise ConfigError(key, location, "a PKCS12 file that opens with ssl.truststore.password") from None
    certificates = [each.certificate for each in (found.cert, *found.additional_certs) if each is not None]
    if not certificates:
        raise ConfigError(key, location, "a PKCS12 file with the certificates of authorities")
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def _bytes(password: str | None) -> bytes | None:
    return None if password is None else password.encode()


def _read(key: str, location: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            data = file.read(MAX_STORE_BYTES + 1)
    except OSError as error:
        raise ConfigError(key, location, f"a file that can be read ({error.strerror or error})") from None
    if len(data) > MAX_STORE_BYTES:
        raise ConfigError(key, location, f"a file of at most {MAX_STORE_BYTES} bytes")
    return data


def _text(key: str, location: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(key, location, "a PEM file, which is text") from None


def _type_of(given: str | None, type_key: str, key: str, location: str, data: bytes) -> str:
    """The type of the store: the configured type, or the type of the file's content."""
    wanted = (given or JKS_TYPE).upper()
    if wanted not in {PEM_TYPE, PKCS12_TYPE, JKS_TYPE}:
        raise ConfigError(type_key, given or "", f"{PEM_TYPE} or {PKCS12_TYPE}")
    if data.startswith(JKS_MAGICS):
        convert = f"keytool -importkeystore -srckeystore {location} -destkeystore store.p12 -deststoretype PKCS12"
        raise ConfigError(key, location, f"PEM or PKCS12; it is a JKS file, which `{convert}` converts")
    if wanted != JKS_TYPE:
        return wanted
    return PKCS12_TYPE if data.startswith(DER_SEQUENCE) else PEM_TYPE
