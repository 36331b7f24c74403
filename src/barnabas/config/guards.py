"""Keys that name a guard: a class that decides about connections, about creating and changing resources, or about quotas.

Kafka runs such a class in its JVM. This broker cannot run a Java class, and a missing guard is worse than a broker that does
not start. So these keys accept Kafka's own classes, whose function is built in, and some accept a Python class. Any other value
is refused.

Keys that name other classes (metrics reporters, the broker's own log-in) are accepted with a warning that they have no effect.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.config.config_key import Value
from barnabas.errors import ConfigError

PREFIX = "python:"
FORM = f"{PREFIX}package.module:Class"
SECURITY = "org.apache.kafka.common.security."
PRINCIPAL_BUILDER = f"{SECURITY}authenticator.DefaultKafkaPrincipalBuilder"
VALIDATORS = (f"{SECURITY}oauthbearer.DefaultJwtValidator", f"{SECURITY}oauthbearer.BrokerJwtValidator")
JAVA = "Java classes do not run here"


def is_python_class(text: str) -> bool:
    """Whether a value has the form of `FORM`."""
    module, colon, name = text.removeprefix(PREFIX).partition(":")
    parts = [*module.split("."), name]
    return text.startswith(PREFIX) and bool(colon) and all(part.isidentifier() for part in parts)


class Guard(NamedTuple):
    """The values that the key of a guarding class accepts.

    Args:
        base: the class of `barnabas.plugins` that a Python class derives from; None if the key accepts no Python class.
        built_in: Kafka's own classes whose function is built in; a name without a package matches in any package.
        instead: a text that names the alternatives to a Java class.
    """

    base: str | None
    built_in: tuple[str, ...] = ()
    instead: str = "leave the key out if nothing is to be guarded"

    def __call__(self, key: str, value: Value) -> None:
        if value is None or self._is_built_in(str(value)) or (self.base is not None and is_python_class(str(value))):
            return
        raise ConfigError(key, str(value), f"{self}. {JAVA}; {self.instead}")

    def _is_built_in(self, name: str) -> bool:
        return name in self.built_in or name.rpartition(".")[2] in self.built_in

    def __str__(self) -> str:
        python = [] if self.base is None else [f"{FORM}, a class that derives from barnabas.plugins.{self.base}"]
        return ", or ".join([*python, *self.built_in]) or "nothing"


LOGIN_HANDLERS = Guard(
    None,
    (
        "OAuthBearerUnsecuredValidatorCallbackHandler",
        "OAuthBearerValidatorCallbackHandler",
        "PlainServerCallbackHandler",
        "SaslServerCallbackHandler",
        "ScramServerCallbackHandler",
    ),
    "sasl.jaas.config has the users of PLAIN, `barnabas user` those of SCRAM",
)
