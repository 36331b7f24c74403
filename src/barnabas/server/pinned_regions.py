"""File regions that live longer than the turn of the loop in which they were read, and their descriptors.

A log closes its files when segments are deleted, and another file may get the number. So such a region needs a duplicate of the
descriptor. All held regions of a segment share one duplicate, because the system limits the number of descriptors. The last region closes
it.

The loop holds regions. Any thread may release them, because threads read them too.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import Files
from barnabas.storage.integrity import SegmentIntegrity


class _Descriptor:
    """A descriptor that is open as long as this object lives."""

    __slots__ = ("_files", "fileno")

    def __init__(self, files: Files, fileno: int) -> None:
        self._files = files
        self.fileno = fileno

    def __del__(self) -> None:
        self._files.close(self.fileno)


class _PinnedFile:
    """The shared part of the regions of one segment.

    It has no `__del__` itself: that would run before the weak references to the object end, and these could return it with a closed
    descriptor.
    """

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, descriptor: _Descriptor) -> None:
        self.descriptor = descriptor


class PinnedRegion:
    """A file region that keeps its file open."""

    __slots__ = ("_file", "fileno", "position", "size")

    def __init__(self, file: _PinnedFile, position: int, size: int) -> None:
        self._file = file
        self.fileno = file.descriptor.fileno
        self.position = position
        self.size = size


class PinnedFiles:
    """The files of which a broker holds regions. The key is the `SegmentIntegrity` of the file, because each segment has its own.

    Args:
        most: with more held files, the broker drops slow readers (`is_crowded`).
    """

    def __init__(self, files: Files, most: int) -> None:
        self.files = files
        self.on_more: Callable[[], None] = lambda: None  # called when one more file is held
        self._most = most
        self._held: WeakValueDictionary[SegmentIntegrity, _PinnedFile] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, region: FileRegion) -> bool:
        """Whether the region's file is held already, so that the region needs no descriptor."""
        return region.integrity in self._held

    @property
    def is_crowded(self) -> bool:
        return len(self._held) > self._most

    def has_room_for(self, region: FileRegion) -> bool:
        """Whether to hold a region that can wait: its file is held already, or half of the descriptors are free.

        The other half is for regions that cannot wait. Without it, one client that reads much at once would drop all slow readers.
        """
        return len(self._held) < self._most // 2 or region in self

    def hold(self, region: FileRegion) -> PinnedRegion:
        """The same region, held.

        Raises:
            OSError: there are no free descriptors.
        """
        file = self._held.get(region.integrity)
        if file is None:
            file = self._held[region.integrity] = _PinnedFile(_Descriptor(self.files, self.files.dup(region.fileno)))
            self.on_more()
        return PinnedRegion(file, region.position, region.size)
