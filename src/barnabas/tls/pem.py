"""PEM text: certificates and a private key between lines of dashes.

Parsed as leniently as in Kafka: text around the blocks is ignored, and a block may be on one line, as in a properties file.
"""

from __future__ import annotations

import re
import textwrap

BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
CERTIFICATE = "CERTIFICATE"
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")


def certificates_in(text: str) -> list[str]:
    """Every certificate, each a block of its own."""
    return [_block(label, body) for label, body in BLOCK.findall(text) if label in {CERTIFICATE, "TRUSTED CERTIFICATE"}]


def private_key_in(text: str) -> str | None:
    """The first private key, encrypted or not."""
    return next((_block(label, body) for label, body in BLOCK.findall(text) if label.endswith("PRIVATE KEY")), None)


def _block(label: str, body: str) -> str:
    if BASE64.fullmatch(body):  # otherwise the body starts with headers, which an empty line ends
        body = "\n" + textwrap.fill("".join(body.split()), 64) + "\n"
    return f"-----BEGIN {label}-----{body}-----END {label}-----\n"
