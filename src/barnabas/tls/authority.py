"""A private certificate authority and its certificates, for trials, for tests and for clusters without an authority of their
own.

Owns the creation of keys and certificates (elliptic curves, P-256). Everything is written as PEM and as PKCS12, so that every
client finds a format that it can read. Only the owner can read keys (mode 0600).

Rule: an existing file is never overwritten, because replacing an authority by accident invalidates all its certificates.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_CERTIFICATE, CA_KEY, TRUST_STORE = "ca.crt", "ca.key", "truststore.p12"
BACKDATED = timedelta(minutes=5)  # certificates are valid from this much earlier, for machines with slow clocks
PRIVATE_MODE, PUBLIC_MODE = 0o600, 0o644


@dataclass(frozen=True, slots=True)
class Issued:
    """The files of one certificate: PEM of chain and key, both in one file, and a PKCS12 store."""

    certificate: Path
    key: Path
    combined: Path
    keystore: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate that signs others, in a folder.

    Args:
        password: the password of the PKCS12 stores.
    """

    folder: Path
    password: str = field(repr=False)
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def create(cls, folder: Path, *, password: str, days: int = 3650, name: str = "barnabas private authority") -> Authority:
        """Create an authority and write it; raises FileExistsError if there is one."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = _key_usage(signs_certificates=True)
        certificate = (
            _begin(subject, key, days)
            .issuer_name(subject)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        folder.mkdir(parents=True, exist_ok=True)
        authority = cls(folder, password, certificate, key)
        _write(folder / CA_KEY, _private(key), PRIVATE_MODE)
        _write(folder / CA_CERTIFICATE, certificate.public_bytes(Encoding.PEM), PUBLIC_MODE)
        store = pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(certificate, b"ca")], BestAvailableEncryption(password.encode())
        )
        _write(folder / TRUST_STORE, store, PUBLIC_MODE)
        return authority

    @classmethod
    def load(cls, folder: Path, *, password: str) -> Authority:
        """The authority that `create` wrote to the folder.

        Raises:
            OSError: the files are missing.
            ValueError: they are not an authority.
        """
        certificate = x509.load_pem_x509_certificate((folder / CA_CERTIFICATE).read_bytes())
        key = load_pem_private_key((folder / CA_KEY).read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{folder / CA_KEY} holds no key of an elliptic curve")
        return cls(folder, password, certificate, key)

    @property
    def ca_file(self) -> Path:
        return self.folder / CA_CERTIFICATE

    @property
    def truststore(self) -> Path:
        return self.folder / TRUST_STORE

    def issue(self, name: str, *, hosts: Sequence[str] = (), days: int = 365, subject: x509.Name | None = None) -> Issued:
        """A certificate for a broker (with `hosts`) or for a client; both may connect as clients. Raises FileExistsError.

        Args:
            name: the name of the files, and the common name if no `subject` is given.
            days: a negative number gives an expired certificate.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) if subject is None else subject
        builder = (
            _begin(named, key, days)
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        files = (f"{name}.crt", f"{name}.key", f"{name}.pem", f"{name}.p12")
        issued = Issued(*(self.folder / file for file in files))
        chain, private = certificate.public_bytes(Encoding.PEM), _private(key)
        _write(issued.key, private, PRIVATE_MODE)
        _write(issued.certificate, chain, PUBLIC_MODE)
        _write(issued.combined, private + chain, PRIVATE_MODE)
        store = pkcs12.serialize_key_and_certificates(
            name.encode(), key, certificate, [self.certificate], BestAvailableEncryption(self.password.encode())
        )
        _write(issued.keystore, store, PRIVATE_MODE)
        return issued


def _begin(subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    start = now - BACKDATED if days >= 0 else now + timedelta(days=days) - BACKDATED
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + BACKDATED + timedelta(days=days) if days >= 0 else start + timedelta(minutes=1))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
