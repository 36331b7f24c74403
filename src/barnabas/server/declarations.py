"""Who follows what is declared of principals: each follower has its kinds, and is told the whole of one whenever it has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.cluster.metadata.declared import Declarations, Kind

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage

Follower = Callable[[Declarations], None]


class DeclarationFollowers:
    """Of one broker.

    Args:
        image: the metadata as it is now.
    """

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self._followers: dict[Kind, list[Follower]] = {}

    def follow(self, kind: Kind, follower: Follower) -> None:
        """Tell `follower` what is declared now, and again after each change."""
        self._followers.setdefault(kind, []).append(follower)
        follower(self._image().declarations(kind))

    def tell(self, kinds: Iterable[Kind]) -> None:
        """These have changed."""
        for kind in kinds:
            for follower in self._followers.get(kind, ()):
                follower(self._image().declarations(kind))
