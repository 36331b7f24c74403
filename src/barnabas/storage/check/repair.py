"""Repairs errors that can be repaired without loss.

Rules
  1. No byte of a batch is changed. A repair cuts and removes only bytes and files that the next start of a broker would also
     cut or remove.
  2. A small file is replaced as a whole and synced.
  3. A failed repair is reported, and the others are still done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.storage.check.batches import SegmentWalk
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.compaction.swap import finish_swaps
from barnabas.storage.files import Files
from barnabas.storage.garbage import remove_folder
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.index_repair import note_entries
from barnabas.storage.loader import LEFTOVER
from barnabas.storage.segment import DELETED_SUFFIX, INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX

ORDER = {Repair.FINISH_COMPACTION: 0, Repair.CUT_TAIL: 1}


def repair(files: Files, findings: Sequence[Finding], replacements: Mapping[Path, bytes]) -> list[str]:
    """Execute the repairs of findings; returns for each a sentence about the repair, or the reason why there is none."""
    done: dict[tuple[Repair, Path], str] = {}
    outcomes = []
    # Interrupted swaps are finished first; a tail is cut before the indexes of its segment are rebuilt.
    for finding in sorted(findings, key=lambda each: ORDER.get(each.repair, len(ORDER)) if each.repair else 0):
        if finding.repair is None:
            continue
        key = finding.repair, _target(finding)
        if key not in done:
            done[key] = _try(files, finding, replacements)
    for finding in findings:
        if finding.repair is None:
            outcomes.append(f"not repaired: {finding.why_not}")
        else:
            outcomes.append(done[finding.repair, _target(finding)])
    return outcomes


def _target(finding: Finding) -> Path:
    """The file or folder that a repair changes."""
    if finding.repair is Repair.FINISH_COMPACTION:
        return finding.path.parent
    return finding.path.with_suffix(LOG_SUFFIX) if finding.repair is Repair.REBUILD_INDEXES else finding.path


def _try(files: Files, finding: Finding, replacements: Mapping[Path, bytes]) -> str:
    path = finding.path
    try:
        match finding.repair:
            case Repair.REBUILD_INDEXES:
                return rebuild_indexes(files, _target(finding))
            case Repair.FINISH_COMPACTION:
                return _finish_compaction(files, path.parent)
            case Repair.CUT_TAIL:
                return _cut(files, path, finding.position or 0)
            case Repair.REMOVE_FILE:
                files.unlink(path)
                files.sync_directory(path.parent)
                return "repaired: removed"
            case Repair.REMOVE_FOLDER:
                remove_folder(files, path)
                files.sync_directory(path.parent)
                return "repaired: removed with what was in it"
            case _:
                files.replace_file(path, replacements[path])
                return "repaired: written anew"
    except OSError as error:
        return f"not repaired: {error}"


def _finish_compaction(files: Files, folder: Path) -> str:
    for name in finish_swaps(files, folder, files.list_directory(folder)):
        if name.endswith(DELETED_SUFFIX) and LEFTOVER.fullmatch(name):
            files.unlink(folder / name)
    return "repaired: finished as the next start would"


def _cut(files: Files, path: Path, position: int) -> str:
    fileno = files.open(path)
    try:
        size = files.size(fileno)
        files.truncate(fileno, position)
        files.sync(fileno)
    finally:
        files.close(fileno)
    rebuild_indexes(files, path)
    return f"repaired: the last {size - position} bytes cut off, the indexes written anew"


def rebuild_indexes(files: Files, log_path: Path) -> str:
    """Rebuild both sparse indexes of a segment from its whole batches."""
    base_offset = int(log_path.stem)
    offsets, times = bytearray(), bytearray()
    note_entries(
        ((batch.position, batch.header) for batch in SegmentWalk(files, log_path, base_offset, None, 0) if batch.whole),
        base_offset,
        lambda offset, position: offsets.extend(OFFSET_ENTRY.pack(offset, position)),
        lambda time, offset: times.extend(TIME_ENTRY.pack(time, offset)),
    )
    files.replace_file(log_path.with_suffix(INDEX_SUFFIX), bytes(offsets))
    files.replace_file(log_path.with_suffix(TIME_INDEX_SUFFIX), bytes(times))
    return "repaired: both indexes written anew from the batches"
