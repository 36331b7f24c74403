"""Apache Kafka's own integration tests of its clients and of Kafka Streams, run against barnabas: `make kafkatests`.

Kafka publishes them compiled. They ask a class for a cluster; `java/` has one of the same name that starts barnabas, and comes first on the
class path. `expected-clients.tsv`, `expected-streams.tsv` and `expected-connect.tsv` give the reason for every test that does not pass.
A result that differs from them is a failure. Other tests of Streams use its own group protocol (KIP-1071), which barnabas does not
serve, or were not tried.

369 tests of clients took 25 minutes on two cores. `PlaintextConsumerCloseTest` may fail there: it wants a close to take 500 ms, the
time of a fetch that waits, and its clock starts when the fetch has left.

    python -m tests.kafkatests                                 all of the clients', held against expected-clients.tsv
    python -m tests.kafkatests PlaintextConsumerTest ...       some classes
    python -m tests.kafkatests --of streams                    those of Kafka Streams
    python -m tests.kafkatests --of connect                    those of Kafka Connect
    python -m tests.kafkatests --save results.tsv              write down what came of each test
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.kafka import TESTS_VERSION, fetch

from barnabas.testing.children import Child
from barnabas.testing.zookeeper import ZooKeeper
from tests.kafkatests.results import Expected, Result, differences, read_expected, result_of

HERE = Path(__file__).parent
SOURCES = sorted((HERE / "java").rglob("*.java"))
JVM = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
CLIENTS_JARS = f"integration-tests-{TESTS_VERSION}"
STREAMS = (
    "EOSUncleanShutdownIntegrationTest",
    "FineGrainedAutoResetIntegrationTest",
    "GlobalKTableEOSIntegrationTest",
    "GlobalKTableIntegrationTest",
    "JoinStoreIntegrationTest",
    "KTableSourceTopicRestartIntegrationTest",
    "OptimizedKTableIntegrationTest",
    "PurgeRepartitionTopicIntegrationTest",
    "RebalanceIntegrationTest",
    "RegexSourceIntegrationTest",
)


CONNECT = (
    "ConnectWorkerIntegrationTest",
    "ConnectorRestartApiIntegrationTest",
    "ConnectorTopicsIntegrationTest",
    "ErrorHandlingIntegrationTest",
    "ExactlyOnceSourceIntegrationTest",
    "ExampleConnectIntegrationTest",
)


class Suite(NamedTuple):
    """Tests of one of Kafka's parts."""

    jars: str  # the set of `tools.kafka.SETS` after that of the clients; empty for the clients' own tests
    tests: tuple[str, ...]  # the jars with the tests
    classes: tuple[str, ...]  # classes to run by default; empty means all


SUITES = {
    "clients": Suite("", ("kafka-clients-integration-tests",), ()),
    "streams": Suite("streams-tests", ("kafka-streams-integration-tests",), STREAMS),
    "connect": Suite("connect-tests", ("connect-runtime",), CONNECT),
}


def compiled(jars: Path, folder: Path) -> Path:
    """The classes of `java/`."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise SystemExit("Kafka's tests need `javac`, which is not on the path (Debian package: default-jdk-headless)")
    classes = folder / "classes"
    subprocess.run([compiler, "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), *map(str, SOURCES)], check=True)
    return classes


def lines_of(command: Sequence[str], log: Path) -> Iterator[str]:
    """The output of a program, line by line. All processes of its group end with it, and with this process, however these end."""
    with (
        log.open("wb") as errors,
        Child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as program,
    ):
        assert program.stdout is not None
        try:
            yield from program.stdout
        finally:
            program.end()


def run(suite: Suite, classes: Sequence[str], folder: Path, *, patient: bool) -> Iterator[Result]:
    """The result of each test, as it ends."""
    jars = fetch(CLIENTS_JARS)
    folders = [jars, *([fetch(f"{suite.jars}-{TESTS_VERSION}")] if suite.jars else [])]
    path = [str(compiled(jars, folder)), *(f"{each}/*" for each in folders)]
    tests = ":".join(f"{folders[-1]}/{name}-{TESTS_VERSION}-test.jar" for name in suite.tests)
    classes = classes or suite.classes
    with ZooKeeper() as zookeeper:
        properties = {
            "barnabas.command": f"{sys.executable} -m barnabas.cli",
            "barnabas.folder": str(folder),
            "barnabas.patient": str(patient).lower(),
            "barnabas.zookeeper": zookeeper.address.removeprefix("zookeeper://"),
        }
        said = [f"-D{key}={value}" for key, value in properties.items()]
        command = ["java", *JVM, *said, "-cp", ":".join(path), "Run", tests, *classes]
        yield from filter(None, map(result_of, lines_of(command, folder / "tests.log")))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=f"The integration tests of Apache Kafka {TESTS_VERSION}'s clients against barnabas"
    )
    parser.add_argument("classes", nargs="*", help="simple names of test classes; those of its `SUITES`, when none is named")
    parser.add_argument(
        "--of", choices=SUITES, default="clients", help="whose tests: of the clients, Kafka Streams or Kafka Connect"
    )
    parser.add_argument("--save", type=Path, help="write what came of each test there")
    parser.add_argument("--patient", action="store_true", help="without the time limits of the tests: on a machine that is busy")
    parser.add_argument("--keep", type=Path, help="a folder for logs and data, which is kept")
    options = parser.parse_args()
    began, results = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="kafkatests-") as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for result in run(SUITES[options.of], options.classes, folder, patient=options.patient):
            results.append(result)
            print(f"{result.outcome:8}{result.took_ms / 1000:7.1f} s  {result.name}  {result.why[:150]}", flush=True)
    if options.save:
        options.save.write_text("".join(f"{r.name}\t{r.outcome}\t{r.took_ms}\t{r.why}\n" for r in results))
    counts = Counter(result.outcome for result in results)
    print(f"{len(results)} tests in {time.monotonic() - began:.0f} s: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    expected: Expected = read_expected(HERE / f"expected-{options.of}.tsv")
    found = differences(results, expected, whole=not options.classes)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
