"""The server's side of GSSAPI (RFC 4752), and the mapping of Kerberos names to users
(`sasl.kerberos.principal.to.local.rules`).

Owns the exchange and the rules of names; the caller passes the context, which does the cryptography.

Rules
  1. First the two sides establish the context; then they agree not to wrap messages, because TLS provides confidentiality.
  2. The first rule that matches gives the name; without a match the log-in fails. RULE and DEFAULT have the semantics of Kafka,
     which are those of Hadoop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from barnabas.security.exchange import AuthenticationFailed, Identity

NO_LAYER = 1
MAX_TOKEN_BYTES = 64 * 1024
_NAME = re.compile(r"([^/@]+)(?:/([^/@]+))?@([^/@]+)")
_RULE = re.compile(r"RULE:\[(\d+):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?(?:/([LU])?)?", re.DOTALL)


class BadRules(ValueError):
    """The text is not a list of rules."""


class Rule(NamedTuple):
    """One rule of names. For DEFAULT, only `is_default` has a meaning."""

    is_default: bool = True
    parts: int = 0
    pattern: str = ""  # $0 is the realm, $1 and $2 are the first and second part of the name
    match: str | None = None
    replaced: str | None = None
    replacement: str = ""
    everywhere: bool = False
    case: str = ""

    def apply(self, first: str, second: str | None, realm: str, default_realm: str) -> str | None:
        """The short name, or None if the rule does not match."""
        if self.is_default:
            return first if realm == default_realm else None
        parts = [realm, first] + ([] if second is None else [second])
        if len(parts) - 1 != self.parts:
            return None
        base = re.sub(r"\$(\d+)", lambda found: parts[int(found[1])] if int(found[1]) < len(parts) else "", self.pattern)
        if self.match is not None and not re.fullmatch(self.match, base):
            return None
        if self.replaced is not None:
            base = re.sub(self.replaced, self.replacement, base, count=0 if self.everywhere else 1)
        return {"L": base.lower(), "U": base.upper()}.get(self.case, base)


def parse_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """Parse the texts of rules; raises BadRules."""
    rules = []
    for text in texts:
        if text == "DEFAULT":
            rules.append(Rule())
            continue
        found = _RULE.fullmatch(text)
        if found is None:
            raise BadRules(f"{text!r} is neither DEFAULT nor RULE:[n:string](regexp)s/pattern/replacement/g/L")
        count, pattern, match, replaced, replacement, everywhere, case = found.groups()
        if any(int(number) > int(count) for number in re.findall(r"\$(\d+)", pattern)):
            raise BadRules(f"{text!r} asks for a part that names of {count} do not have")
        replacement = re.sub(r"\$(\d)", r"\\\1", replacement or "")
        try:
            for each in filter(None, (match, replaced)):
                re.compile(each)
        except re.error as error:
            raise BadRules(f"{text!r} has a pattern that cannot be read: {error}") from None
        rules.append(Rule(False, int(count), pattern, match, replaced, replacement, bool(everywhere), case or ""))
    return tuple(rules)


def short_name(principal: str, rules: Sequence[Rule], default_realm: str) -> str:
    """The user of a Kerberos name; raises AuthenticationFailed if no rule gives one."""
    found = _NAME.fullmatch(principal)
    if found is not None:
        first, second, realm = found.groups()
        for rule in rules:
            name = rule.apply(first, second, realm, default_realm)
            if name and re.search("[/@]", name):
                raise AuthenticationFailed("a Kerberos name of which a rule makes no short one")
            if name:
                return name
    raise AuthenticationFailed("a Kerberos name that no rule is for")


class Context(Protocol):
    """The server's side of a GSS-API context."""

    @property
    def complete(self) -> bool: ...

    @property
    def initiator(self) -> str:
        """The Kerberos name of the client, after the context is complete."""
        ...

    def step(self, token: bytes) -> bytes:
        """The answer to a token; raises AuthenticationFailed."""
        ...

    def wrap(self, message: bytes) -> bytes: ...

    def unwrap(self, message: bytes) -> bytes:
        """The content of a wrapped message; raises AuthenticationFailed."""
        ...


class GssapiExchange:
    """One log-in.

    Args:
        context: a new context.
        name_of: function from a Kerberos name to its user; raises AuthenticationFailed.
    """

    def __init__(self, context: Context, name_of: Callable[[str], str]) -> None:
        self._context = context
        self._name_of = name_of
        self._offered = False
        self.identity: Identity | None = None

    def claims(self, message: bytes) -> str | None:
        return ""

    def evaluate(self, message: bytes) -> bytes:
        """The answers are tokens, then the offer of no security layer, then an empty message; raises AuthenticationFailed."""
        if self.identity is not None or len(message) > MAX_TOKEN_BYTES:
            raise AuthenticationFailed("a message too many" if self.identity else "a message too long")
        if self._offered:
            return self._agree(message)
        if not self._context.complete:
            answer = self._context.step(message)
            if answer or not self._context.complete:
                return answer
        elif message:
            raise AuthenticationFailed("a token after the last")
        self._offered = True
        return self._context.wrap(bytes([NO_LAYER, 0, 0, 0]))

    def _agree(self, message: bytes) -> bytes:
        chosen = self._context.unwrap(message)
        if len(chosen) < 4 or chosen[0] != NO_LAYER:
            raise AuthenticationFailed("a layer that was not offered")
        # The rest is an authorization id. Like Kafka, this code ignores it, since Python clients send the service name there.
        # Only the ticket names the user.
        self.identity = Identity(self._name_of(self._context.initiator))
        return b""
