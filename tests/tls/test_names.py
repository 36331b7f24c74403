"""The subject of a certificate as text: each has the text of Java's X500Principal.getName()."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.x509 import Name, NameAttribute, ObjectIdentifier, RelativeDistinguishedName
from cryptography.x509.oid import NameOID

from barnabas.testing.certificates import Certificates
from barnabas.tls.names import alternative_names_of, subject_of

TITLE, SERIAL_NUMBER = NameOID.TITLE, NameOID.SERIAL_NUMBER
Attributes = list[tuple[ObjectIdentifier, str]]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("names") / "authority")


def der(path: Path) -> bytes:
    import ssl

    return ssl.PEM_cert_to_DER_cert(path.read_text())


def common(value: str) -> Attributes:
    return [(NameOID.COMMON_NAME, value)]


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        (
            [
                (NameOID.COUNTRY_NAME, "DE"),
                (NameOID.ORGANIZATION_NAME, "Acme"),
                (NameOID.ORGANIZATIONAL_UNIT_NAME, "Ops"),
                *common("alice"),
            ],
            "CN=alice,OU=Ops,O=Acme,C=DE",
        ),
        (
            [
                (NameOID.DOMAIN_COMPONENT, "org"),
                (NameOID.DOMAIN_COMPONENT, "acme"),
                (NameOID.LOCALITY_NAME, "Bonn"),
                (NameOID.STATE_OR_PROVINCE_NAME, "NW"),
                (NameOID.STREET_ADDRESS, "Weg 1"),
                (NameOID.USER_ID, "u1"),
                *common("x"),
            ],
            "CN=x,UID=u1,STREET=Weg 1,ST=NW,L=Bonn,DC=acme,DC=org",
        ),
        ([*common("alice"), (NameOID.EMAIL_ADDRESS, "a@b.c")], "1.2.840.113549.1.9.1=#16056140622e63,CN=alice"),
        ([(SERIAL_NUMBER, "12"), (TITLE, "Dr"), *common("x")], "CN=x,2.5.4.12=#0c024472,2.5.4.5=#13023132"),
        (common('a,b=c+d<e>f#g;h"i\\j'), r"CN=a\,b\=c\+d\<e\>f\#g\;h\"i\\j"),
        (common("  a  b  "), r"CN=\ \ a  b\ \ "),
        ([*common("#x"), (NameOID.ORGANIZATION_NAME, " ")], r"O=\ ,CN=\#x"),
        (common("Jürgen 日本 😀"), "CN=Jürgen 日本 😀"),
        (common("a\tb\nc\0d\x7f"), "CN=a\tb\nc\\00d\x7f"),
        (common("\ra \r"), "CN=\\\ra\\ \\\r"),
        (common("host/example.com@REALM:1*?!'()"), "CN=host/example.com@REALM:1*?!'()"),
        ([], ""),
    ],
)
def test_names_are_as_java_writes_them(certificates: Certificates, attributes: Attributes, text: str) -> None:
    number = len(list(certificates.authority.folder.iterdir()))
    subject = Name([NameAttribute(kind, value) for kind, value in attributes])
    issued = certificates.authority.issue(f"name-{number}", subject=subject)
    assert subject_of(der(issued.certificate)) == text


def test_a_part_of_two_attributes(certificates: Certificates) -> None:
    parts = [
        RelativeDistinguishedName([NameAttribute(NameOID.COUNTRY_NAME, "DE")]),
        RelativeDistinguishedName(
            [NameAttribute(NameOID.COMMON_NAME, "a"), NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "b")]
        ),
    ]
    issued = certificates.authority.issue("two", subject=Name(parts))
    assert subject_of(der(issued.certificate)) == "CN=a+OU=b,C=DE"


def test_alternative_names(certificates: Certificates) -> None:
    issued = certificates.authority.issue("hosts", hosts=["a.example", "*.b.example", "10.0.0.1", "::1"])
    assert alternative_names_of(der(issued.certificate)) == {"DNS:a.example", "DNS:*.b.example", "IP:10.0.0.1", "IP:::1"}
    assert alternative_names_of(der(certificates.client("nobody").certificate)) == set()
