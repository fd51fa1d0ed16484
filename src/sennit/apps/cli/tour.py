"""The five recipes on sample data, each step checked: the second half of `sennit demo`."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sennit.apps.cli import output
from sennit.errors import MissingExtra

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.results import Result


class Show(Protocol):
    """Tells what happens, and remembers what came out as it should."""

    @property
    def silent(self) -> bool: ...
    def heading(self, step: str, command: str) -> None: ...
    def check(self, what: str, ok: bool) -> None: ...
    def leave_out(self, reason: str) -> None: ...
    def hits(self, result: Result) -> list[str]: ...


def tour(db: Database, show: Show) -> None:
    """Every recipe does its main job once."""
    with as_file(files("sennit") / "samples") as samples:
        _docs(db, show, samples / "docs")
        _artifacts(db, show)
        _memory(db, show, samples / "conversation.txt")
        for step, folder in ((_files, "docs"), (_code, "code")):
            try:
                step(db, show, samples / folder)
            except MissingExtra as error:
                show.leave_out(str(error))


def _docs(db: Database, show: Show, folder: Path) -> None:
    query = "how often is a failed task retried?"
    show.heading(
        "docs: documentation, by page",
        f"sennit index docs/ --recipe docs; sennit search '{query}' --recipe docs",
    )
    report = db.index(folder, recipe="docs")
    show.check(f"{report.added} pages and examples", report.added > 20 and not report.skipped)
    result = db.search(query, recipe="docs", limit=4)
    show.hits(result)
    first = result.pages[0]
    if not show.silent:
        for page in result.pages:
            output.say(
                f"  {page.name}: {', '.join(chunk.title.rpartition(' > ')[2] for chunk in page.chunks)}"
            )
    show.check("the page on retries comes first", "retr" in first.name.casefold())
    show.check("its summary comes before its sections", first.chunks[0].kind == "PAGE_SUMMARY")
    example = db.search("limit the rate of calls", recipe="examples", limit=1)
    show.check(f"an example: {example[0].title}", "calls" in example[0].title.casefold())


def _artifacts(db: Database, show: Show) -> None:
    from sennit.privacy import Caller
    from sennit.records import Record

    query = "who pays for the roof?"
    show.heading("artifacts: several collections, one answer", f"sennit search '{query}' --recipe artifacts")
    lease = "\n\n".join(
        (
            "This lease is between the owner of the house and the tenant. " * 24,
            "The owner pays for the roof, the walls and the pipes. The tenant pays for what breaks by use. "
            * 6,
            "Either side may end the lease with three months of notice, in writing. " * 20,
        )
    )
    db.add_artifacts(
        [
            Record(id="lease", title="Lease", text=lease, metadata={"artifact_type": "contract"}),
            Record(
                id="offer",
                title="Roof offer",
                text="The roofer asks 9,000 for the roof.",
                sensitivity="private",
            ),
        ]
    )
    guest = Caller(name="guest")
    result = db.search(query, recipe="artifacts", caller=guest, neighbours=1)
    found = show.hits(result)
    show.check(
        "a fragment answers for its document, once",
        found[0].startswith("lease#") and len(found) == len(set(found)),
    )
    show.check("its neighbours come along", "[CHUNK BOUNDARY]" in result[0].passage)
    show.check("what a guest may not see is not there", not any(name.startswith("offer") for name in found))
    cleared = db.search(query, recipe="artifacts", caller=Caller(clearance="private"))
    show.check("with the clearance it is", any(hit.id.startswith("offer") for hit in cleared))


def _memory(db: Database, show: Show, transcript: Path) -> None:
    from sennit.context.briefing import briefing, memory_of
    from sennit.facts import Fact
    from sennit.ingest.conversation import read_conversation

    query = "What did Rajesh say about the vacation?"
    show.heading("memory: what was said and what is known", f"sennit context '{query}'")
    turns = list(read_conversation(transcript.read_text(encoding="utf-8"), "kitchen"))
    db.add_segments(turns)
    db.add_facts(
        [
            Fact(
                subject="Rajesh",
                relation="planning",
                object="Priya",
                text="planning vacation to Goa in March",
            )
        ]
    )
    result = db.search(query, recipe="memory", limit=4, filters='collection in ("history", "facts")')
    block = briefing([memory_of(hit.record) for hit in result])
    if not show.silent:
        output.say("\n".join(f"  {row}" for row in block.splitlines()))
    show.check(f"{len(turns)} turns of a conversation", len(turns) == 8)
    show.check("the turn about March is in the block", "March is best for vacation" in block)
    show.check("so is the fact", "- Rajesh -> Priya: planning vacation to Goa in March" in block)
    show.check("the block is closed, whatever is in it", block.endswith("</memory>"))


def _files(db: Database, show: Show, folder: Path) -> None:
    query = "where is the lease of a task renewed?"
    show.heading(
        "files: exact text and meaning, in a folder",
        f"sennit search '{query}' --recipe files --keyword lease",
    )
    result = db.search(query, recipe="files", keywords=["lease"], limit=3)
    show.hits(result)
    for lack in result.degraded:
        show.leave_out(f"{lack.source}: {lack.reason}")
    if not result.degraded:
        show.check("grep and meaning agree on a place", "grep" in result[0].sources)
    show.check("its citation is a real file with lines", result[0].citation.startswith(str(folder.resolve())))
    text = db.read_file(str(folder / "concepts" / "leases.md"), lines=(1, 5)).text
    show.check("which can be read", bool(text.strip()))


def _code(db: Database, show: Show, folder: Path) -> None:
    query = "Fix the authentication bug in auth.go"
    show.heading(
        "code: the right entities within a budget", f"sennit index src/ --recipe code; sennit plan '{query}'"
    )
    report = db.index(folder, recipe="code")
    show.check(f"{report.records_added} entities of {report.added} files", report.added == 4)
    plan = db.plan(query, episode="demo", max_tokens=600, max_entities=6)
    if not show.silent:
        for entry in plan.entries:
            output.say(
                f"  {entry.position}  {entry.tokens:>4} tokens  {entry.reason:<32}  {entry.key.rpartition('/')[2]}"
            )
    show.check("the file that was named comes first", "auth.go" in plan.entries[0].key)
    show.check(f"{plan.tokens} of 600 tokens", 0 < plan.tokens <= 600)
    hit = db.search("limit sign-in attempts", recipe="code", limit=1)[0]
    show.check(f"found by meaning: {hit.title}", "RateLimiter" in hit.id or "server.py" in hit.id)
