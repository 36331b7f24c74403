"""What `barnabas doctor check` says of the folders of a broker that was killed or stopped.

After a kill there may be whatever a start mends without a loss; after a clean stop there is nothing. So what a start did not mend is
seen at the next clean stop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.doctor_check import check_folders
from barnabas.storage.check.finding import Finding

# What no repair does because the next start does it, or decides about it. The topics that come and go may be on their way.
LEFT_TO_THE_START = re.compile(
    "a compacted segment that has not taken its place yet"
    "|a partition that was being moved, or that no metadata knew"
    "|an unfinished copy of a partition that is moved here|the partition was moved to .*"
    "|partition 0 of topic fleeting-[0-9]+ has no folder in the data folders that were named"
    "|the metadata has no partition 0 of topic fleeting-[0-9]+"
)


def findings(folders: Sequence[Path]) -> list[Finding]:
    return check_folders(folders).findings


def beyond_a_start(folders: Sequence[Path]) -> list[Finding]:
    """What was found that a start does not mend."""
    return [each for each in findings(folders) if each.repair is None and not LEFT_TO_THE_START.fullmatch(each.what)]
