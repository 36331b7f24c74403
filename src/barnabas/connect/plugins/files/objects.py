"""Files of an object store, by the library obstore: S3 and what is compatible with it, Google Cloud Storage, Azure, memory."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import (
    BaseError,
    GenericError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import from_url

from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.plugins.files.storage import Changed, Entry, Storage

READ_BYTES = 8 << 20  # of one request
CLIENT = ("allow_http", "allow_invalid_certificates", "connect_timeout", "timeout", "proxy_url", "user_agent")
RETRIES: Any = {"max_retries": 3}  # of one request, in the library; the task tries again for longer
_MISSING = "404 Not Found"  # a bucket, in a listing
_DENIED = ("403 ", "Forbidden", "AccessDenied", "SignatureDoesNotMatch", "InvalidAccessKeyId", "credential")


class Objects:
    """See `Storage`.

    Args:
        store: of the whole bucket.
        prefix: of the names of this place, without a slash at its end.
        url: of the bucket, for addresses.
    """

    def __init__(self, store: Any, prefix: str, url: str) -> None:
        self._store, self._url = store, url
        self._prefix = f"{prefix}/" if prefix else ""

    @classmethod
    def at(cls, url: str, options: Mapping[str, str]) -> Objects:
        """The place of a URL. Raises ConnectError."""
        parts = urlsplit(url)
        bucket = f"{parts.scheme}://{parts.netloc}"
        own = {key: value for key, value in options.items() if key not in CLIENT}
        client: Any = {key: options[key] for key in CLIENT if key in options}
        if own.get("endpoint", "").startswith("http://"):
            client.setdefault("allow_http", "true")
        try:
            named: Any = own or None  # users name them
            store = from_url(bucket, config=named, client_options=client or None, retry_config=RETRIES)
        except UnknownConfigurationKeyError as error:
            raise ConnectError(f"the store {bucket} has no such option: {_line(error)}") from None
        except (BaseError, ValueError) as error:
            raise ConnectError(f"{url} cannot be opened: {_line(error)}") from None
        return cls(store, parts.path.strip("/"), bucket)

    def entries(self, *, recursive: bool) -> Iterable[Entry]:
        found = []
        with self._told("list", ""):
            for chunk in obstore.list(self._store, prefix=self._prefix.rstrip("/") or None):
                found += [each for each in map(self._entry, chunk) if each is not None]
        return found if recursive else [each for each in found if "/" not in each.name]

    def _entry(self, meta: Any) -> Entry | None:
        path = meta["path"]
        if not path.startswith(self._prefix):
            return None
        name = path.removeprefix(self._prefix)
        if any(part.startswith(".") for part in name.split("/")):
            return None
        return Entry(name, meta["size"], int(meta["last_modified"].timestamp() * 1000), meta["e_tag"], is_whole=True)

    def open(self, entry: Entry) -> IO[bytes]:
        return io.BufferedReader(_ObjectFile(self, entry), READ_BYTES)

    def read(self, entry: Entry, begin: int, end: int) -> bytes:
        """Bytes of an object. Raises Changed, ConnectError."""
        options: Any = {"range": (begin, end)}
        if entry.version is not None:
            options["if_match"] = entry.version
        with self._told("read", entry.name):
            return bytes(obstore.get(self._store, self._prefix + entry.name, options=options).bytes())

    def put(self, name: str, data: Any) -> None:
        with self._told("write", name):
            obstore.put(self._store, self._prefix + name, bytes(data), use_multipart=False)

    def move(self, name: str, target: Storage) -> None:
        assert isinstance(target, Objects)
        if target._url != self._url:
            raise ConnectError(f"{self.address(name)} cannot be moved to another bucket: {target._url}")
        with self._told("move", name):
            place, number = target._prefix + name, 0
            while self._is_there(place):
                number += 1
                place = f"{target._prefix}{name}.{number}"
            obstore.copy(self._store, self._prefix + name, place)
            obstore.delete(self._store, self._prefix + name)

    def _is_there(self, path: str) -> bool:
        try:
            obstore.head(self._store, path)
        except FileNotFoundError:
            return False
        return True

    def delete(self, name: str) -> None:
        with self._told("delete", name):
            try:
                obstore.delete(self._store, self._prefix + name)
            except FileNotFoundError:
                return

    def address(self, name: str) -> str:
        return f"{self._url}/{self._prefix}{name}"

    @contextmanager
    def _told(self, verb: str, name: str) -> Iterator[None]:
        """Errors of the library as ours, in one line."""
        try:
            yield
        except (FileNotFoundError, PreconditionError) as error:
            if verb in {"list", "write"}:  # the bucket itself is missing
                raise ConnectError(f"the store cannot {verb} {self.address(name)}: {_line(error)}") from None
            raise Changed(f"{self.address(name)} is gone or has changed: {_line(error)}") from None
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise ConnectError(f"the store refuses to {verb} {self.address(name)}: {_line(error)}") from None
        except GenericError as error:
            text = _line(error)
            if any(each in text for each in _DENIED):
                raise ConnectError(f"the store refuses to {verb} {self.address(name)}: {text}") from None
            if _MISSING in text:
                raise ConnectError(f"the store cannot {verb} {self.address(name)}: {text}") from None
            raise RetriableError(f"the store cannot {verb} {self.address(name)}: {text}") from None
        except BaseError as error:
            raise ConnectError(f"the store cannot {verb} {self.address(name)}: {_line(error)}") from None


class _ObjectFile(io.RawIOBase):
    """An object as a file, of which each read is a request."""

    def __init__(self, store: Objects, entry: Entry) -> None:
        super().__init__()
        self._store, self._entry = store, entry
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._entry.size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        end = min(self._position + len(buffer), self._entry.size)
        if end <= self._position:
            return 0
        data = self._store.read(self._entry, self._position, end)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _line(error: BaseException) -> str:
    """The first line of an error of the library, without its debug text."""
    return str(error).split("\n", 1)[0]
