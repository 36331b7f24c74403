"""Keys that name a class which guards something: who may connect, what may be created or changed, how much somebody may use.

Kafka runs such a class in its JVM. Here a Java class cannot run, and a guard that is left out silently is worse than a broker that does not
start: so these keys take Kafka's own classes, whose work is built in, and some of them a class in Python. Anything else is refused.

Keys that name other classes (reporters of metrics, log-ins of this broker with others) are taken and have no effect; that is a warning.
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
    """What a key that names a guarding class may be.

    Args:
        base: the class of `barnabas.plugins` that a Python class derives from; None where there is no such way.
        built_in: Kafka's own classes whose work the broker does itself; those without a package are known in any.
        instead: what else may take the place of a Java class.
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
