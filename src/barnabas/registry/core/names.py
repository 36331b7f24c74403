"""Names of subjects and contexts, in Confluent's form.

`:.context:subject` names a subject in a context, and `subject` alone one in the default context `.`. A qualified name without a subject,
`:.context:`, means the whole context. `:*:` stands for all contexts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
WILDCARD = ":*:"
RESERVED = frozenset({"__GLOBAL", "__EMPTY"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Name(NamedTuple):
    """A subject in its context; `subject` is "" for the context itself, and `context` is `*` for all."""

    context: str
    subject: str

    @property
    def prefix(self) -> str:
        """The part before the subject in the qualified name."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    @property
    def qualified(self) -> str:
        """The whole name."""
        return self.prefix + self.subject


def parse(qualified: str) -> Name:
    """Split a name into context and subject."""
    if qualified.startswith(":."):
        context, _, subject = qualified[1:].partition(":")
        return Name(context, subject)
    if qualified.startswith(WILDCARD):
        return Name("*", qualified[len(WILDCARD) :])
    return Name(DEFAULT_CONTEXT, qualified)


def normalize(qualified: str) -> str:
    """The canonical spelling of a name: `:.:subject` is `subject`."""
    return parse(qualified).qualified if qualified.startswith(":") else qualified


def context_of(qualified: str) -> str:
    """The context of a subject."""
    return parse(qualified).context if qualified.startswith(":") else DEFAULT_CONTEXT


def context_prefix(context: str) -> str:
    """`:.name:` for a context in a path (`name`, `.name` or `:.name:`); "" for the default context.

    Raises:
        ValueError: the name contains a colon.
    """
    context = context.removeprefix(":").removesuffix(":")
    if ":" in context:
        raise ValueError("Context name cannot contain a colon")
    context = context if context.startswith(".") else f".{context}"
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def in_context_of(qualified: str, subject: str) -> str:
    """`subject`, in the context of `qualified` if it has no context itself."""
    if subject.startswith(":."):
        return normalize(subject)
    return parse(qualified).prefix + subject


def begins(qualified: str, prefix: str) -> bool:
    """Whether a name begins with `prefix`; `:*:` means every context."""
    wanted, name = parse(prefix), parse(qualified)
    return name.subject.startswith(wanted.subject) and wanted.context in {"*", name.context}


def is_valid(qualified: str, *, for_settings: bool = False) -> bool:
    """Whether a subject may have this name; with `for_settings`, it may also be the name of a context."""
    if _CONTROL.search(qualified):
        return False
    name = parse(qualified)
    if name.subject in RESERVED or name.context == "*":
        return False
    return for_settings or (bool(name.subject) and name.context != GLOBAL_CONTEXT)
