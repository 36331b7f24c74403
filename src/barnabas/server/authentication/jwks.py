"""Keeps the keys of an identity provider up to date.

Owns the current set of keys and the time of the next read: after `refresh_ms`, after a failure with a growing pause, and soon after a
token with a key outside the set. Such a token shows that the provider has changed its keys.

Rules
  1. If a set cannot be read, the earlier one stays in use.
  2. For unknown keys the broker asks the provider at most once in `retry_backoff_max_ms`, for any number of tokens.
  3. Blocking calls run in a thread, and read at most `limits.MAX_JWKS_BYTES`.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Executor
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from barnabas import limits
from barnabas.security.jwt_keys import BadKeys, KeySet, UnknownKey
from barnabas.security.oauth import TokenRefused

if TYPE_CHECKING:
    from barnabas.config.oauth import OauthSettings

DEFAULT_TIMEOUT_MS = 10_000
logger = logging.getLogger(__name__)


class Keys:
    """The keys at one address, from `start` to `close`."""

    def __init__(self, settings: OauthSettings, url: str, loop: asyncio.AbstractEventLoop, thread: Executor) -> None:
        self._settings = settings
        self._url = url
        self._loop = loop
        self._thread = thread
        self._set: KeySet | None = None
        self._wanted = asyncio.Event()
        self.tried = asyncio.Event()  # set once a read of the keys has ended or failed
        self._read_s = float("-inf")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._keep_fresh(), name="jwks")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def claims_of(self, token: str) -> dict[str, Any]:
        """The claims of a token that the provider signed; raises TokenRefused."""
        if self._set is None:
            raise TokenRefused("the provider's keys are not known yet")
        try:
            return self._set.claims_of(token)
        except UnknownKey:
            self._wanted.set()
            raise

    async def _keep_fresh(self) -> None:
        settings, failures = self._settings, 0
        while True:
            try:
                text = await self._loop.run_in_executor(self._thread, self._read)
                self._set, failures = KeySet(text), 0
                logger.info("event=token-keys-read url=%s keys=%d", self._url, len(self._set))
                pause_ms = settings.refresh_ms
            except (OSError, HTTPException, BadKeys) as error:
                pause_ms = min(settings.retry_backoff_ms << min(failures, 20), settings.retry_backoff_max_ms)
                failures += 1
                logger.warning("event=token-keys-not-read url=%s pause_ms=%d error=%r", self._url, pause_ms, str(error))
            self._read_s = self._loop.time()
            self.tried.set()
            await self._wait(pause_ms / 1000)

    async def _wait(self, pause_s: float) -> None:
        """Wait until the pause is over or a token has an unknown key; in the second case, keep the minimum time between two reads."""
        self._wanted.clear()
        try:
            async with asyncio.timeout(pause_s):
                await self._wanted.wait()
        except TimeoutError:
            return
        least_s = min(self._settings.retry_backoff_max_ms / 1000, pause_s)
        await asyncio.sleep(max(0.0, self._read_s + least_s - self._loop.time()))

    def _read(self) -> bytes:
        timeout_s = (self._settings.connect_timeout_ms or DEFAULT_TIMEOUT_MS) / 1000
        with urlopen(Request(self._url, headers={"Accept": "application/json"}), timeout=timeout_s) as answer:
            text: bytes = answer.read(limits.MAX_JWKS_BYTES + 1)
        if len(text) > limits.MAX_JWKS_BYTES:
            raise BadKeys(f"more than {limits.MAX_JWKS_BYTES} bytes")
        return text
