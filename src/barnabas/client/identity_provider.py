"""One request of a client to its identity provider, with client credentials (RFC 6749, section 4.4.2).

Loaded only by who asks: what `urllib.request` brings along takes 15 ms, which the start of a broker without such log-ins does not wait for.
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
    """The provider's answer, or its first `MAX_BEARER_BYTES` and one.

    Raises:
        LoginFailed: it refuses.
        ConnectionFailed: it cannot be asked, or errs itself.
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
        raise ConnectionFailed(url, f"the identity provider cannot be asked ({error})") from error


class _Staying(HTTPRedirectHandler):
    """Follows nobody."""

    def redirect_request(self, *_: Any) -> None:
        return None
