"""The findings of `barnabas doctor check` in the folders of a killed or stopped broker.

After a kill there may be whatever a start mends without a loss; after a clean stop there is nothing. So what a start did not mend is
seen at the next clean stop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.doctor_check import check_folders
from barnabas.storage.check.finding import Finding

# A start completes the creation or deletion of these topics: it makes or removes the folder.
ON_THE_WAY = re.compile(
    "partition 0 of topic fleeting-[0-9]+ has no folder in the data folders that were named"
    "|the metadata has no partition 0 of topic fleeting-[0-9]+"
    "|it has offset [0-9]+ for fleeting-[0-9]+-0, of which there is no folder"
)


def beyond_a_start(folders: Sequence[Path]) -> list[Finding]:
    """The faults that no start repairs."""
    findings = check_folders(folders).findings
    return [each for each in findings if not each.mended and not ON_THE_WAY.fullmatch(each.what)]


def left_by_a_stop(folders: Sequence[Path]) -> list[Finding]:
    """The faults after a clean stop."""
    return check_folders(folders).findings
