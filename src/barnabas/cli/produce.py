"""`barnabas produce`: records from standard input or files into a topic.

Rules
  1. Exit code 0 means that the cluster confirmed every record. After the first record without a confirmation in time, the
     command sends nothing more, so the written part of the input has no gaps. A line on standard error says how many sent
     records are not confirmed.
  2. A piece of input that is not a record ends the command with exit code 2; the records before it were sent.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
from msgspec import Struct, field

from barnabas.cli.connection import Connection, connection_options, reason_of
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.fatal import with_exceptions
from barnabas.cli.output import Output, output_option
from barnabas.cli.properties import parse_pair
from barnabas.cli.records import INPUT_FORMAT, BadRecord, Record, parser_for, unescape
from barnabas.cli.registry_connection import RegistryOptions, registry_options
from barnabas.cli.schema_records import Encoding, encoding_options
from barnabas.cli.sizes import batch_settings, explain
from barnabas.cli.types import ANY_TEXT, PARTITION, RATE, FilePath
from barnabas.protocol.records.batch_header import CODEC_NAMES
from barnabas.signals import interrupted_by_sigterm

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

compression_option = click.option(
    "-z", "--compression", type=click.Choice(CODEC_NAMES), default="none", show_default=True, help="Compression of the batches."
)
acks_option = click.option(
    "--acks",
    type=click.Choice(["all", "1", "0"]),
    default="all",
    show_default=True,
    help="The replicas that must confirm a record.",
)
READ_BYTES = 1 << 16
POLL_EVERY, POLL_EVERY_S = (
    256,
    0.1,
)  # records and seconds between two polls for delivery reports; a poll takes as long as a few records


class Sender(Struct):
    """Passes records to the producer and counts the delivery reports."""

    producer: Producer
    topic: str
    refusals: tuple[type[Exception], ...]  # errors of the producer for a record that can never be sent, and after a fatal error
    # arguments: the error, the record's size in bytes, whether librdkafka itself refused the record
    explain: Callable[[KafkaError, int, bool], str] = lambda error, size, is_ours: reason_of(error)
    sent: int = 0
    failed: int = 0
    first_error: str | None = None
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)  # partition -> (first, last) offset
    polled_s: float = 0.0

    def send(self, record: Record) -> None:
        """Queue a record; waits while the queue is full. Raises Failure for a record that can never be sent, and after any
        record was not written."""
        key, value, headers, timestamp_ms, partition = record
        arguments: dict[str, Any] = {}
        if headers:
            arguments["headers"] = headers
        if timestamp_ms is not None:
            arguments["timestamp"] = timestamp_ms
        if partition is not None:
            arguments["partition"] = partition
        try:
            while True:
                try:
                    self.producer.produce(self.topic, value, key, **arguments)
                except BufferError:
                    with_exceptions(self.producer.poll, 0.1)
                else:
                    break
            self.sent += 1
            now_s = time.monotonic()
            if not self.sent % POLL_EVERY or now_s - self.polled_s > POLL_EVERY_S:
                with_exceptions(self.producer.poll, 0)
                self.polled_s = now_s
        except self.refusals as error:
            raise self._refused(error, record) from error
        if self.failed:
            self.finish()

    def receive_report(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.failed += 1
            if self.first_error is None:
                self.first_error = self.explain(
                    error, 0 if message is None else _size(message.key(), message.value(), message.headers()), False
                )
        else:
            first, _ = self.offsets.get(message.partition(), (message.offset(), 0))
            self.offsets[message.partition()] = (first, message.offset())

    def finish(self) -> None:
        """Wait for all confirmations; raises Failure if some are missing. After a failure it does not send the queued records."""
        try:
            if self.failed:
                self.producer.purge(in_queue=True, in_flight=False)
            left = with_exceptions(self.producer.flush)
        except self.refusals as error:
            raise self._refused(error) from error
        if self.failed or left:
            raise Failure(f"{self.failed + left} of {self.sent} records were not written: {self.first_error or 'no answer'}")

    def _refused(self, error: Exception, record: Record | None = None) -> Failure:
        """The Failure for a refused record or a fatal error: every call that reads delivery reports may show that an idempotent
        producer has failed.

        After the fatal error the exception is already set when a delivery report comes; confluent-kafka turns this into a
        SystemError.
        """
        cause = (isinstance(error, SystemError) and error.__cause__) or error
        found: Any = next(iter(getattr(cause, "args", ())), None)
        if record is None or not hasattr(found, "code"):
            return Failure(f"topic {self.topic}: {reason_of(cause)}")
        return Failure(f"topic {self.topic}: {self.explain(found, _size(record.key, record.value, record.headers), True)}")


def _size(key: bytes | str | None, value: bytes | str | None, headers: Any) -> int:
    """The size of a record in bytes, without the separators that the format adds."""
    named = [part for header in headers or () for part in header]
    return sum(map(len, filter(None, (key, value, *named))))


@click.command()
@click.argument("topic")
@click.argument("files", nargs=-1, type=FilePath(), metavar="[FILE]...")
@click.option("-k", "--key", type=ANY_TEXT, help="The key of every record.")
@click.option(
    "-K", "--key-separator", type=ANY_TEXT, metavar="TEXT", help="Take the key from the input: the text before the first TEXT."
)
@click.option(
    "-H", "--header", "headers", type=ANY_TEXT, multiple=True, metavar="NAME=VALUE", help="A header for every record; repeatable."
)
@click.option(
    "-p",
    "--partition",
    type=PARTITION,
    help="Write to this partition.  [default: by the hash of the key]",
)
@click.option(
    "-f",
    "--format",
    "format_name",
    type=INPUT_FORMAT,
    default="text",
    show_default=True,
    metavar="text|json|hex|TEMPLATE",
    help="Format of the input; a template has %k, %v, %h, %T and %p.",
)
@click.option(
    "-D", "--delimiter", type=ANY_TEXT, default="\\n", show_default=True, metavar="TEXT", help="Separator between two records."
)
@click.option("--whole-files", is_flag=True, help="Make one record of each file, or of all of standard input.")
@click.option(
    "--null",
    "null_marker",
    type=ANY_TEXT,
    metavar="TEXT",
    help="A key or value equal to TEXT is null (a null value deletes a key).",
)
@click.option("--tombstone", is_flag=True, help="Send one record with the --key and a null value; reads no input.")
@click.option("--keep-partitions", is_flag=True, help="Use the partition that JSON records name.")
@compression_option
@acks_option
@click.option(
    "--idempotence/--no-idempotence", default=False, show_default=True, help="Let the broker drop duplicates that retries send."
)
@click.option("--rate", type=RATE, metavar="N", help="Records a second at most.")
@encoding_options
@registry_options
@connection_options
@output_option
def produce(
    connection: Connection,
    output: Output,
    topic: str,
    files: tuple[str, ...],
    key: str | None,
    key_separator: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    format_name: str,
    delimiter: str,
    whole_files: bool,
    null_marker: str | None,
    tombstone: bool,
    keep_partitions: bool,
    compression: str,
    acks: str,
    idempotence: bool,
    rate: float | None,
    registry: RegistryOptions,
    encoding: Encoding,
) -> None:
    """Write records to TOPIC, one for each line of standard input or of the FILEs.

    \b
    echo '{"delay": 5}' | barnabas produce flights --key UA
    barnabas produce flights --key-separator : < lines.txt
    barnabas consume flights --format json | barnabas produce copy --format json
    barnabas produce orders lines.json --schema order.avsc
    """
    if key is not None and key_separator is not None:
        raise click.UsageError("--key and --key-separator exclude each other")
    if tombstone and (key is None or files):
        raise click.UsageError("--tombstone takes a --key and no files")
    null = None if null_marker is None else null_marker.encode()
    separator = unescape(key_separator) if key_separator else None
    parse = parser_for(format_name, key_separator=separator, null_marker=null, json_parts=encoding.parts)
    fixed_headers = [(name, value.encode()) for name, value in (parse_pair(header, "--header") for header in headers)]
    fix = _fixer(key, fixed_headers, partition, drop_partitions=format_name == "json" and not keep_partitions)
    encode = encoding.encoder(registry, topic) if encoding.parts else None
    settings = _settings(connection, compression, acks, idempotence=idempotence)
    with ExitStack() as stack:
        if tombstone:
            records = iter([Record(None, None, [])])
        elif whole_files:
            records = (Record(None, _read(name), []) for name in files or ("-",))
        else:
            pieces = (piece for stream in _open_all(stack, files) for piece in split(stream, unescape(delimiter)))
            records = map(parse, pieces)
        for change in filter(None, (fix, encode)):
            records = map(change, records)
        if rate is not None:
            records = pace(records, rate)
        sender = _send_all(connection, settings, topic, records, with_offsets=output.as_json)
    if output.as_json:
        partitions = [{"partition": p, "first_offset": f, "last_offset": last} for p, (f, last) in sorted(sender.offsets.items())]
        output.json({"topic": topic, "records": sender.sent, "partitions": partitions})
    elif sys.stderr.isatty():
        click.echo(f"wrote {sender.sent} records to {topic}", err=True)


def _settings(connection: Connection, compression: str, acks: str, *, idempotence: bool) -> dict[str, Any]:
    """The producer's settings."""
    settings: dict[str, Any] = {"compression.type": compression, "acks": acks, "enable.idempotence": idempotence}
    if not idempotence:
        settings["max.in.flight.requests.per.connection"] = 1  # a retry must not change the order of the batches
    settings["message.timeout.ms"] = int(connection.timeout_s * 1000)
    return settings


