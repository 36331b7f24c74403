"""`barnabas start --secure` with the schema registry: every way to log in, as users meet it (curl, confluent-kafka)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from barnabas.cli.main import run
from tests.security.tokens import Provider, key_set
from tests.waiting import wait_until

RULES = "RULE:^CN=(.*?)$/$1/L,DEFAULT"
PASSWORD = "geheim"
TEXT = '{"type":"record","name":"Order","fields":[]}'
curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")


class Place(NamedTuple):
    """A running secure broker with its registry."""

    url: str
    folder: Path
    provider: Provider
    clients: list[SchemaRegistryClient]

    def file(self, name: str) -> str:
        return str(self.folder / "data-security" / name)

    def token(self, **claims: Any) -> str:
        return self.provider.sign(int(time.time()), **claims)

    def client(self, **settings: str) -> SchemaRegistryClient:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        made = SchemaRegistryClient({"url": self.url, "ssl.ca.location": self.file("ca.crt"), "max.retries": 0, **given})
        self.clients.append(made)
        return made

    def user(self, name: str, password: str = PASSWORD) -> SchemaRegistryClient:
        return self.client(basic_auth_user_info=f"{name}:{password}")

    def bearer(self, token: str) -> SchemaRegistryClient:
        return self.client(
            bearer_auth_credentials_source="STATIC_TOKEN", bearer_auth_token=token, bearer_auth_logical_cluster="lsrc-1",
            bearer_auth_identity_pool_id="pool-1",
        )  # fmt: skip

    def certificate(self, name: str) -> SchemaRegistryClient:
        return self.client(ssl_certificate_location=self.file(f"{name}.crt"), ssl_key_location=self.file(f"{name}.key"))

    def curl(self, *arguments: str) -> tuple[int, Any]:
        command = ["curl", "-sS", "--max-time", "30", "-w", "\n%{http_code}", "--cacert", self.file("ca.crt"), *arguments]
        body, _, status = subprocess.run(command, capture_output=True, text=True, check=True).stdout.rpartition("\n")
        return int(status), json.loads(body)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder, provider = tmp_path_factory.mktemp("secure"), Provider()
    keys = folder / "keys.json"
    keys.write_text(key_set(provider.public()))
    settings = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "ssl.principal.mapping.rules": RULES,
    }
    command = [
        sys.executable, "-m", "barnabas.cli", "start", "--secure", "--log-level", "info", "--data-dir", str(folder / "data"),
        "--listeners", "SASL_SSL://127.0.0.1:0", "--registry-listener", "https://127.0.0.1:0",
    ]  # fmt: skip
    for key, value in settings.items():
        command += ["--config", f"{key}={value}"]
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        broker, registry = (process.stdout.readline().split("connections on ")[1].strip() for _ in range(2))
        found = Place(registry, folder, provider, [])
        _fill(found, broker.partition("://")[2])
        yield found
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _fill(place: Place, broker: str) -> None:
    """Users, rights and certificates, as the commands make them."""
    (place.folder / "password").write_text(PASSWORD)
    cluster = ("-b", broker, "--command-config", place.file("admin.properties"))
    for user in ("alice", "bob"):
        assert run(["user", "add", user, "--password-file", str(place.folder / "password"), *cluster]) == 0
    for user, operation in (("alice", "subject-write"), ("bob", "subject-read")):
        assert (
            run(["acl", "add", "--principal", f"User:{user}", "--subject", "orders-value", "--operation", operation, *cluster])
            == 0
        )
    assert run(["security", "certificates", "--out", str(place.folder / "data-security"), "--clients", "Alice,bob"]) == 0
    wait_until(lambda: _registers(place), "alice's right did not reach the registry")


def _registers(place: Place) -> bool:
    try:
        place.user("alice").register_schema("orders-value", Schema(TEXT, "AVRO"))
    except SchemaRegistryError:
        return False
    finally:
        close_clients(place)
    return True


@pytest.fixture(autouse=True)
def _closed(place: Place) -> Iterator[None]:
    yield
    close_clients(place)


def close_clients(place: Place) -> None:
    """End their connections."""
    while place.clients:
        place.clients.pop().__exit__(None, None, None)


def code_of(client: SchemaRegistryClient, call: str, *arguments: object) -> int:
    """The status and the code of a refusal."""
    with pytest.raises(SchemaRegistryError) as refused:
        getattr(client, call)(*arguments)
    return int(refused.value.error_code)


@pytest.mark.parametrize("how", ["password", "token", "certificate"])
def test_each_way_to_log_in_gives_the_rights_of_the_user(place: Place, how: str) -> None:
    if how == "password":
        alice, bob = place.user("alice"), place.user("bob")
    elif how == "token":
        alice, bob = place.bearer(place.token()), place.bearer(place.token(sub="bob"))
    else:
        alice, bob = place.certificate("Alice"), place.certificate("bob")
    schema = Schema(TEXT, "AVRO")
    registered = alice.register_schema("orders-value", schema)
    assert alice.lookup_schema("orders-value", schema).schema_id == registered
    assert bob.get_subjects() == ["orders-value"]
    assert bob.get_latest_version("orders-value").schema_id == registered
    assert code_of(bob, "register_schema", "orders-value", Schema('"int"', "AVRO")) == 40301
    assert code_of(bob, "delete_subject", "orders-value") == 40301
    assert code_of(alice, "register_schema", "payments-value", schema) == 40301
    assert code_of(alice, "set_compatibility", None, "NONE") == 40301


def test_what_the_cluster_refuses_the_registry_refuses(place: Place) -> None:
    another = Provider()
    now = int(time.time())
    for client in (
        place.user("alice", "wrong"), place.user("nobody"), place.client(), place.bearer(another.sign(now)),
        place.bearer(place.provider.sign(now - 900)), place.bearer("no token"),
    ):  # fmt: skip
        assert code_of(client, "get_subjects") == 401
    assert place.user("admin", admin_password(place)).get_subjects() == ["orders-value"]


def admin_password(place: Place) -> str:
    text = Path(place.file("admin.properties")).read_text()
    return next(line for line in text.splitlines() if "jaas" in line).split('"')[3]


@curl
def test_curl(place: Place) -> None:
    refused = 401, {"error_code": 401, "message": "Unauthorized"}
    for path in ("/", "/subjects", "/nowhere", "/metrics", "/schemas/ids/1"):
        assert place.curl(place.url + path) == refused, path
    assert place.curl("-u", "bob:geheim", f"{place.url}/") == (200, {})
    assert place.curl("-u", "bob:geheim", f"{place.url}/nowhere")[0] == 404
    assert place.curl("-H", f"Authorization: Bearer {place.token()}", f"{place.url}/subjects") == (200, ["orders-value"])
    shown = ("--cert", place.file("bob.crt"), "--key", place.file("bob.key"))
    assert place.curl(*shown, f"{place.url}/subjects") == (200, ["orders-value"])
    denied = {"error_code": 40301, "message": "User is denied operation Delete on Subject: orders-value"}
    assert place.curl(*shown, "-X", "DELETE", f"{place.url}/subjects/orders-value") == (403, denied)


def test_no_password_is_in_the_log(place: Place) -> None:
    text = (place.folder / "errors").read_text()
    assert PASSWORD not in text
    assert admin_password(place) not in text
