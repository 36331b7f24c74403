"""Steps at which our answers are meant to be others than Kafka's, and why. A difference that has disappeared fails the test."""

from __future__ import annotations

from collections.abc import Iterator

HASHES = ("SCRAM-SHA-256", "SCRAM-SHA-512")
NOBODY = "Who is not there looks like who is, and is refused with the final message: names of users and tokens are not told."
BINDING = "RFC 5802: channel binding data that are not those of the first message end the log-in. Kafka does not look at them."
SHORT = "A proof of another length is a wrong one, and answered. Kafka meets an exception and closes."
GS2 = "RFC 5802: a client that could bind channels, and thinks that the server cannot, is let in. Kafka refuses it."
RESERVED = "RFC 5802: the extension m must be refused. Kafka lets it pass."
TWICE = "ApiVersions may be asked again; the number of frames before a log-in is bounded. Kafka closes."
OTHER = "Another mechanism at re-authentication, or an unknown one, is told why. Kafka closes."
EMPTY = "The error is the same; Kafka fills other fields of the refusal with their words for nothing."


def _steps() -> Iterator[tuple[str, str]]:
    for name in HASHES:
        for what in ("of nobody", "a token that is none"):
            yield f"scram-right-and-wrong: SaslAuthenticate v2 first of {name}, {what}", NOBODY
        yield f"scram-right-and-wrong: SaslAuthenticate v2 final of {name}, another binding", BINDING
        yield f"scram-right-and-wrong: SaslAuthenticate v2 final of {name}, a proof that is too short", SHORT
    yield "delegation-tokens: SaslAuthenticate v2 first of a token, not said to be one", NOBODY
    for step in ("SaslAuthenticate v2", "after"):
        yield f"scram-first-messages: {step} an escape", NOBODY
        yield f"scram-first-messages: {step} no binding of his", GS2
    yield "scram-first-messages: SaslAuthenticate v2 a reserved extension", RESERVED
    for version in (0, 3):
        yield f"versions-before-and-after: ApiVersions v{version} twice", TWICE
    yield "what-comes-again: SaslAuthenticate v2 again, as another mechanism", OTHER
    yield "what-comes-again: SaslHandshake v1 again, as an unknown mechanism", OTHER
    for api in ("CreateDelegationToken", "FindCoordinator", "InitProducerId"):
        yield f"what-comes-too-early: {api} v3 in the place of a token", EMPTY


KNOWN = dict(_steps())
