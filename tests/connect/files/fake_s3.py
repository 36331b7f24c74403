"""A small S3: one bucket in memory over HTTP, with the requests that stores send. It checks the name of the key, not signatures."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

KEY, SECRET = "the-key", "the-secret"
PAGE = 2  # objects of a page, so that listings have several


class FakeS3:
    """The server.

    Attributes:
        objects: by their names.
        refusals: how many of the next writes are answered with 503.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.refusals = 0
        self.uploads: dict[str, dict[int, bytes]] = {}  # parts by the id of an upload
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def options(self) -> dict[str, str]:
        """Keys of a connector's config."""
        return {
            "store.endpoint": f"http://127.0.0.1:{self._server.server_address[1]}", "store.region": "us-east-1",
            "store.access_key_id": KEY, "store.secret_access_key": SECRET,
        }  # fmt: skip

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def running() -> Iterator[FakeS3]:
    made = FakeS3()
    try:
        yield made
    finally:
        made.close()


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"

    def __init__(self, s3: FakeS3, *connection: Any) -> None:
        self.s3, self.objects = s3, s3.objects
        super().__init__(*connection)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Nothing is logged."""

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        data = self._received()
        self.body = _unchunked(data) if "aws-chunked" in self.headers.get("content-encoding", "") else data
        if f"Credential={KEY}/" not in self.headers.get("authorization", ""):
            self._answer(403, b"<Error><Code>InvalidAccessKeyId</Code></Error>")
            return False
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query, keep_blank_values=True)
        if not parts.path.startswith("/bucket"):
            self._answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            return False
        self.key = unquote(parts.path).removeprefix("/bucket").lstrip("/")
        return True

    def _received(self) -> bytes:
        """The body as it came."""
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        found = b""
        while length := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(length)
            self.rfile.readline()
        while self.rfile.readline().strip():
            continue
        return found

    def do_PUT(self) -> None:
        if self.s3.refusals:
            self.s3.refusals -= 1
            self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
            return
        if "uploadId" in self.query:
            self.s3.uploads[self.query["uploadId"][0]][int(self.query["partNumber"][0])] = self.body
            self._answer(200, b"", etag=f'"{hashlib.md5(self.body).hexdigest()}"')
            return
        if (source := self.headers.get("x-amz-copy-source")) is not None:
            self.objects[self.key] = self.objects[unquote(source).removeprefix("/").removeprefix("bucket/")]
            self._answer(200, f'<CopyObjectResult><ETag>"{self._tag()}"</ETag></CopyObjectResult>'.encode())
            return
        if self.headers.get("if-none-match") == "*" and self.key in self.objects:
            self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            return
        self.objects[self.key] = self.body
        self._answer(200, b"", etag=f'"{self._tag()}"')

    def do_GET(self) -> None:
        if "list-type" in self.query:
            self._list()
            return
        data = self.objects.get(self.key)
        if data is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif self.headers.get("if-match", f'"{self._tag()}"') != f'"{self._tag()}"':
            self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        elif (span := self.headers.get("range")) is not None:
            first, last = (int(each) for each in span.removeprefix("bytes=").split("-"))
            part = data[first : last + 1]
            told = {"content-range": f"bytes {first}-{first + len(part) - 1}/{len(data)}", **self._facts(data)}
            self._answer(206, part, **told)
        else:
            self._answer(200, data, **self._facts(data))

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        self.objects.pop(self.key, None)
        self._answer(204, b"")

    def do_POST(self) -> None:
        if "uploads" in self.query:
            upload = str(len(self.s3.uploads) + 1)
            self.s3.uploads[upload] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            self._answer(200, text.encode())
        elif "uploadId" in self.query:
            parts = self.s3.uploads[self.query["uploadId"][0]]
            self.objects[self.key] = b"".join(parts[number] for number in sorted(parts))
            text = f'<CompleteMultipartUploadResult><ETag>"{self._tag()}"</ETag></CompleteMultipartUploadResult>'
            self._answer(200, text.encode())
        else:
            self._delete_several()

    def _delete_several(self) -> None:
        names = [unescape(part.split("</Key>")[0]) for part in self.body.decode().split("<Key>")[1:]]
        for name in names:
            self.objects.pop(name, None)
        rows = "".join(f"<Deleted><Key>{escape(each)}</Key></Deleted>" for each in names)
        self._answer(200, f"<DeleteResult>{rows}</DeleteResult>".encode())

    def _list(self) -> None:
        prefix, after = self.query.get("prefix", [""])[0], self.query.get("continuation-token", [""])[0]
        names = sorted(each for each in self.objects if each.startswith(prefix) and each > after)
        rows = "".join(
            f"<Contents><Key>{escape(each)}</Key><LastModified>2025-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"{hashlib.md5(self.objects[each]).hexdigest()}"</ETag><Size>{len(self.objects[each])}</Size></Contents>'
            for each in names[:PAGE]
        )
        more = len(names) > PAGE
        token = f"<NextContinuationToken>{escape(names[PAGE - 1])}</NextContinuationToken>" if more else ""
        text = f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{rows}{token}</ListBucketResult>"
        self._answer(200, text.encode())

    def _tag(self) -> str:
        return hashlib.md5(self.objects.get(self.key, b"")).hexdigest()

    def _facts(self, data: bytes) -> dict[str, str]:
        return {"etag": f'"{hashlib.md5(data).hexdigest()}"', "last-modified": formatdate(0, usegmt=True)}

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _unchunked(body: bytes) -> bytes:
    """A body without the frames of `aws-chunked`: sizes in hexadecimal digits, and trailers."""
    found = b""
    while True:
        size, _, body = body.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        if not length:
            return found
        found, body = found + body[:length], body[length + 2 :]
