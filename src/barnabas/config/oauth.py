"""The conditions of a listener for bearer tokens (OAUTHBEARER)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple

from barnabas.config.sasl import OAUTHBEARER, ListenerSettings, login_options, setting
from barnabas.digits import INT64, is_number
from barnabas.errors import ConfigError

HANDLER = "sasl.server.callback.handler.class"
JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
VALIDATORS = ("OAuthBearerValidatorCallbackHandler",)
UNSECURED_VALIDATORS = ("OAuthBearerUnsecuredValidatorCallbackHandler",)
SKEW_OPTION = "unsecuredValidatorAllowableClockSkewMs"


class OauthSettings(NamedTuple):
    """The conditions of one listener.

    Args:
        jwks_url: address of the keys, as file:, http: or https:; None if tokens have no signature.
        options: the options of the login context.
    """

    jwks_url: str | None
    issuer: str | None
    audiences: tuple[str, ...]
    clock_skew_ms: int
    subject_claim: str
    scope_claim: str
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    connect_timeout_ms: int | None
    options: tuple[tuple[str, str], ...]


def oauth_of(settings: ListenerSettings, listener: str) -> OauthSettings:
    """The conditions of a listener for tokens; raises ConfigError.

    Without an address of keys, tokens without a signature are accepted, as in Kafka. So a login context or the name of Kafka's
    handler must request such tokens explicitly.
    """

    def of(name: str) -> Any:
        return setting(settings, name, listener, OAUTHBEARER)

    options, handler, url = login_options(settings, OAUTHBEARER, listener), of(HANDLER), of(JWKS_URL)
    name = (handler or "").rpartition(".")[2]
    if name and name not in VALIDATORS + UNSECURED_VALIDATORS:
        raise ConfigError(HANDLER, handler, f"one of Kafka's: {', '.join(VALIDATORS + UNSECURED_VALIDATORS)}")
    if name in UNSECURED_VALIDATORS:
        url = None
    elif url is None and (name or options is None):
        raise ConfigError(JWKS_URL, "", "the address of the provider's keys: file:, http: or https:")
    if url is not None:
        _check_url(url)
    skew = (options or {}).get(SKEW_OPTION, "0")
    if not is_number(skew, INT64):
        raise ConfigError(f"{SKEW_OPTION} in sasl.jaas.config", skew, "milliseconds, 0 or more")
    return OauthSettings(
        jwks_url=url,
        issuer=of("sasl.oauthbearer.expected.issuer"),
        audiences=of("sasl.oauthbearer.expected.audience"),
        clock_skew_ms=of("sasl.oauthbearer.clock.skew.seconds") * 1000,
        subject_claim=of("sasl.oauthbearer.sub.claim.name"),
        scope_claim=of("sasl.oauthbearer.scope.claim.name"),
        refresh_ms=of("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        retry_backoff_ms=of("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        retry_backoff_max_ms=of("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        connect_timeout_ms=of("sasl.login.connect.timeout.ms"),
        options=tuple((options or {}).items()),
    )


def _check_url(url: str) -> None:
    if url.partition(":")[0].lower() not in {"file", "http", "https"}:
        raise ConfigError(JWKS_URL, url, "an address that begins with file:, http: or https:")
    if find_spec("jwt") is None:
        raise ConfigError(JWKS_URL, url, "nothing, as long as the extra is not installed: pip install 'barnabas[oauth]'")
