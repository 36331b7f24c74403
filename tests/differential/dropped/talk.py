"""A conversation in the versions that Kafka 4 dropped.

Rules
  1. A request without such a version is preparation. It is sent in the newest version up to the script's that the broker announces, and is
     not recorded.
  2. A request with such versions is sent in all of them. If the script names one version, it is sent in the newest of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from barnabas.protocol.base_message import Message
from barnabas.protocol.messages import FIRST_VERSIONS_OF_KAFKA_4
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.differential.plain import plain
from tests.differential.talk import Address, Talk
from tests.differential.wire import KEYS, Line, api_key_of, api_of, framed

# old versions of Produce and Fetch have other record formats
FIRST_KEPT = {key: first for key, first in FIRST_VERSIONS_OF_KAFKA_4.items() if key not in (ApiKey.PRODUCE, ApiKey.FETCH)}


@dataclass(frozen=True)
class OldAddress(Address):
    """As `Address`, with the port of a listener that asks for a log-in (0: there is none)."""

    sasl_port: int = 0

    @classmethod
    def at(cls, bootstrap: str, sasl_port: int = 0) -> OldAddress:
        """As `Address.of`."""
        found = Address.of(bootstrap)
        return cls(found.host, found.port, found.node_id, sasl_port)


@cache
def announced(address: Address) -> dict[int, tuple[int, int]]:
    """First and last version by API key."""
    with Line((address.host, address.port)) as line:
        line.send(ApiVersionsRequest(), 0)
        return {each.api_key: (each.min_version, each.max_version) for each in line.receive().api_keys}


class OldTalk(Talk):
    """See the module."""

    def log_in(self, user: str) -> Line:
        """A connection of `user`, whose password is the name, by SaslHandshake 0: the token comes without a header."""
        assert isinstance(self.address, OldAddress)
        line = self._open.enter_context(Line((self.address.host, self.address.sasl_port)))
        line.send(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        self.note(f"handshake of {user}", self.normalise(plain(line.receive(), 0)))
        line.socket.sendall(framed(f"\0{user}\0{user}".encode()))
        self.note(f"log-in of {user}", line.receive_frame().hex())
        return line

    def versions_of(self, api: str) -> range:
        """Every version that was dropped; of an API that kept all, the newest."""
        key = KEYS[api]
        if key in FIRST_KEPT:
            return range(FIRST_KEPT[key])
        newest = min(super().versions_of(api)[-1], announced(self.address)[key][1])
        return range(newest, newest + 1)

    def ask(
        self, step: str, request: Message, version: int, *, on: Line | None = None, only_mine: bool = False, by_kio: bool = True
    ) -> Any:
        """As `Talk.ask`, of what is recorded here."""
        key = api_key_of(request)
        if key not in FIRST_KEPT:
            return self.do(request, version, on=on)
        version = min(version, FIRST_KEPT[key] - 1)
        if f"{api_of(request)} v{version} {step}" in self.recording:
            return self.do(request, version, on=on)
        return super().ask(step, request, version, on=on, only_mine=only_mine, by_kio=by_kio)

    def do(self, request: Message, version: int, *, on: Line | None = None) -> Any:
        """As `Talk.do`, in a version that the broker has."""
        return super().do(request, min(version, announced(self.address)[api_key_of(request)][1]), on=on)
