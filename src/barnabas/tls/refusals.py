"""The reason why OpenSSL refuses a certificate or its key.

OpenSSL gives a reason only for texts that it can parse. `cryptography` parses the other texts again; it is loaded only for them.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from barnabas.tls.pem import certificates_in
from barnabas.tls.stores import KeyMaterial

LEVEL = "OpenSSL's security level here refuses it; docs/security.md shows how to lower it"
REASONS = {
    "EE_KEY_TOO_SMALL": f"a certificate with a longer key, such as RSA with 2048 bits. {LEVEL}",
    "CA_KEY_TOO_SMALL": f"a chain of certificates with longer keys, such as RSA with 2048 bits. {LEVEL}",
    "CA_MD_TOO_WEAK": f"certificates that are signed with SHA-256 or better; one has a weaker signature (SHA-1 or MD5). {LEVEL}",
    "KEY_VALUES_MISMATCH": "a private key and its own certificate; these two do not belong together",
    "KEY_TYPE_MISMATCH": "a private key and its own certificate; these two do not belong together",
}


class Part(Enum):
    """The setting that is wrong."""

    CERTIFICATE = "certificate"
    KEY = "key"
    PASSWORD = "password"


class Refusal(NamedTuple):
    """The wrong setting, and the accepted values."""

    part: Part
    allowed: str


def refusal_of(keys: KeyMaterial, reason: str | None) -> Refusal:
    """The reason why OpenSSL refused these keys.

    Args:
        reason: OpenSSL's reason, in capital letters; None if it gave none.
    """
    if reason in REASONS:
        return Refusal(Part.CERTIFICATE, REASONS[reason])
    said = f" ({reason.replace('_', ' ').lower()})" if reason else ""
    return (
        _of_certificates(keys) or _of_key(keys) or Refusal(Part.CERTIFICATE, f"a certificate and a key that OpenSSL takes{said}")
    )


def _of_certificates(keys: KeyMaterial) -> Refusal | None:
    from cryptography.x509 import load_pem_x509_certificate

    for number, certificate in enumerate(certificates_in(keys.chain), start=1):
        try:
            load_pem_x509_certificate(certificate.encode())
        except ValueError:
            return Refusal(Part.CERTIFICATE, f"certificates that OpenSSL takes; number {number} in the text is damaged")
    return None


def _of_key(keys: KeyMaterial) -> Refusal | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    is_encrypted = "ENCRYPTED" in keys.key
    password = keys.key_password.encode() if is_encrypted and keys.key_password is not None else None
    unknown = Refusal(Part.KEY, "a private key in an encryption that OpenSSL has, such as AES-256")
    try:
        load_pem_private_key(keys.key.encode(), password)
    except UnsupportedAlgorithm:
        return unknown
    except (ValueError, TypeError) as error:
        words = str(error).lower()
        if "password" in words:
            return Refusal(Part.PASSWORD, "the password of the private key")
        if "unknown" in words:  # the encryption of the key is unknown
            return unknown
        return Refusal(Part.KEY, "a private key that can be read; this one is damaged")
    return unknown if is_encrypted else None
