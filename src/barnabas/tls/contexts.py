"""Creates the OpenSSL contexts of connections from settings.

Owns the allowed features: TLS 1.2 and 1.3, no renegotiation, no compression, no session tickets.

Rules
  1. A private key stays in memory only: OpenSSL reads keys from files, so it gets a file in memory (`_in_memory`).
  2. A server that requests certificates needs a trust store. Without one, Kafka trusts every public authority.
  3. A client trusts its trust store, or without one the authorities of the system, and checks the server's name unless
     configured otherwise.

Sessions are not resumed (no tickets). Connections to brokers live long, and a resumed session does not check the client's
certificate again. This certificate may have expired, or its authority may not be trusted any more.

Ugly: Python's `ssl` of 3.11 cannot choose among the cipher suites of TLS 1.3, so a setting must name all of them or none; none
turns TLS 1.3 off.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from barnabas.errors import ConfigError
from barnabas.tls.settings import HIDDEN, ClientAuth, TlsSettings
from barnabas.tls.stores import KeyMaterial, read_keys, read_trusted

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
SUITES_OF_1_3 = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
REQUESTS = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a listener; raises ConfigError."""
    keys, trusted = read_keys(settings), read_trusted(settings)
    if keys is None:
        raise ConfigError(settings.key("keystore.location"), "", "a key store: a TLS listener needs a certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _prepare(context, settings)
    context.options |= ssl.OP_NO_TICKET | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = 0
    _show(context, settings, keys)
    if settings.client_auth is not ClientAuth.NONE:
        if trusted is None:
            allowed = f"a trust store, for ssl.client.auth={settings.client_auth.value}"
            raise ConfigError(settings.key("truststore.location"), "", allowed)
        _believe(context, settings, trusted)
        context.verify_mode = REQUESTS[settings.client_auth]
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a client; raises ConfigError."""
    keys, trusted = read_keys(settings), read_trusted(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _prepare(context, settings)
    context.check_hostname = settings.check_host_name and settings.verify
    if not settings.verify:
        context.verify_mode = ssl.CERT_NONE
    elif trusted is None:
        context.load_default_certs()
    else:
        _believe(context, settings, trusted)
    if keys is not None:
        _show(context, settings, keys)
    return context


def _prepare(context: ssl.SSLContext, settings: TlsSettings) -> None:
    lowest, highest = settings.enabled_protocols[0], settings.enabled_protocols[0]
    for protocol in settings.enabled_protocols:
        lowest, highest = min(lowest, protocol), max(highest, protocol)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    named = set(settings.cipher_suites)
    if named:
        of_1_3 = named & SUITES_OF_1_3
        if of_1_3 and of_1_3 != SUITES_OF_1_3 and highest == "TLSv1.3":
            allowed = f"all suites of TLS 1.3 ({', '.join(sorted(SUITES_OF_1_3))}) or none of them, which leaves TLS 1.2"
            raise ConfigError(settings.key("cipher.suites"), ",".join(settings.cipher_suites), allowed)
        highest = highest if of_1_3 else "TLSv1.2"
        lowest = lowest if named - SUITES_OF_1_3 else "TLSv1.3"
        if lowest > highest:
            allowed = f"suites of {', '.join(settings.enabled_protocols)}"
            raise ConfigError(settings.key("cipher.suites"), ",".join(settings.cipher_suites), allowed)
        _choose_ciphers(context, settings)
    context.minimum_version, context.maximum_version = VERSIONS[lowest], VERSIONS[highest]


def _choose_ciphers(context: ssl.SSLContext, settings: TlsSettings) -> None:
    for name in settings.cipher_suites:
        if name in SUITES_OF_1_3:
            continue
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(openssl_name(name))
        except ssl.SSLError:
            raise ConfigError(settings.key("cipher.suites"), name, "the name of a cipher suite that OpenSSL has") from None
    chosen = [openssl_name(name) for name in settings.cipher_suites if name not in SUITES_OF_1_3]
    if chosen:
        context.set_ciphers(":".join(chosen))


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a TLS 1.2 suite, from the name in the standard and in Java.

    `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384` is `ECDHE-RSA-AES256-GCM-SHA384`; a name of OpenSSL stays unchanged.
    """
    exchange, is_standard, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not is_standard:
        return suite
    for bits in ("128", "256"):
        cipher = cipher.replace(f"AES_{bits}_CBC", f"AES{bits}").replace(f"AES_{bits}", f"AES{bits}")
    cipher = cipher.removesuffix("_SHA256") if "CHACHA20" in cipher else cipher
    parts = ([] if exchange == "RSA" else [exchange]) + [cipher]
    return "-".join(parts).replace("_", "-")


def _show(context: ssl.SSLContext, settings: TlsSettings, keys: KeyMaterial) -> None:
    def password() -> str:
        if keys.key_password is None:
            raise ConfigError(settings.key("key.password"), "", "the password of the private key, which is encrypted")
        return keys.key_password

    try:
        with _in_memory(keys.chain) as chain, _in_memory(keys.key) as key:
            context.load_cert_chain(chain, key, password)
    except (ssl.SSLError, ValueError) as error:
        _refuse_keys(settings, keys, error)


def _refuse_keys(settings: TlsSettings, keys: KeyMaterial, error: Exception) -> NoReturn:
    from barnabas.tls.refusals import Part, refusal_of  # loaded only after an error

    part, allowed = refusal_of(keys, getattr(error, "reason", None))
    if part is Part.PASSWORD and settings.key_password is not None:
        name, shown = "key.password", HIDDEN
    elif settings.keystore_location:
        name, shown = "keystore.location", settings.keystore_location
    elif settings.certificate_location and settings.key_location:
        is_key = part is not Part.CERTIFICATE
        name, shown = (
            ("key.location", settings.key_location) if is_key else ("certificate.location", settings.certificate_location)
        )
    else:
        name, shown = ("keystore.certificate.chain", "(text)") if part is Part.CERTIFICATE else ("keystore.key", HIDDEN)
    raise ConfigError(settings.key(name), shown, allowed) from None


def _believe(context: ssl.SSLContext, settings: TlsSettings, trusted: str) -> None:
    """Trust each certificate of a trust store, as in Java, even if another authority signed it."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        name = "truststore.location" if settings.truststore_location else "truststore.certificates"
        reason = (error.reason or str(error)).replace("_", " ").lower()
        raise ConfigError(
            settings.key(name), settings.truststore_location or "(text)", f"certificates that OpenSSL takes ({reason})"
        ) from None


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """The path of a file that exists only in memory."""
    descriptor = os.memfd_create("pem")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
