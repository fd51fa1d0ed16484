"""From the content of files to their records, wherever that is worked on: here, or in a program of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, NamedTuple, Protocol

from sennit.ingest.profiles import Read, profile_named
from sennit.ingest.reading import Unreadable
from sennit.stores.embedded.prepared import Writables

READERS: Final = 4
"""Threads that read files while records are written: disks and PDFs keep one waiting."""


class Model(NamedTuple):
    """An embedding model that any process can make for itself: its fingerprint, and its specification as JSON."""

    fingerprint: str
    spec: str


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be made of the files of a run."""

    profile: str
    collection: str
    roots: tuple[str, ...]
    models: tuple[Model, ...] = ()
    """Whose vectors the database wants at once."""


class Content(NamedTuple):
    """A file as it was read."""

    path: str
    data: bytes
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Made:
    """The records of a file, and such vectors of their texts as were made along with them."""

    records: Writables
    vectors: Mapping[str, Mapping[bytes, bytes]] = field(default_factory=dict)
    """By the model's fingerprint and the hash of the text, in half precision."""


class Maker(Protocol):
    """Makes records of files, for the length of a `with` block."""

    @property
    def readers(self) -> int:
        """Threads that may call it at once."""

    @property
    def at_once(self) -> int:
        """Files that are best handed over together."""

    def make(self, contents: Sequence[Content]) -> Sequence[Made | Unreadable]:
        """What becomes of each of these files."""

    def __enter__(self) -> Maker: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Here:
    """Makes records in the process and thread that asks."""

    readers: Final = READERS
    at_once: Final = 1

    def __init__(self, task: Task) -> None:
        self._collection = task.collection
        self._read: Read = profile_named(task.profile).reading(task.roots)

    def make(self, contents: Sequence[Content]) -> list[Made | Unreadable]:
        return [self._made(content) for content in contents]

    def _made(self, content: Content) -> Made | Unreadable:
        try:
            return Made(self._read(content.path, content.data, self._collection, content.mtime_ns))
        except Unreadable as problem:
            return problem
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one file is reported, and the rest goes on
            return Unreadable(f"{type(error).__name__}: {error}"[:300], lasting=False)

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to let go of."""
