"""A sample database of notes, documents and files, and clients of a server over it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

import sennit
from sennit.apps.mcp.server import LazyDatabase, make_server

PROGRAM = str(Path(sys.executable).with_name("sennit"))

HANDBOOK = (
    "# Handbook\n\n"
    + "".join(f"Filler line {number}.\n" for number in range(3, 31))
    + "The login times out after LOGIN_TIMEOUT seconds.\n"
    + "".join(f"Filler line {number}.\n" for number in range(32, 61))
)

RECORDS = [
    sennit.Record(
        id="harvest",
        collection="artifacts",
        text="Report of the harvest: the vineyard gave more grapes than last year. " * 8,
        title="Harvest report",
        url="https://example.org/harvest",
        metadata={"source_system": "drive", "artifact_type": "report"},
    ),
    *(
        sennit.Record(
            id=f"cellar/{position}",
            collection="artifact_chunks",
            text=text,
            parent="cellar",
            position=position,
            title="Cellar book",
            metadata={"source_system": "mail", "artifact_type": "book"},
        )
        for position, text in enumerate(
            (
                "Barrels are cleaned in March.",
                "The vineyard's best wine rests in the oak barrels.",
                "Bottles are filled in May.",
            )
        )
    ),
    sennit.Record(id="tea", collection="memory", text="Ana drinks green tea.", kind="preference"),
    sennit.Record(
        id="diary",
        collection="artifacts",
        text="The vineyard is secretly for sale.",
        sensitivity="private",
    ),
]


@dataclass(frozen=True)
class SampleDatabase:
    """The path of the database, and the folder whose files may be read."""

    db: Path
    files: Path

    def server_parameters(self, *options: str, env: Mapping[str, str] | None = None) -> StdioServerParameters:
        """The parameters with which a client starts the server as a process."""
        return StdioServerParameters(
            command=PROGRAM, args=["mcp", "--db", str(self.db), *options], env=dict(env or {}), cwd=self.files
        )

    def client(self, *, read_only: bool = False, **options: Any) -> Client:
        """A client of a server in this process."""
        opens: Callable[[], sennit.Database] = lambda: sennit.open(self.db, **options)  # noqa: E731
        return Client(make_server(LazyDatabase(opens), read_only=read_only))


def make_sample(folder: Path) -> SampleDatabase:
    sample = SampleDatabase(folder / "notes.sennit", folder / "files")
    sample.files.mkdir(parents=True)
    (sample.files / "handbook.md").write_text(HANDBOOK)
    with sennit.open(sample.db) as db:
        db.add(RECORDS)
        db.index(sample.files)
    return sample


@pytest.fixture
def sample(tmp_path: Path) -> SampleDatabase:
    return make_sample(tmp_path)


@pytest.fixture(scope="module")
def shared_sample(tmp_path_factory: pytest.TempPathFactory) -> SampleDatabase:
    """A sample that no test changes."""
    return make_sample(tmp_path_factory.mktemp("sample"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def text_of(result: CallToolResult) -> str:
    """The first text block of a result."""
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


def note_of(result: CallToolResult) -> str:
    """The second text block of a result: the notes about the answer."""
    block = result.content[1]
    assert isinstance(block, TextContent)
    return block.text


@contextmanager
def structured_content_of(result: CallToolResult) -> Iterator[Any]:
    assert not result.is_error, text_of(result)
    yield result.structured_content