def _send_all(
    connection: Connection, settings: dict[str, Any], topic: str, records: Iterator[Record], *, with_offsets: bool
) -> Sender:
    from confluent_kafka import KafkaException

    # Each report of success costs a call, so reports are requested only if the output shows offsets.
    senders: list[Sender] = []
    settings["delivery.report.only.error"] = not with_offsets
    settings["on_delivery"] = lambda error, message: senders[0].receive_report(error, message)

    def tell(error: KafkaError, size: int, is_ours: bool) -> str:
        return explain(connection, topic, error, size, is_ours=is_ours)

    producer = connection.producer({**batch_settings(connection, topic), **settings})
    sender = Sender(producer, topic, (KafkaException, SystemError), tell)
    senders.append(sender)
    try:
        with interrupted_by_sigterm():
            for record in records:
                sender.send(record)
    except BadRecord as error:
        sender.finish()
        raise BadRecord(f"record {sender.sent + 1}: {error.message}") from error
    except BaseException:
        sender.finish()  # the records before the error are sent, like those before Ctrl-C
        raise
    sender.finish()
    return sender


def _fixer(
    key: str | None, headers: list[tuple[str, bytes]], partition: int | None, *, drop_partitions: bool
) -> Callable[[Record], Record] | None:
    """A function that sets the values of options in every record; None if options set none."""
    fixed: dict[str, Any] = {}
    if key is not None:
        fixed["key"] = key.encode()
    if partition is not None or drop_partitions:
        fixed["partition"] = partition
    if not fixed and not headers:
        return None

    def fix(record: Record) -> Record:
        if headers:
            record = record._replace(headers=[*record.headers, *headers])
        return record._replace(**fixed)

    return fix


