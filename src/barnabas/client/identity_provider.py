"""One request of a client to its identity provider, with client credentials (RFC 6749, section 4.4.2).

Loaded only when a token is requested: the import of `urllib.request` takes 15 ms, and most brokers do not need it at their start.
"""

from __future__ import annotations

from base64 import b64encode
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote_plus, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from barnabas import limits
from barnabas.client.errors import ConnectionFailed, LoginFailed


def ask(url: str, client_id: str, client_secret: str, scope: str | None, timeout_s: float) -> bytes:
    """The provider's answer, cut after `MAX_BEARER_BYTES` + 1 bytes.

    Raises:
        LoginFailed: the provider refuses.
        ConnectionFailed: the provider cannot be reached, or has an internal error.
    """
    login = b64encode(f"{quote_plus(client_id)}:{quote_plus(client_secret)}".encode()).decode()
    form = {"grant_type": "client_credentials", **({} if scope is None else {"scope": scope})}
    headers = {"Authorization": f"Basic {login}", "Accept": "application/json"}
    request = Request(url, data=urlencode(form).encode(), headers=headers)
    try:
        with build_opener(_Staying).open(request, timeout=timeout_s) as answer:
            return bytes(answer.read(limits.MAX_BEARER_BYTES + 1))
    except HTTPError as error:
        error.close()
        reason = f"the identity provider answers {error.code}"
        raise (ConnectionFailed if error.code >= 500 else LoginFailed)(url, reason) from None
    except (OSError, HTTPException) as error:
        raise ConnectionFailed(url, f"the identity provider cannot be reached ({error})") from error


class _Staying(HTTPRedirectHandler):
    """Does not follow redirects."""

    def redirect_request(self, *_: Any) -> None:
        return None
