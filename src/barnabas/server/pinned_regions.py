"""Regions of files that are kept beyond the turn of the loop in which they were read, and the descriptors that they need for it.

A log closes its files when segments are deleted; by then another file may have the number. So who keeps a region has a duplicate of the
descriptor: one for all regions of a segment, however many readers wait for its bytes, for the system grants so many descriptors and no
more. The last of them to let go closes it.

They are held on the loop and let go of anywhere, for threads read them too.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import Files
from barnabas.storage.integrity import SegmentIntegrity


class _Descriptor:
    """Open as long as it lives."""

    __slots__ = ("_files", "fileno")

    def __init__(self, files: Files, fileno: int) -> None:
        self._files = files
        self.fileno = fileno

    def __del__(self) -> None:
        self._files.close(self.fileno)


class _PinnedFile:
    """What the regions of one segment share.

    It has no `__del__` itself, for that runs before the references to its object die: it could be found with its descriptor closed.
    """

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, descriptor: _Descriptor) -> None:
        self.descriptor = descriptor


class PinnedRegion:
    """A file region for as long as somebody has it."""

    __slots__ = ("_file", "fileno", "position", "size")

    def __init__(self, file: _PinnedFile, position: int, size: int) -> None:
        self._file = file
        self.fileno = file.descriptor.fileno
        self.position = position
        self.size = size


class PinnedFiles:
    """The files of which a broker holds regions, by what is known of their bytes: each segment has its own.

    Args:
        most: how many there may be before those who wait are to make way (`is_crowded`).
    """

    def __init__(self, files: Files, most: int) -> None:
        self.files = files
        self.on_more: Callable[[], None] = lambda: None  # told when one more is held
        self._most = most
        self._held: WeakValueDictionary[SegmentIntegrity, _PinnedFile] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, region: FileRegion) -> bool:
        """Whether the region's file is held already, so that to hold it takes no descriptor."""
        return region.integrity in self._held

    @property
    def is_crowded(self) -> bool:
        return len(self._held) > self._most

    def has_room_for(self, region: FileRegion) -> bool:
        """Whether a region should be held that can wait: its file is held already, or half of what may be held is free.

        The other half is for what cannot wait. Else one who reads much at once would have all others make way.
        """
        return len(self._held) < self._most // 2 or region in self

    def hold(self, region: FileRegion) -> PinnedRegion:
        """The same region, held.

        Raises:
            OSError: there are no descriptors left.
        """
        file = self._held.get(region.integrity)
        if file is None:
            file = self._held[region.integrity] = _PinnedFile(_Descriptor(self.files, self.files.dup(region.fileno)))
            self.on_more()
        return PinnedRegion(file, region.position, region.size)
