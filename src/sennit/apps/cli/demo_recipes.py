"""The five recipes on sample data: the numbered steps of `sennit demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sennit.apps.cli.demo_report import DemoReport
    from sennit.engine import Database

MAX_PLAN_TOKENS: Final = 600

TENANCY: Final = "\n\n".join(
    (
        "This agreement is between the owner of the house and the tenant. " * 24,
        "The owner pays for the roof, the walls and the pipes. The tenant pays for what breaks by use. " * 6,
        "Either side may end the agreement with three months of notice, in writing. " * 20,
    )
)


def run_recipes(db: Database, report: DemoReport) -> None:
    """Run every recipe once."""
    samples = report.samples
    run_memory(db, report, samples / "conversation.txt")
    run_docs(db, report, samples / "docs")
    run_artifacts(db, report)
    run_files(db, report, samples / "docs")
    run_code(db, report, samples / "code")


def run_memory(db: Database, report: DemoReport, transcript: Path) -> None:
    from sennit.context.briefing import briefing, memory_from_record
    from sennit.facts import Fact
    from sennit.ingest.conversation import read_conversation

    query = "What did Rajesh say about the vacation?"
    report.start_recipe(
        "1/5",
        "memory",
        "A voice or chat assistant remembers earlier conversations. It searches what was said by keyword and by "
        "meaning, and a graph of facts, and prints a block for the system prompt.",
        (
            "sennit remember --from conversation.txt",
            'sennit facts add Rajesh planning Priya --text "planning a trip to Goa"',
            f'sennit context "{query}" --limit 3',
        ),
    )
    turns = list(read_conversation(transcript.read_text(encoding="utf-8"), "kitchen"))
    db.add_turns(turns)
    db.add_facts(
        [
            Fact(
                subject="Rajesh",
                relation="planning",
                object="Priya",
                text="planning a trip to Goa",
            )
        ]
    )
    result = db.search(query, recipe="memory", limit=3)
    block = briefing([memory_from_record(hit.record) for hit in result])
    report.write_lines(block.splitlines())
    report.check(f"{len(turns)} turns of a conversation are stored", len(turns) == 8, show=False)
    report.check("the block contains what Rajesh said about March", "March is best for vacation" in block)
    report.check("it contains the fact", "- Rajesh -> Priya: planning a trip to Goa" in block)
    report.check("nothing in the block can close its tag", block.endswith("</memory>"), show=False)


def run_docs(db: Database, report: DemoReport, folder: Path) -> None:
    query = "how long is the pause before a retry?"
    report.start_recipe(
        "2/5",
        "docs",
        "An assistant answers questions about a product. It searches the documentation by keyword and by meaning, "
        "and returns pages: the summary first, then the sections found.",
        ("sennit index docs", f'sennit search "{query}" --recipe docs'),
    )
    indexed = db.index(folder)
    result = db.search(query, recipe="docs", limit=4)
    report.write_hits(result, limit=2)
    page = result.pages[0]
    sections = ", ".join(chunk.title.rpartition(" > ")[2] for chunk in page.chunks)
    report.write_lines((f"Page {page.name}: {sections}",))
    report.check(
        f"{indexed.added} pages and examples are indexed", indexed.added > 20 and not indexed.skipped
    )
    report.check("the page about retries comes first", "retr" in page.name.casefold())
    report.check("its summary comes before its sections", page.chunks[0].kind == "PAGE_SUMMARY", show=False)
    example = db.search("limit the rate of calls", recipe="examples", limit=1)[0]
    report.check(f"examples are searched separately: {example.title}", "calls" in example.title.casefold())


def run_artifacts(db: Database, report: DemoReport) -> None:
    from sennit.privacy import Caller
    from sennit.records import Record

    query = "who pays for the roof?"
    report.start_recipe(
        "3/5",
        "artifacts",
        "An assistant searches somebody's documents, notes and mail. It searches several collections at once, merges "
        "the rankings, and hides what the caller may not see. Here: a contract, and a private offer, both added from "
        "Python with db.add_artifacts().",
        (f'sennit search "{query}" --recipe artifacts --neighbours 1',),
    )
    db.add_artifacts(
        [
            Record(
                id="tenancy",
                title="Tenancy agreement",
                text=TENANCY,
                metadata={"artifact_type": "contract"},
            ),
            Record(
                id="offer",
                title="Roof offer",
                text="The roofer asks 9,000 for the roof.",
                sensitivity="private",
            ),
        ]
    )
    result = db.search(query, recipe="artifacts", caller=Caller(name="guest"), neighbours=1)
    ids = report.write_hits(result, limit=1)
    report.check(
        "the contract is found once, by its matching part",
        ids[0].startswith("tenancy#") and len(ids) == len(set(ids)),
    )
    report.check("the parts before and after come with it", "[CHUNK BOUNDARY]" in result[0].passage)
    report.check("a guest does not see the private offer", not any(id_.startswith("offer") for id_ in ids))
    cleared = db.search(query, recipe="artifacts", caller=Caller(clearance="private"))
    report.check("a caller with clearance does", any(hit.id.startswith("offer") for hit in cleared))


def run_files(db: Database, report: DemoReport, folder: Path) -> None:
    query = "where is a lease renewed?"
    report.start_recipe(
        "4/5",
        "files",
        "An agent looks into a folder of text files. It searches their exact text with grep and their passages by "
        "meaning, and cites file and lines, which it can read.",
        (
            f'sennit search "{query}" --recipe files --keyword renewed',
            "sennit read docs/concepts/leases.md --lines 1-5",
        ),
    )
    result = db.search(query, recipe="files", keywords=["renewed"], limit=3)
    report.write_hits(result, limit=2)
    for missing in result.degraded:
        report.leave_out(f"{missing.source}: {missing.reason}")
    if not result.degraded:
        report.check("grep and meaning agree on the first result", "grep" in result[0].sources)
    report.check(
        "its citation is a real file with lines",
        Path(result[0].citation.rpartition(":")[0]).resolve().is_relative_to(folder.resolve()),
    )
    text = db.files.read(str(folder / "concepts" / "leases.md"), lines=(1, 5)).text
    report.check("the file can be read", bool(text.strip()), show=False)


def run_code(db: Database, report: DemoReport, folder: Path) -> None:
    query = "Fix the authentication bug in auth.go"
    report.start_recipe(
        "5/5",
        "code",
        "A coding agent needs the right code in its prompt. It takes what the task names, then code that is similar "
        "in meaning, until the token budget is used up. Each entry says why it is there.",
        ("sennit index code", f'sennit plan "{query}" --max-tokens {MAX_PLAN_TOKENS}'),
    )
    indexed = db.index(folder)
    if indexed.hints:
        report.leave_out(indexed.hints[0])
        return
    plan = db.plan(query, episode="demo", max_tokens=MAX_PLAN_TOKENS)
    report.write_lines(
        f"{entry.position}  {entry.key.rpartition('/')[2]:<25}  {entry.tokens:>3} tokens  {entry.reason}"
        for entry in plan.entries
    )
    report.check(
        f"{indexed.records_added} functions and types of {indexed.added} files are indexed",
        indexed.added == 4,
        show=False,
    )
    report.check("the file that the task names comes first", "auth.go" in plan.entries[0].key)
    report.check(
        f"the plan has {plan.tokens} of {MAX_PLAN_TOKENS} tokens", 0 < plan.tokens <= MAX_PLAN_TOKENS
    )
    hit = db.search("limit sign-in attempts", recipe="code", limit=1)[0]
    report.check(
        'a search for "limit sign-in attempts" finds the login code',
        "RateLimiter" in hit.id or "server.py" in hit.id,
    )
