"""The pages that need servers, executed on real ones: their Python, their commands, and what they add to sennit.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import pytest
from scripts.servers.chroma import ChromaProcess
from scripts.servers.common import ServerUnavailable
from scripts.servers.opensearch import OpenSearchCluster
from scripts.servers.postgres import PostgresServer
from scripts.servers.process import running
from scripts.servers.qdrant import QdrantCluster

from test_docs import ROOT, Block, blocks_of, enter_folder, run_blocks

pytestmark = pytest.mark.servers

GUIDE = ROOT / "docs" / "how-to" / "attach-collections.md"


@pytest.fixture
def addresses(leave_out: Callable[[str], NoReturn]) -> Iterator[dict[str, str]]:
    """The addresses of running servers, by the one that the page has for each."""
    with ExitStack() as servers:
        try:
            postgres = servers.enter_context(running(PostgresServer()))
            qdrant = servers.enter_context(running(QdrantCluster(1)))
            chroma = servers.enter_context(running(ChromaProcess()))
            opensearch = servers.enter_context(running(OpenSearchCluster(1)))
        except ServerUnavailable as error:
            leave_out(str(error))
        yield {
            "postgresql://127.0.0.1:5432/postgres": postgres.dsn(),
            "http://127.0.0.1:6333": qdrant.urls[0],
            "http://127.0.0.1:8000": chroma.url,
            "port=8000": f"port={chroma.port}",
            "http://127.0.0.1:9200": opensearch.urls[0],
        }


def test_the_guide_to_attached_collections_does_what_it_says(
    addresses: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_folder(tmp_path, monkeypatch)
    text = GUIDE.read_text(encoding="utf-8")
    for address, real in addresses.items():
        assert address in text
        text = text.replace(address, real)
    run_blocks("attach-collections.md", configured(blocks_of(text, with_skipped=True)))


def configured(blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks, where each of TOML is first added to sennit.toml, as a reader of the page does."""
    for block in blocks:
        if block.language == "toml":
            with Path("sennit.toml").open("a", encoding="utf-8") as file:
                file.write("\n".join(block.lines) + "\n")
        yield block
