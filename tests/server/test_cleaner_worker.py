"""The cleaner's process when the broker is gone."""

from __future__ import annotations

import subprocess
import sys

from barnabas.server.cleaning.worker import EXIT_ALONE

SAY = "from barnabas.server.cleaning.worker import Worker; input(); Worker().say(clean=1, cancelled=True)"


def test_it_ends_without_a_word_when_nobody_reads_what_it_says() -> None:
    command = [sys.executable, "-c", SAY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.close()
        _, told = worker.communicate(b"\n", timeout=30)
    assert (worker.returncode, told) == (EXIT_ALONE, b"")
