"""Record Apache Kafka's answers to log-ins: `python -m tests.differential.logins.record` (`make differential`)."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tools.kafka import KafkaNode, free_ports

from barnabas.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from barnabas.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from barnabas.security.scram import salted
from barnabas.security.users import MECHANISM_NUMBERS
from tests.differential.logins import script
from tests.differential.logins.speaking import Place, Speaker
from tests.differential.wire import Line

GOLDEN = Path(__file__).parent / "golden.json"
PREFIX = "listener.name.sasl_plaintext."
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
# Settings of both brokers. Sessions of SCRAM-SHA-512 do not end.
SETTINGS = {
    "sasl.enabled.mechanisms": ",".join(["PLAIN", *MECHANISM_NUMBERS.values()]),
    f"{PREFIX}plain.sasl.jaas.config": f"{PLAIN_MODULE} required user_alice=alice user_bob=bob;",
    **{f"{PREFIX}{name.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;" for name in MECHANISM_NUMBERS.values()},
    **{f"{PREFIX}{name}.connections.max.reauth.ms": "3600000" for name in ("plain", "scram-sha-256")},
    "connection.failed.authentication.delay.ms": "0",
    "delegation.token.secret.key": "geheim",
}
Recordings = dict[str, dict[str, Any]]


class LoginKafka(KafkaNode):
    """A node with a listener in the clear and one that asks for log-ins."""

    sasl_port = 0

    def _properties(self, port: int, controller_port: int) -> dict[str, str]:
        (self.sasl_port,) = free_ports(1)
        properties = super()._properties(port, controller_port)
        for key in ("listeners", "advertised.listeners"):
            properties[key] += f",SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}"
        properties["listener.security.protocol.map"] += ",SASL_PLAINTEXT:SASL_PLAINTEXT"
        return {**properties, **SETTINGS}


def add_users(place: Place) -> None:
    """alice, whose password for SCRAM is `scram`."""
    salt = b"salt of the test"
    with Line(place.plain) as line:
        for number, name in MECHANISM_NUMBERS.items():
            kept = ScramCredentialUpsertion(
                name="alice", mechanism=number, iterations=4096, salt=salt, salted_password=salted(name, "scram", salt, 4096)
            )
            line.send(AlterUserScramCredentialsRequest(deletions=[], upsertions=[kept]), 0)
            answer: Any = line.receive()
            assert not any(each.error_code for each in answer.results), answer
        while True:
            line.send(DescribeUserScramCredentialsRequest(users=None), 0)
            described: Any = line.receive()
            if [len(each.credential_infos) for each in described.results] == [2]:
                break


def record(place: Place) -> Recordings:
    """The answers of all conversations."""
    add_users(place)
    found: Recordings = {}
    for name, conversation in vars(script).items():
        if callable(conversation) and getattr(conversation, "__module__", "") == script.__name__ and not name.startswith("_"):
            speaker = Speaker(place)
            try:
                conversation(speaker)
            finally:
                speaker.close()
            found[name.replace("_", "-")] = speaker.heard
    return found


def flat(recordings: Recordings) -> dict[str, Any]:
    return {f"{name}: {step}": answer for name, heard in recordings.items() for step, answer in heard.items()}


def as_text(recordings: Recordings) -> str:
    """A line for each step."""
    blocks = []
    for name, heard in recordings.items():
        steps = ",\n".join(f"  {json.dumps(step)}: {json.dumps(answer)}" for step, answer in heard.items())
        blocks.append(f" {json.dumps(name)}: {{\n{steps}\n }}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def main() -> int:
    """0 when the golden file holds what was found, or was written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where Kafka differs from the golden file")
    options = parser.parse_args()
    runs = []
    for _ in range(2):
        node = LoginKafka()
        with node:
            host, _, port = node.bootstrap.rpartition(":")
            runs.append(record(Place((host, int(port)), (host, node.sasl_port))))
    known = json.loads(GOLDEN.read_text()) if options.check else runs[1]
    changed = [step for step, answer in flat(known).items() if flat(runs[0]).get(step) != answer]
    print("\n".join(["these differ:", *changed]) if changed else f"{len(flat(runs[0]))} answers")
    if not changed and not options.check:
        GOLDEN.write_text(as_text(runs[0]))
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
