"""The blocking client of a registry against a server that answers what the test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from barnabas import limits
from barnabas.errors import ConfigError
from barnabas.schemas.registry_client import RegistryClient, RegistryError, RegistryUnreachable
from tests.cli.conftest import UNUSED


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A server that gives one answer to everything: its URL, and what it is asked (path, Authorization)."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization", "")))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_names_are_encoded_and_the_user_is_sent() -> None:
    with answering(200, b"[]") as (url, asked), RegistryClient(url, {"basic.auth.user.info": "alice:secret"}) as client:
        assert client.get("subjects", "a/b ü", deleted=True, verbose=False) == []
        assert client.get("subjects") == []
    assert asked == [("/subjects/a%2Fb%20%C3%BC?deleted=true", "Basic YWxpY2U6c2VjcmV0"), ("/subjects", "Basic YWxpY2U6c2VjcmV0")]


def test_a_longer_answer_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REGISTRY_ANSWER_BYTES", 10)
    longer = b'"' + b"x" * 9 + b'"'
    with (
        answering(200, longer) as (url, _),
        RegistryClient(url) as client,
        pytest.raises(RegistryUnreachable, match="longer than 10"),
    ):
        client.get("subjects")


def test_the_first_url_that_answers_counts() -> None:
    with answering(200, b"[]") as (url, asked), RegistryClient(f"http://{UNUSED},{url}") as client:
        assert client.get("subjects") == []
        assert client.get("subjects") == []
        assert client.urls[0] == url
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("status", "body", "error", "text"),
    [
        (404, b'{"error_code":40401,"message":"Subject \'a\' not found."}', RegistryError, r"not found\. \(error code 40401\)"),
        (401, b"", RegistryError, "wants a user"),
        (500, b"oops", RegistryUnreachable, "status 500"),
        (404, b"<html>", RegistryUnreachable, "status 404"),
    ],
)
def test_what_a_registry_refuses(status: int, body: bytes, error: type[Exception], text: str) -> None:
    with answering(status, body) as (url, _), RegistryClient(url) as client, pytest.raises(error, match=text):
        client.get("subjects", "a")


@pytest.mark.parametrize("url", ["", ",", "127.0.0.1:8081", "ftp://127.0.0.1", "http://"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(ConfigError, match="a URL such as"):
        RegistryClient(url)


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match=r"basic\.auth\.user"):
        RegistryClient(settings={"basic.auth.user": "a:b"})
