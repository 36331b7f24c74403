"""Informs the parts that depend on ACLs, users and quotas.

Each follower names its kinds, and gets all entries of a kind after each change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.cluster.metadata.declared import Declarations, Kind

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage

Follower = Callable[[Declarations], None]


class DeclarationFollowers:
    """The followers of one broker.

    Args:
        image: returns the current metadata.
    """

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self._followers: dict[Kind, list[Follower]] = {}

    def follow(self, kind: Kind, follower: Follower) -> None:
        """Give `follower` all current entries, and again after each change."""
        self._followers.setdefault(kind, []).append(follower)
        follower(self._image().declarations(kind))

    def tell(self, kinds: Iterable[Kind]) -> None:
        """Inform the followers of these kinds."""
        for kind in kinds:
            for follower in self._followers.get(kind, ()):
                follower(self._image().declarations(kind))
