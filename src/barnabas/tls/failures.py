"""The text of a TLS error on a connection: OpenSSL's words, and the usual cause of the most frequent errors."""

from __future__ import annotations

import ssl

OTHER_PROTOCOL = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "RECORD_LAYER_FAILURE"}


def reason_of(error: BaseException) -> str:
    """A short text for an error; if it is not an error of TLS, its own text."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not taken: {error.verify_message.rstrip('.')}"
    if not isinstance(error, ssl.SSLError):
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    reason = error.reason or (str(error.args[1]) if len(error.args) > 1 else str(error))
    words = reason.replace("_", " ").lower()
    return f"{words}: does the other side speak TLS?" if reason in OTHER_PROTOCOL else f"TLS: {words}"