def pace(records: Iterator[Record], rate: float) -> Iterator[Record]:
    """The records, at most `rate` a second."""
    start = time.monotonic()
    for index, record in enumerate(records):
        wait = start + index / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        yield record


def split(stream: BinaryIO, delimiter: bytes) -> Iterator[bytes]:
    """The pieces between delimiters; after the last delimiter there is no empty piece."""
    if not delimiter:
        raise BadInput("--delimiter is empty")
    if delimiter == b"\n":
        for line in stream:
            yield line[:-1] if line.endswith(b"\n") else line
        return
    rest = b""
    read = getattr(stream, "read1", stream.read)  # read1 returns the available bytes of a pipe and does not wait for a full chunk
    while data := read(READ_BYTES):
        *pieces, rest = (rest + data).split(delimiter)
        yield from pieces
    if rest:
        yield rest


def _open_all(stack: ExitStack, files: tuple[str, ...]) -> Iterator[BinaryIO]:
    for name in files or ("-",):
        if name == "-":
            yield sys.stdin.buffer
        else:
            yield _with_progress(stack, _open(name), name)


def _open(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise BadInput(f"cannot read {name}: {error.strerror}") from error


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    with _open(name) as stream:
        return stream.read()


def _with_progress(stack: ExitStack, stream: BinaryIO, name: str) -> BinaryIO:
    """The stream, with a progress bar on standard error while it is read, if that is a terminal."""
    stack.enter_context(stream)
    size = Path(name).stat().st_size
    if not sys.stderr.isatty() or size == 0:
        return stream
    from rich.console import Console
    from rich.progress import wrap_file

    return stack.enter_context(wrap_file(stream, size, description=name, console=Console(stderr=True), transient=True))
