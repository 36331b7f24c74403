"""Adopts data folders of Apache Kafka: finds their topics, and creates the metadata that this broker needs to serve them.

Owns the plan (adopted items, others, and obstacles) and its one commit. The logs stay unchanged, byte by byte: the format is
the same. The adoption writes `metadata.db` in the first folder; until it is complete, the file has another name. It also fills
empty checkpoints and cuts preallocated space from indexes.

Rules
  1. Topic ids come from the partitions' folders; names and counts come from the folders and from Kafka's metadata log, which
     must agree.
  2. Every leader epoch is above those that Kafka used, so that clients and followers see a new leader.
  3. The broker does not give out producer ids that Kafka has given out.
  4. Access control lists, SCRAM users, quotas and delegation tokens are adopted from Kafka's metadata log.
  5. The adoption is all or nothing: one obstacle refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

from msgspec import Struct, field

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import COORDINATED_TOPICS, PartitionState, Topic
from barnabas.cluster.offline.kraft.declared import KraftDeclared
from barnabas.cluster.offline.kraft.metadata_log import FOLDER, KraftMetadata, read_metadata_log
from barnabas.cluster.planning.internal_topics import internal_topic
from barnabas.cluster.store.embedded import FILE_NAME, MEMORY_SUFFIX, RESERVE_SUFFIX, WAL_SUFFIX, EmbeddedStore
from barnabas.cluster.store.interface import ABSENT, Operation, Put, StoreUnavailable
from barnabas.config.broker import BrokerConfig
from barnabas.config.settings import check_broker, check_topic
from barnabas.config.topic import TopicConfig
from barnabas.digits import is_number
from barnabas.errors import CorruptLog, KafkaError
from barnabas.protocol.values import ResourceType
from barnabas.storage import checkpoints
from barnabas.storage.check.directory import DataFolder, read_data_folder
from barnabas.storage.files import Files, sync_file
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.segment import INDEX_SUFFIX, LOG_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX
from barnabas.storage.snapshot import decode_snapshot

UNFINISHED = FILE_NAME + ".adopting"
SIDE_FILES = (WAL_SUFFIX, MEMORY_SUFFIX, RESERVE_SUFFIX)


class AdoptedTopic(Struct, frozen=True):
    """A topic after the adoption."""

    name: str
    topic_id: UUID
    leader_epochs: tuple[int, ...]  # one per partition
    settings: Mapping[str, str]
    size_bytes: int


class Adoption(Struct):
    """The plan of an adoption. `obstacles` must be empty to execute it; `notes` list what is not adopted."""

    folders: list[DataFolder]
    cluster_id: str = ""
    node_id: int = -1
    topics: list[AdoptedTopic] = field(default_factory=list)
    broker_settings: dict[str, dict[str, str]] = field(default_factory=dict)  # broker id -> settings; "" for all brokers
    declared: KraftDeclared = field(default_factory=KraftDeclared)
    next_producer_id: int = 0
    obstacles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    has_metadata_log: bool = False

    @property
    def was_clean(self) -> bool:
        return all(folder.was_clean for folder in self.folders)


def plan_adoption(files: Files, paths: Sequence[Path], metadata_dir: Path | None = None) -> Adoption:
    """The plan for the data folders of one Kafka broker.

    Args:
        metadata_dir: folder of Kafka's metadata log (metadata.log.dir); None searches the data folders.

    Raises:
        OSError: the folders cannot be read.
    """
    plan = Adoption([read_data_folder(files, path) for path in paths])
    _check_owner(files, plan)
    kraft = _read_kraft(files, plan, [metadata_dir] if metadata_dir is not None else list(paths))
    found: dict[str, dict[int, Path]] = {}
    for folder in plan.folders:
        for (topic, index), path in folder.partitions.items():
            if index in found.setdefault(topic, {}):
                plan.obstacles.append(f"{path} is in {found[topic][index].parent} too")
            found[topic][index] = path
    for topic, partitions in sorted(found.items()):
        _plan_topic(files, plan, kraft, topic, partitions)
    _plan_absent(plan, kraft, found)
    _plan_brokers(plan, kraft)
    plan.next_producer_id = max(kraft.next_producer_id, plan.next_producer_id)
    plan.declared = kraft.declared
    plan.notes += kraft.declared.notes()
    plan.notes += [f"{kind} ({count}) do not come along" for kind, count in sorted(kraft.left_out.items())]
    return plan


def _check_owner(files: Files, plan: Adoption) -> None:
    for folder in plan.folders:
        properties = folder.properties
        if files.exists(folder.path / FILE_NAME):
            plan.obstacles.append(f"{folder.path} has a {FILE_NAME}: it belongs to barnabas already")
        cluster_id, node_id = properties.get("cluster.id"), properties.get("node.id", properties.get("broker.id", ""))
        if cluster_id is None or not is_number(node_id):
            plan.obstacles.append(
                f"{folder.path / checkpoints.META_PROPERTIES} does not say of which cluster and node the folder is"
            )
            continue
        if plan.cluster_id and (plan.cluster_id, plan.node_id) != (cluster_id, int(node_id)):
            plan.obstacles.append(f"{folder.path} is of node {node_id} of cluster {cluster_id}, the first folder is of another")
        plan.cluster_id, plan.node_id = plan.cluster_id or cluster_id, plan.node_id if plan.node_id >= 0 else int(node_id)
        for finding in folder.findings:
            if finding.path.name in checkpoints.OFFSET_CHECKPOINTS and files.file_size(finding.path):
                plan.obstacles.append(f"{finding.path}: {finding.what}")


def _read_kraft(files: Files, plan: Adoption, places: Sequence[Path]) -> KraftMetadata:
    for place in places:
        if files.exists(place / FOLDER):
            plan.has_metadata_log = True
            try:
                return read_metadata_log(files, place / FOLDER)
            except CorruptLog as error:
                plan.obstacles.append(str(error))
                return KraftMetadata()
    plan.notes.append(f"there is no {FOLDER}: settings of topics and brokers, users, rights and quotas do not come along")
    return KraftMetadata()


def _plan_topic(files: Files, plan: Adoption, kraft: KraftMetadata, name: str, folders: Mapping[int, Path]) -> None:
    ids = {index: _topic_id(files, plan, path) for index, path in folders.items()}
    known = {topic_id for topic_id in ids.values() if topic_id is not None}
    if len(known) != 1:
        if known:
            plan.obstacles.append(f"the partitions of topic {name} have different topic ids")
        return
    (topic_id,) = known
    told = kraft.partitions.get(topic_id, {})
    if plan.has_metadata_log and topic_id not in kraft.names:
        plan.notes.append(f"topic {name} was deleted: Kafka's metadata does not know it; its folders stay and are not served")
        return
    count = max([*folders, *told]) + 1
    missing = sorted(set(range(count)) - set(folders))
    if missing:
        where = {replica for index in missing if index in told for replica in told[index].replicas} - {plan.node_id}
        hint = f"; their replicas are on brokers {', '.join(map(str, sorted(where)))}" if where else ""
        plan.obstacles.append(f"topic {name} has {count} partitions, of which {_listed(missing)} are not in these folders{hint}")
        return
    epochs = [
        _next_epoch(files, plan, folders[index], told[index].leader_epoch if index in told else 0) for index in range(count)
    ]
    size = sum(
        files.file_size(path / each)
        for path in folders.values()
        for each in files.list_directory(path)
        if each.endswith(LOG_SUFFIX)
    )
    for path in folders.values():
        _note_producers(files, plan, path)
    plan.topics.append(AdoptedTopic(name, topic_id, tuple(epochs), _settings_of(plan, kraft, name), size))


def _topic_id(files: Files, plan: Adoption, path: Path) -> UUID | None:
    try:
        topic_id = checkpoints.read_partition_metadata(files, path / checkpoints.PARTITION_METADATA)
    except CorruptLog as error:
        plan.obstacles.append(f"{path / checkpoints.PARTITION_METADATA} cannot be read: {error.reason}")
        return None
    if topic_id is None:
        plan.obstacles.append(f"{path} has no {checkpoints.PARTITION_METADATA}, so its topic id is not known")
    return topic_id


def _next_epoch(files: Files, plan: Adoption, path: Path, told: int) -> int:
    if _is_empty(files, path / checkpoints.LEADER_EPOCHS):
        return told + 1
    try:
        entries = checkpoints.read_leader_epochs(files, path / checkpoints.LEADER_EPOCHS)
    except CorruptLog as error:
        plan.obstacles.append(f"{path / checkpoints.LEADER_EPOCHS} cannot be read: {error.reason}")
        return 0
    return max([told, *(epoch for epoch, _ in entries)]) + 1


def _note_producers(files: Files, plan: Adoption, path: Path) -> None:
    """Note the producer ids in use, in case the metadata log does not have them."""
    for name in files.list_directory(path):
        if name.endswith(SNAPSHOT_SUFFIX):
            try:
                entries = decode_snapshot(files.read_file(path / name), path / name)
            except CorruptLog:
                continue  # the next start drops the snapshot and derives the epochs from the batches
            plan.next_producer_id = max([plan.next_producer_id, *(entry.producer_id + 1 for entry in entries)])


def _settings_of(plan: Adoption, kraft: KraftMetadata, name: str) -> dict[str, str]:
    settings = dict(kraft.configs.get((ResourceType.TOPIC, name), {}))
    if not plan.has_metadata_log and name in COORDINATED_TOPICS:
        made = internal_topic(name, BrokerConfig.from_properties({"log.dirs": "unused"})[0], alone=True)
        settings = {} if made is None else {key: value for key, value in made.configs if value is not None}
    kept = {}
    for key, value in settings.items():
        try:
            check_topic({key: value}, TopicConfig())
            kept[key] = value
        except KafkaError as error:
            plan.notes.append(f"topic {name} keeps its default of {key}: {error.message}")
    if int(kept.get("min.insync.replicas", "1")) > 1:
        plan.notes.append(
            f"topic {name} has min.insync.replicas={kept['min.insync.replicas']}: acks=all fails on a single broker"
        )
    return kept


def _plan_absent(plan: Adoption, kraft: KraftMetadata, found: Mapping[str, object]) -> None:
    absent = sorted(name for name in kraft.names.values() if name not in found)
    for name in absent:
        plan.obstacles.append(f"topic {name} has no partition in these folders; name all of the broker's")


def _plan_brokers(plan: Adoption, kraft: KraftMetadata) -> None:
    for (kind, name), settings in sorted(kraft.configs.items()):
        if kind == ResourceType.BROKER and name in ("", str(plan.node_id)) and settings:
            kept = {}
            for key, value in settings.items():
                try:
                    check_broker({key: value}, of_all_brokers=not name)
                    kept[key] = value
                except KafkaError as error:
                    plan.notes.append(f"broker setting {key} does not come along: {error.message}")
            plan.broker_settings[name] = kept
        elif kind not in (ResourceType.TOPIC, ResourceType.BROKER) and settings:
            plan.notes.append(f"settings of {name or 'the default'} (resource type {kind}) do not come along")


def _listed(numbers: Sequence[int], shown: int = 10) -> str:
    return ", ".join(map(str, numbers[:shown])) + (", ..." if len(numbers) > shown else "")


def adopt(files: Files, plan: Adoption, secret: bytes) -> None:
    """Execute the plan.

    Args:
        secret: random bytes (see `KraftDeclared.declarations`).

    Raises:
        StoreUnavailable: the metadata could not be written; then nothing is adopted.
        OSError: the disk fails.
    """
    assert not plan.obstacles, "a plan with obstacles is not carried out"
    for folder in plan.folders:
        small = [folder.path / name for name in checkpoints.OFFSET_CHECKPOINTS]
        for path in folder.partitions.values():
            _trim_indexes(files, path)
            small.append(path / checkpoints.LEADER_EPOCHS)
        for path in small:
            if _is_empty(files, path):
                files.replace_file(path, checkpoints.encode_offsets({}))
    operations = [Put(store_entries.CLUSTER, store_entries.encode({"id": plan.cluster_id}), ABSENT)]
    operations.append(Put(store_entries.PRODUCER_IDS, store_entries.encode(plan.next_producer_id), ABSENT))
    for adopted in plan.topics:
        node = (plan.node_id,)
        states = tuple(PartitionState(plan.node_id, epoch, node, node) for epoch in adopted.leader_epochs)
        topic = Topic(adopted.name, adopted.topic_id, states)
        operations.append(Put(store_entries.topic_path(topic.name), store_entries.encode_topic(topic), ABSENT))
        operations += [Put(path, value, ABSENT) for path, value in store_entries.chunks_of(topic)]
        if adopted.settings:
            operations.append(_put_settings(ResourceType.TOPIC, adopted.name, adopted.settings))
    operations += [_put_settings(ResourceType.BROKER, name, kept) for name, kept in plan.broker_settings.items() if kept]
    for kind, key, value in plan.declared.declarations(secret):
        operations.append(Put(store_entries.declaration_path(kind, key), store_entries.encode(value), ABSENT))
    _make_database(files, plan.folders[0].path, operations)


def _make_database(files: Files, folder: Path, operations: Sequence[Operation]) -> None:
    """Create `metadata.db` with these operations, or not at all: with an empty file a broker would treat all logs as strays."""
    _remove_unfinished(files, folder)  # a killed run may have left it
    try:
        with EmbeddedStore(folder, UNFINISHED) as store:
            store.commit(operations)
        if files.exists(folder / (UNFINISHED + WAL_SUFFIX)):
            raise StoreUnavailable(f"{folder / UNFINISHED}: what was committed could not be put into the file itself")
        sync_file(files, folder / UNFINISHED)
        for suffix in SIDE_FILES:
            files.unlink(folder / (FILE_NAME + suffix))  # of a removed database: SQLite would apply its log to this one
        files.rename(folder / UNFINISHED, folder / FILE_NAME)
    finally:
        _remove_unfinished(files, folder)
    files.sync_directory(folder)


def _remove_unfinished(files: Files, folder: Path) -> None:
    for suffix in ("", *SIDE_FILES):
        files.unlink(folder / (UNFINISHED + suffix))


def _is_empty(files: Files, path: Path) -> bool:
    """Whether Kafka created the file and never wrote to it."""
    return files.exists(path) and not files.file_size(path)


def _put_settings(kind: ResourceType, name: str, settings: Mapping[str, str]) -> Put:
    return Put(store_entries.config_path((kind, name)), store_entries.encode(dict(settings)), ABSENT)


def _trim_indexes(files: Files, folder: Path) -> None:
    """Free the space that Kafka preallocates in the indexes of an active segment, if a crash left it."""
    for name in files.list_directory(folder):
        entry = OFFSET_ENTRY if name.endswith(INDEX_SUFFIX) else TIME_ENTRY if name.endswith(TIME_INDEX_SUFFIX) else None
        if entry is None:
            continue
        data = files.read_file(folder / name)
        used = len(data.rstrip(b"\0"))
        used += -used % entry.size
        if used < len(data):
            files.replace_file(folder / name, data[:used])
