"""The bearer tokens of a broker: the rules of each listener, and the keys of the identity providers.

Listeners with equal settings for the keys share one set of keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from barnabas.config.oauth import OauthSettings
from barnabas.security.exchange import Identity
from barnabas.security.oauth import TokenRules, check_claims, read_unsecured

if TYPE_CHECKING:
    from barnabas.server.authentication.jwks import Keys

Check = Callable[[str], Identity]


class Providers:
    """The identity providers of a broker.

    Args:
        thread: reads the keys.
        now_ms: the wall clock.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: Executor, now_ms: Callable[[], int]) -> None:
        self._loop = loop
        self._thread = thread
        self._now_ms = now_ms
        self._keys: dict[OauthSettings, Keys] = {}
        self._started = False

    async def start(self) -> None:
        """Read the keys; returns after the first attempt, even if it failed."""
        self._started = True
        for keys in self._keys.values():
            keys.start()
        for keys in list(self._keys.values()):
            await keys.tried.wait()

    async def close(self) -> None:
        for keys in self._keys.values():
            await keys.close()

    def check_for(self, settings: OauthSettings) -> Check:
        """A function that checks a token under these settings; the function raises TokenRefused."""
        rules = rules_of(settings)
        if settings.jwks_url is None:
            return lambda token: check_claims(read_unsecured(token), rules, self._now_ms())
        # only the options may change while the broker runs, and the keys do not depend on them
        place = settings._replace(options=())
        keys = self._keys.get(place)
        if keys is None:
            from barnabas.server.authentication.jwks import Keys  # imported here: it loads urllib.request, which takes 15 ms

            keys = self._keys[place] = Keys(settings, settings.jwks_url, self._loop, self._thread)
            if self._started:
                keys.start()
        return lambda token: check_claims(keys.claims_of(token), rules, self._now_ms())


def rules_of(settings: OauthSettings) -> TokenRules:
    options = dict(settings.options)
    if settings.jwks_url is None:
        return TokenRules(
            signed=False,
            clock_skew_ms=int(options.get("unsecuredValidatorAllowableClockSkewMs", "0")),
            subject_claim=options.get("unsecuredValidatorPrincipalClaimName", "sub"),
            scope_claim=options.get("unsecuredValidatorScopeClaimName", "scope"),
            required_scope=tuple(options.get("unsecuredValidatorRequiredScope", "").split()),
        )
    return TokenRules(
        issuer=settings.issuer,
        audiences=settings.audiences,
        clock_skew_ms=settings.clock_skew_ms,
        subject_claim=settings.subject_claim,
        scope_claim=settings.scope_claim,
    )
