"""Apache Kafka 4.3.0 as the oracle: fetch it, run one node of it, run its tools.

Owns the jars under `.cache/kafka-4.3.0/` of the checkout, which `mvn` fetches once from Maven Central, and the processes that
it starts.

Rules
  1. The broker and the tests of `make test` do not need this module: Kafka's recorded answers are in the checkout.
  2. A node listens on loopback only, on ports that were free, with its data in a temporary folder (or the given one). It is
     stopped by its process id; no file or process is left.
  3. Tools are run by their main class, so neither Kafka's shell scripts nor its distribution are needed.

Ugly: Kafka cannot report a port that the system chose, so free ports are chosen first; if another process takes one before, the
node fails and is started again on other ports.

    with KafkaNode(heap="1g", config={"num.partitions": "3"}) as node:
        run_tool("kafka-topics", "--bootstrap-server", node.bootstrap, "--list")
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from barnabas.testing.children import Child

VERSION = "4.3.0"
HOME = Path(__file__).resolve().parent.parent / ".cache" / f"kafka-{VERSION}"
NODE_ID = 1
START_TIMEOUT_S = 120.0  # on a loaded machine, a cold JVM takes up to 30 s
STOP_TIMEOUT_S = 60.0
START_ATTEMPTS = 3
CLUSTER_ID = "YmFybmFiYXMtb3JhY2xlIQ"  # any 16 bytes in URL-safe base64

TESTS_VERSION = "4.3.1"  # the first version whose integration tests are published
DEBEZIUM_VERSION = "3.6.1.Final"  # connectors of change capture, in a worker of TESTS_VERSION
DEBEZIUM_JDBC_VERSION = "3.6.0.Final"  # of the sink; Maven Central has no 3.6.1
DEBEZIUM_FOR_MARIADB = (
    "2.5.4.Final"  # the connector of MySQL has a mode for MariaDB; Maven Central has no connector of MariaDB alone
)
ICEBERG_VERSION = "1.12.0"  # of its sink
DROPPED_CLIENTS = ("0.8.2.2", "0.9.0.1", "0.10.2.2", "1.1.1", "2.0.1")  # Kafka 4 supports none of these clients
OLDER_CLIENTS = ("2.1.1", "2.8.2", "3.4.1", "3.8.1")
LAST_WITH_ALL = "jars-3.9.1"  # the last Kafka version that supports all versions of its protocol
# set -> artifacts, as [group/]name[:version[:classifier]]; the default version is VERSION
SETS = {
    "jars": ("kafka_2.13", "kafka-tools"),
    LAST_WITH_ALL: ("kafka_2.13:3.9.1", "kafka-tools:3.9.1"),
    "frameworks": ("kafka-streams", "connect-runtime", "connect-mirror", "connect-file"),
    f"integration-tests-{TESTS_VERSION}": tuple(
        f"{name}:{TESTS_VERSION}{classifier}"
        for name, classifier in (
            ("kafka-clients-integration-tests", ":test"),
            ("kafka-clients-integration-tests", ""),
            ("kafka-test-common-runtime", ""),
            ("kafka-clients", ":test"),
            ("kafka_2.13", ":test"),
        )
    ),
    f"streams-tests-{TESTS_VERSION}": (
        *(f"{name}:{TESTS_VERSION}:test" for name in ("kafka-streams-integration-tests", "kafka-streams", "kafka-server-common")),
        f"kafka-streams:{TESTS_VERSION}",
        "org.hamcrest/hamcrest:3.0",
    ),
    f"connect-tests-{TESTS_VERSION}": (
        *(f"{name}:{TESTS_VERSION}:test" for name in ("connect-runtime", "kafka-server-common")),
        *(f"{name}:{TESTS_VERSION}" for name in ("connect-runtime", "connect-file")),
        "org.hamcrest/hamcrest:3.0",
    ),
    f"debezium-{DEBEZIUM_VERSION}": (
        *(f"connect-runtime:{TESTS_VERSION}", f"connect-json:{TESTS_VERSION}"),
        *(
            f"io.debezium/debezium-{name}:{DEBEZIUM_VERSION}"
            for name in ("api", "embedded", "connector-postgres", "connector-mysql")
        ),
    ),
    f"debezium-jdbc-{DEBEZIUM_JDBC_VERSION}": (
        *(f"connect-runtime:{TESTS_VERSION}", f"connect-json:{TESTS_VERSION}"),
        f"io.debezium/debezium-connector-jdbc:{DEBEZIUM_JDBC_VERSION}",
        *("org.hibernate.orm/hibernate-core:7.3.4.Final", "org.hibernate.orm/hibernate-hikaricp:7.3.3.Final"),
        *("org.postgresql/postgresql:42.7.7", "org.mariadb.jdbc/mariadb-java-client:3.5.3"),
    ),
    f"iceberg-{ICEBERG_VERSION}": (
        *(f"connect-runtime:{TESTS_VERSION}", f"connect-json:{TESTS_VERSION}"),
        *(f"org.apache.iceberg/iceberg-{name}:{ICEBERG_VERSION}" for name in ("kafka-connect", "parquet")),
        *("org.apache.hadoop/hadoop-client-api:3.4.1", "org.apache.hadoop/hadoop-client-runtime:3.4.1"),
    ),
    f"debezium-{DEBEZIUM_FOR_MARIADB}": (
        *(f"connect-runtime:{TESTS_VERSION}", f"connect-json:{TESTS_VERSION}"),
        *(f"io.debezium/debezium-{name}:{DEBEZIUM_FOR_MARIADB}" for name in ("api", "core", "connector-mysql")),
        "org.mariadb.jdbc/mariadb-java-client:3.5.3",
        *(
            f"com.fasterxml.jackson.{name}:2.21.2" for name in ("core/jackson-core", "datatype/jackson-datatype-jsr310")
        ),  # not older ones
    ),
    "pgjdbc": ("org.postgresql/postgresql:42.7.7",),
    "jdbc": ("org.postgresql/postgresql:42.7.7", "org.mariadb.jdbc/mariadb-java-client:3.5.3"),
    **{f"clients-{version}": (f"kafka-clients:{version}",) for version in (*DROPPED_CLIENTS, *OLDER_CLIENTS)},
}
EXCLUDED = {
    "debezium-connector-jdbc": ("org.hibernate", "hibernate-agroal"),  # Maven Central has no version of it that fits
    "hibernate-hikaricp": ("org.hibernate.orm", "hibernate-core"),
}
EXCLUSION = "<exclusions><exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion></exclusions>"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>barnabas</groupId><artifactId>oracle</artifactId><version>1</version>
  <dependencies>
    {kafka}
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.4</version>
    </dependency>
  </dependencies>
</project>
"""
KAFKA = "org.apache.kafka"  # the default group of an artifact
DEPENDENCY = (
    "<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>{more}</dependency>"
)
LOGGING = """rootLogger.level = warn
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d %p %c: %m%n
"""

TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


class KafkaUnavailable(RuntimeError):
    """Kafka cannot be fetched or started here; the text names the missing part."""


def _program(name: str, package: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise KafkaUnavailable(f"Apache Kafka {VERSION} needs `{name}`, which is not on the path (Debian package: {package})")
    return path


def fetch(wanted: str = "jars") -> Path:
    """The folder of one of `SETS`; fetches it if it is missing.

    Raises:
        KafkaUnavailable: Java or Maven is missing, or Maven could not fetch.
    """
    _program("java", "default-jre-headless")
    jars = HOME / wanted
    if jars.is_dir():
        return jars
    maven = _program("mvn", "maven")
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "log4j2.properties").write_text(LOGGING)
    with tempfile.TemporaryDirectory(dir=HOME) as unfinished:
        pom = Path(unfinished) / "pom.xml"
        pom.write_text(POM.format(kafka="\n    ".join(_dependency(each) for each in SETS[wanted])))
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={unfinished}/jars"]
        done = subprocess.run([*command, "-DincludeScope=runtime"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise KafkaUnavailable(f"Maven could not fetch Apache Kafka {VERSION}:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
        (Path(unfinished) / "jars").rename(jars)
    return jars


def _dependency(artifact: str) -> str:
    path, version, classifier = [*artifact.split(":"), "", ""][:3]
    group, _, name = path.rpartition("/")
    classified = f"<classifier>{classifier}</classifier>" if classifier else ""
    more = classified + (EXCLUSION.format(*EXCLUDED[name]) if name in EXCLUDED else "")
    return DEPENDENCY.format(group=group or KAFKA, name=name, version=version or VERSION, more=more)


def java(main_class: str, *arguments: str, jvm: Sequence[str] = (), jars: str = "jars") -> list[str]:
    """The command line that runs a class of one of `SETS`, or a source file with them."""
    logging = f"-Dlog4j2.configurationFile={HOME / 'log4j2.properties'}"
    return [_program("java", "default-jre-headless"), *jvm, logging, "-cp", f"{fetch(jars)}/*", main_class, *arguments]


def tool_command(name: str, *arguments: str) -> list[str]:
    """The command line of one of Kafka's tools, for callers that run it themselves."""
    return java(TOOLS[name], *arguments, jvm=("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"))


def run_tool(
    name: str, *arguments: str, text: str | None = None, timeout_s: float = 120.0, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run one of `TOOLS` to its end, `text` on its standard input.

    Raises:
        AssertionError: the tool failed and `check` is set; the text has the tool's output.
    """
    command = tool_command(name, *arguments)
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{name} {' '.join(arguments)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def free_ports(count: int) -> list[int]:
    """Ports that are free at this moment, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class KafkaNode:
    """One KRaft node, broker and controller in one process, from `start` to `stop` or as a context.

    `config` overrides the properties below, `features` the feature levels of the formatted storage. With `data_dir`, the data
    is in this folder and stays after the end of the node.
    """

    start_timeout_s = START_TIMEOUT_S
    jars = "jars"  # key of `SETS`

    def __init__(
        self,
        *,
        heap: str = "1g",
        config: Mapping[str, str] | None = None,
        data_dir: Path | None = None,
        features: Mapping[str, int] | None = None,
        jvm: Sequence[str] = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    ) -> None:
        self.heap = heap
        self.config = dict(config or {})
        self.features = dict(features or {})
        self.jvm = tuple(jvm)
        self.node_id = NODE_ID
        self.bootstrap = ""
        self.ready_after_s = 0.0
        self._given_data_dir = data_dir
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._process: Child[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        assert self._process is not None
        return self._process.pid

    @property
    def data_dir(self) -> Path:
        """The folder of the partitions; `stop` removes it unless the caller gave it."""
        if self._given_data_dir is not None:
            return self._given_data_dir
        assert self._scratch is not None
        return Path(self._scratch.name) / "data"

    @property
    def log(self) -> str:
        """The output of the node on its standard streams."""
        assert self._scratch is not None
        return (Path(self._scratch.name) / "kafka.log").read_text(errors="replace")

    def start(self) -> None:
        """Format the data folder if needed, start, and return when the node answers.

        Raises:
            KafkaUnavailable: the node did not start; the text ends with its log.
        """
        fetch(self.jars)
        self._scratch = tempfile.TemporaryDirectory(prefix="kafka-node-")
        try:
            for attempt in range(1, START_ATTEMPTS + 1):
                if self._start_on_free_ports():
                    return
                if attempt == START_ATTEMPTS:
                    raise KafkaUnavailable(f"Apache Kafka {VERSION} did not start:\n{self.log[-4000:]}")
        except BaseException:
            self.stop()
            raise

    def _start_on_free_ports(self) -> bool:
        assert self._scratch is not None
        port, controller_port = self._pick_ports()
        self.bootstrap = f"127.0.0.1:{port}"
        properties = Path(self._scratch.name) / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self._properties(port, controller_port).items()))
        if not (self.data_dir / "meta.properties").exists():
            self._format(properties)
        began = time.monotonic()
        with (Path(self._scratch.name) / "kafka.log").open("ab") as log:
            jvm = (f"-Xms{self.heap}", f"-Xmx{self.heap}", *self.jvm)
            command = java("kafka.Kafka", str(properties), jvm=jvm, jars=self.jars)
            self._process = Child(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while time.monotonic() - began < self.start_timeout_s and self._process.poll() is None:
            if _answers(port):
                self.ready_after_s = time.monotonic() - began
                return True
            time.sleep(0.02)
        self._end_process()
        return False

    def _format(self, properties: Path) -> None:
        features = [part for name, level in self.features.items() for part in ("--feature", f"{name}={level}")]
        command = java(TOOLS["kafka-storage"], "format", "-t", CLUSTER_ID, "-c", str(properties), *features, jars=self.jars)
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            raise KafkaUnavailable(f"the data folder could not be formatted:\n{done.stdout}\n{done.stderr}")

    def _pick_ports(self) -> tuple[int, int]:
        """The ports of the broker and of the controller."""
        port, controller_port = free_ports(2)
        return port, controller_port

    def _properties(self, port: int, controller_port: int) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "controller.quorum.voters": f"{self.node_id}@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.config,
        }

    def end(self) -> None:
        """End the process in order; the files stay until `stop`."""
        self._end_process()

    def stop(self) -> None:
        """End the process and remove temporary files; may be called again."""
        self._end_process()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> KafkaNode:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def _answers(port: int) -> bool:
    """Whether a Metadata request (version 1, no topic) is answered with a broker."""
    request = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
            line.sendall(struct.pack(">i", len(request)) + request)
            answer = line.recv(4096)
    except OSError:
        return False
    return len(answer) >= 12 and struct.unpack_from(">i", answer, 8)[0] >= 1


def main() -> None:
    """Fetch Kafka; with a tool's name, run the tool; with `start`, run a node until it is interrupted."""
    parser = argparse.ArgumentParser(description=f"Apache Kafka {VERSION}: fetch it, run a node or a tool")
    parser.add_argument("what", nargs="?", default="fetch", choices=["fetch", "start", *TOOLS])
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.what == "fetch":
        print(fetch())
    elif options.what == "start":
        with KafkaNode() as node:
            print(node.bootstrap, flush=True)
            try:
                signal.pause()
            except KeyboardInterrupt:
                return
    else:
        sys.exit(subprocess.run(tool_command(options.what, *options.arguments), check=False).returncode)


if __name__ == "__main__":
    main()
