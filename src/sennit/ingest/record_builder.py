"""Turning the content of files into records, in this process or in worker processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, NamedTuple, Protocol

from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.readers import read_records
from sennit.places import Folder
from sennit.records import Record
from sennit.stores.prepared_records import WritableRecords

READ_THREADS: Final = 4
"""Threads that read files while records are written. Disks and PDF parsing keep a single thread waiting."""

KNOWN_PREFIX_BYTES: Final = 8
"""Bytes of a hash by which a worker recognises a text that has a vector; a million texts are 8 MB. If another text has
the same prefix, the process that writes embeds it."""


class PortableModel(NamedTuple):
    """An embedding model that another process can load: its fingerprint, and its specification as JSON."""

    fingerprint: str
    spec: str
    known: bytes = b""
    """The first bytes of the hashes of texts that have a vector already, one after the other, sorted."""


@dataclass(frozen=True, slots=True)
class IndexTask:
    """How one run turns files into records."""

    folders: tuple[Folder, ...]
    only_collections: tuple[str, ...] = ()
    """If not empty, files without records of these collections are not read."""
    models: tuple[PortableModel, ...] = ()
    """The models for which records get vectors at once."""


class FileContent(NamedTuple):
    """The bytes of a file and its modification time."""

    folder: str
    """The key of the folder."""
    path: str
    target: str
    """The collection of an additional reading; empty for the reading by kind."""
    data: bytes
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class FileRecords:
    """The records of a file, and the vectors that were computed with them."""

    records: WritableRecords
    vectors: Mapping[str, Mapping[bytes, bytes]] = field(default_factory=dict)
    """Float16 vectors by model fingerprint and by the hash of the text."""
    other_parents: tuple[str, ...] = ()
    """The parents of the records, apart from the place of the file."""
    in_place: int = 0
    """How many records have the place as their parent."""


class RecordBuilder(Protocol):
    """Builds records from files, inside a `with` block."""

    @property
    def threads(self) -> int:
        """How many threads should call build() concurrently."""

    @property
    def group_size(self) -> int:
        """How many small files one call should take."""

    def build(self, contents: Sequence[FileContent]) -> Sequence[FileRecords | UnreadableFile]:
        """Build the records of each file, in the same order."""

    def __enter__(self) -> RecordBuilder: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class InProcessBuilder:
    """Builds records in the calling thread."""

    threads: Final = READ_THREADS
    group_size: Final = 1

    def __init__(self, task: IndexTask) -> None:
        self._folders = {folder.key: folder for folder in task.folders}
        self._only_collections = task.only_collections

    def build(self, contents: Sequence[FileContent]) -> list[FileRecords | UnreadableFile]:
        return [self._build_one(content) for content in contents]

    def _build_one(self, content: FileContent) -> FileRecords | UnreadableFile:
        try:
            folder = self._folders[content.folder]
            return _file_records(
                read_records(folder, *content[1:], wanted=self._only_collections),
                folder.place(content.path, content.target),
            )
        except UnreadableFile as problem:
            return problem
        except Exception as error:  # noqa: BLE001 - report the one file, and go on with the rest
            return UnreadableFile(f"{type(error).__name__}: {error}"[:300], permanent=False)

    def __enter__(self) -> InProcessBuilder:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to release."""


def _file_records(records: list[Record], place: str) -> FileRecords:
    in_place = sum(record.parent == place for record in records)
    others = dict.fromkeys(record.parent for record in records if record.parent not in (place, None))
    return FileRecords(records, other_parents=tuple(map(str, others)), in_place=in_place)
