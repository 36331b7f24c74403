"""The certificates of a test broker: an authority with the broker's lifetime, one certificate for the broker, and one for each
requested client.

with Broker(tls=True) as kafka:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **kafka.certificates.client_settings("alice")})
"""

from __future__ import annotations

from pathlib import Path

from barnabas.tls.authority import Authority, Issued

PASSWORD = "password of the stores of a test"
HOSTS = ("localhost", "127.0.0.1", "::1")


class Certificates:
    """An authority in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority.create(folder, password=PASSWORD)
        self.broker = self.authority.issue("broker", hosts=HOSTS)
        self.password = PASSWORD  # of the PKCS12 stores
        self._clients: dict[str, Issued] = {}

    @property
    def ca_file(self) -> str:
        """The certificate of the authority (PEM)."""
        return str(self.authority.ca_file)

    def client(self, name: str) -> Issued:
        """The certificate of a client with the common name `name`; created at the first call."""
        if name not in self._clients:
            self._clients[name] = self.authority.issue(name)
        return self._clients[name]

    def client_settings(self, name: str | None = None) -> dict[str, str]:
        """Settings of librdkafka for a client, with a certificate if it has a `name`."""
        settings = {"security.protocol": "SSL", "ssl.ca.location": self.ca_file}
        if name is not None:
            files = self.client(name)
            settings |= {"ssl.certificate.location": str(files.certificate), "ssl.key.location": str(files.key)}
        return settings

    @property
    def broker_settings(self) -> dict[str, str]:
        """The broker settings for its certificate."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.broker.combined),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca_file,
            "ssl.client.auth": "requested",
        }
