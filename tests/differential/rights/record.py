"""Record Apache Kafka's answers to all questions with all rights: `python -m tests.differential.rights.record` (`make differential`)."""

from __future__ import annotations

import argparse
import sys
import time

from tools.kafka import KafkaNode, free_ports

from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.differential.rights.walk import GOLDEN, SECURED, as_text, ask, flat, load, walk
from tests.differential.runner import CONFIG
from tests.differential.talk import Address
from tests.differential.wire import Line


class SecuredKafka(KafkaNode):
    """A node with an authorizer. A client without a log-in may do everything, a client with one only what it is allowed."""

    sasl_port = 0

    def _properties(self, port: int, controller_port: int) -> dict[str, str]:
        (self.sasl_port,) = free_ports(1)
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=alice;"
        properties = super()._properties(port, controller_port)
        addresses = f",SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}"
        return {
            **properties,
            "listeners": properties["listeners"] + addresses,
            "advertised.listeners": properties["advertised.listeners"] + addresses,
            "listener.security.protocol.map": properties["listener.security.protocol.map"] + ",SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": login,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            **SECURED,
        }

    def connect(self) -> Line:
        """A connection of alice's."""
        line = Line(("127.0.0.1", self.sasl_port))
        assert not ask(line, SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code
        assert not ask(line, SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice"), 0).error_code
        return line


def main() -> int:
    """0 when the golden file holds what was found, or was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where Kafka differs from the golden file")
    options = parser.parse_args()
    node = SecuredKafka(config=CONFIG)
    with node:
        address = Address.of(node.bootstrap)
        began = time.monotonic()
        with Line((address.host, address.port)) as admin:
            table = walk(admin, node.connect, address.node_id)
        print(f"{len(flat(table))} answers in {time.monotonic() - began:.1f} s")
    if options.check:
        known = load()
        changed = [key for key, answer in flat(table).items() if known.get(key) != answer]
        print("\n".join(map(str, changed)))
        return 1 if changed else 0
    GOLDEN.write_text(as_text(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
