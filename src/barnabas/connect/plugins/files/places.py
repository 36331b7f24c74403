"""Opens the place of a path or of a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.files.folder import Folder
from barnabas.connect.plugins.files.storage import Storage, options_of


def is_url(place: str) -> bool:
    """Whether a place is in an object store."""
    return "://" in place and not place.startswith("file://")


def opened(place: str, config: Mapping[str, Any]) -> Storage:
    """The storage of a path or of a URL such as `s3://bucket/prefix`.

    Args:
        config: of the connector; keys below `store.` are options of the object store.

    Raises:
        ConnectError: the URL or an option is wrong.
    """
    if not is_url(place):
        return Folder(place.removeprefix("file://"))
    try:
        from barnabas.connect.plugins.files.objects import Objects
    except ModuleNotFoundError:
        raise ConnectError(f"{place} needs the package obstore: pip install 'barnabas[connect]'") from None
    return Objects.at(place, options_of(config))
