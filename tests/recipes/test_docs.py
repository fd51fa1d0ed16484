"""The recipe `docs`: every statement of the specification about search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit.context.expansion import organise_by_page
from sennit.ranking.fusion import RRF, Weighted, fuse
from sennit.recipes import BUILTIN_RECIPES
from sennit.records import Record
from sennit.results import Hit
from sennit.sources.base import QueryRewrite

PAGES = {
    "docs/retries.md": (
        "# Retries\n\n## Summary\n\nA failed job is tried again after a pause that doubles.\n\n"
        "## Examples\n\n```python\n@app.task(retries=3)\n```\n\n"
        "## Backoff\n\nThe pause doubles with each attempt up to an hour.\n\n"
        "## Dead letters\n\nA job that failed for good is kept in the dead letter table.\n"
    ),
    "docs/workers.md": (
        "# Workers\n\n## Overview\n\nA worker runs jobs in slots, one job in each slot.\n\n"
        f"## Examples\n\n```python\n{'run_worker(slots=4)' * 40}\n```\n\n"
        "## Slots\n\nSlots are processes, so that a crash takes one job only.\n"
    ),
    "concepts/leases.md": (
        "# Leases\n\n## Overview\n\nA lease is a loan of a job to a worker and ends by itself.\n\n"
        "## Length\n\nThe lease is thirty seconds and is renewed every ten.\n"
    ),
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sennit.Database]:
    for name, text in PAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with sennit.open(":memory:") as opened:
        opened.index(tmp_path, recipe="docs")
        yield opened


# Search


def test_weighted_fusion_is_0_7_of_meaning_plus_0_3_of_words() -> None:
    assert BUILTIN_RECIPES["docs"].fusion == Weighted(
        {"keyword": 0.3, "vector": 0.7}, {"keyword": "max", "vector": "none"}
    )


def test_a_hit_in_one_list_only_gets_that_list_s_share() -> None:
    keyword = ("keyword", np.array([1, 2]), np.array([8.0, 4.0]))
    vector = ("vector", np.array([1, 3]), np.array([0.9, 0.5]))
    fused = fuse(BUILTIN_RECIPES["docs"].fusion, [keyword, vector])
    scores = dict(zip(fused.keys.tolist(), fused.scores.tolist(), strict=True))
    assert scores[1] == pytest.approx(0.3 * 1.0 + 0.7 * 0.9)
    assert scores[2] == pytest.approx(0.3 * 0.5)
    assert scores[3] == pytest.approx(0.7 * 0.5)


def test_keyword_scores_are_scaled_to_0_to_1(db: sennit.Database) -> None:
    found = db.search("lease worker", recipe="docs", explain=True)
    shares = [s.share for hit in found for s in hit.explanation.source_scores if s.source == "keyword"]  # type: ignore[union-attr]
    assert max(shares) == pytest.approx(0.3)
    assert all(0.0 <= share <= 0.3 + 1e-9 for share in shares)


@pytest.mark.parametrize("recipe", ["docs", "examples"])
@pytest.mark.parametrize("top_k", [1, 5, 20])
def test_both_sources_fetch_top_k_and_five_more(db: sennit.Database, recipe: str, top_k: int) -> None:
    trace = db.search("job", recipe=recipe, limit=top_k, explain=True).trace
    assert trace is not None
    assert {source.source: source.candidates for source in trace.sources} == {
        "keyword": top_k + 5,
        "vector": top_k + 5,
    }


def test_reciprocal_ranks_can_be_selected() -> None:
    with sennit.open(":memory:", docs__fusion="rrf", docs__extra_candidates=7) as db:
        assert db.recipes["docs"].fusion == db.recipes["examples"].fusion == RRF(k=60, first_rank=1)
        assert db.recipes["docs"].sources[0].candidates.for_limit(3) == 10


def test_sections_and_examples_have_each_their_own_search(db: sennit.Database) -> None:
    assert {hit.collection for hit in db.search("retries job", recipe="docs")} == {"docs"}
    examples = db.search("retries job", recipe="examples")
    assert {hit.collection for hit in examples} == {"examples"}
    assert "@app.task(retries=3)" in examples[0].text


def test_technical_and_concept_pages_are_chunked_alike_into_one_collection(db: sennit.Database) -> None:
    kinds = {(record.path or "").split("/")[-2]: set[str]() for record in db if record.collection == "docs"}
    for record in db:
        if record.collection == "docs":
            kinds[(record.path or "").split("/")[-2]].add(record.kind)
            assert record.metadata["page_name"]
            assert record.metadata["section_title"]
    assert kinds == {
        "docs": {"PAGE_SUMMARY", "PAGE_EXAMPLES", "SECTION"},
        "concepts": {"PAGE_SUMMARY", "SECTION"},
    }


# Query transform and editor state


def test_vector_search_gets_the_rewrite_and_keyword_search_the_query(
    db: sennit.Database,
) -> None:
    query = "borrowed thing"
    plain = db.search(query, recipe="docs", transform=False, explain=True)
    changed = db.search(query, recipe="docs", rewrite=QueryRewrite("lease loan of a job"), explain=True)
    assert changed[0].title.startswith("Leases")
    vector = db.search("lease loan of a job", recipe="vector", limit=10, filters={"collection": "docs"})
    by_meaning = {hit.id: hit.score for hit in vector}
    for hit in changed:
        for source_score in hit.explanation.source_scores:  # type: ignore[union-attr]
            if source_score.source == "vector" and source_score.score is not None:
                assert source_score.score == pytest.approx(by_meaning[hit.id], abs=1e-6)
    assert plain.trace is not None
    assert changed.trace is not None
    words = [next(s for s in t.sources if s.source == "keyword") for t in (plain.trace, changed.trace)]
    assert words[0].keys.tolist() == words[1].keys.tolist()
    assert words[0].scores.tolist() == words[1].scores.tolist()
    assert changed.trace.to_dict()["transform"] == {"used": "lease loan of a job"}
    assert "transform" not in plain.trace.to_dict()


@pytest.mark.parametrize("recipe", ["docs", "examples"])
def test_search_transforms_the_query_and_augments_it_from_the_editor(
    db: sennit.Database, recipe: str
) -> None:
    code = "from ferry import worker\n\nworker(slots=3)\n"
    found = db.search("the leeses of slots", recipe=recipe, editor=code, explain=True)
    assert found.trace is not None
    assert found.trace.transform["by"] == "offline"
    assert found.trace.transform["used"] == "the leeses of slots slots leases"
    assert "worker" in str(found.trace.transform["hints"])
    for hit in found:
        assert db.why("the leeses of slots", hit.id, recipe=recipe, editor=code).number == hit.score


def test_an_empty_editor_and_another_recipe_change_nothing(db: sennit.Database) -> None:
    for options in ({"recipe": "docs", "transform": False, "editor": " \n"}, {"recipe": "default"}):
        found = db.search("how many leeses?", explain=True, **options)
        assert found.trace is not None
        assert found.trace.transform == {}
    # Another recipe transforms when it is asked to, and takes hints from an editor.
    found = db.search("leeses", transform=True, editor="lease(slots=1)", language="python", explain=True)
    assert found.trace is not None
    assert found.trace.transform["by"] == "offline"
    assert found.trace.transform["hints"]


def test_hints_weigh_less_than_the_query_in_both_searches(db: sennit.Database) -> None:
    (first, *_) = db.search("slots", recipe="docs")
    hinted = db.search("slots", recipe="docs", rewrite=QueryRewrite(hints=("lease", "renewed")), explain=True)
    assert hinted[0].id == first.id
    assert any(hit.title == "Leases > Length" for hit in hinted)
    assert not any(hit.title == "Leases > Length" for hit in db.search("slots", recipe="keyword"))
    found = db.search(
        "slots", recipe="keyword", rewrite=QueryRewrite(hints=("lease", "slots"), hint_weight=0.3)
    )
    alone = db.search("slots", recipe="keyword")
    assert found[0].score == pytest.approx(alone[0].score)  # a hint that the query has does not count again
    assert {hit.id for hit in alone} < {hit.id for hit in found}


def test_why_explains_a_search_with_a_rewrite(db: sennit.Database) -> None:
    hints = QueryRewrite(hints=("lease", "renewed"))
    found = db.search("slots", recipe="keyword", rewrite=hints)
    brought = next(hit for hit in found if hit.title == "Leases > Length")
    why = db.why("slots", brought.id, recipe="keyword", rewrite=hints)
    assert (why.kept, why.rank, why.number) == (True, brought.rank, brought.score)
    assert not db.why("slots", brought.id, recipe="keyword").kept
    by_meaning = QueryRewrite("lease loan of a job")
    changed = db.search("borrowed thing", recipe="docs", rewrite=by_meaning)
    for hit in changed:
        assert db.why("borrowed thing", hit.id, recipe="docs", rewrite=by_meaning).number == hit.score


# Grouped by page


def test_each_page_has_its_summary_then_short_examples_then_sections(db: sennit.Database) -> None:
    result = db.search("dead letter backoff pause", recipe="docs", limit=3)
    page = result.pages[0]
    assert (page.name, [chunk.kind for chunk in page.chunks[:2]]) == (
        "Retries",
        ["PAGE_SUMMARY", "PAGE_EXAMPLES"],
    )
    assert {chunk.kind for chunk in page.chunks[2:]} == {"SECTION"}


def test_examples_of_500_characters_or_more_are_left_out(db: sennit.Database) -> None:
    pages = {page.name: page for page in db.search("slots crash worker", recipe="docs").pages}
    assert [chunk.kind for chunk in pages["Workers"].chunks][:2] == ["PAGE_SUMMARY", "SECTION"]


def test_example_length_limit_is_a_setting(tmp_path: Path) -> None:
    (tmp_path / "workers.md").write_text(PAGES["docs/workers.md"])
    for most, comes in ((100_000, True), (0, False)):
        with sennit.open(":memory:", docs__examples_shorter_than=most) as db:
            db.index(tmp_path, recipe="docs")
            (page,) = db.search("slots", recipe="docs").pages
            assert ("PAGE_EXAMPLES" in [chunk.kind for chunk in page.chunks]) == comes


KINDS = st.sampled_from(["PAGE_SUMMARY", "PAGE_EXAMPLES", "SECTION"])


@st.composite
def sites(draw: st.DrawFn) -> list[Record]:
    """Pages in chunks of every kind and length, also such that no chunker would make."""
    return [
        Record(
            id=f"p{page}#{at}",
            text="x" * draw(st.sampled_from([0, 1, 250, 499, 500, 501, 900])),
            title=f"P{page}",
            kind=draw(KINDS),
            parent=f"p{page}",
            position=at,
        )
        for page in range(draw(st.integers(0, 4)))
        for at in range(draw(st.integers(1, 5)))
    ]


@given(sites(), st.data())
def test_hits_are_grouped_by_page_as_specified(site: list[Record], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(site), unique_by=lambda r: r.id) if site else st.just([]))
    scores = sorted((data.draw(st.floats(0, 1)) for _ in chosen), reverse=True)
    hits = [
        Hit(record, score, rank) for rank, (record, score) in enumerate(zip(chosen, scores, strict=True), 1)
    ]

    def chunks_of(record: Record, kinds: Sequence[str]) -> list[Record]:
        return [other for other in site if other.parent == record.parent and other.kind in kinds]

    pages = organise_by_page(hits, chunks_of, 500)
    found = {hit.id for hit in hits}
    best = [page.score for page in pages]
    assert best == sorted(best, reverse=True)  # pages by their best hit
    ids = [chunk.id for page in pages for chunk in page.chunks]
    assert len(ids) == len(set(ids))  # no chunk twice
    for page in pages:
        own = chunks_of(page.chunks[0], ("PAGE_SUMMARY", "PAGE_EXAMPLES", "SECTION")) if page.chunks else []
        kinds = [chunk.kind for chunk in page.chunks]
        order = ["PAGE_SUMMARY", "PAGE_EXAMPLES", "SECTION"]
        assert kinds == sorted(kinds, key=order.index)
        assert kinds.count("PAGE_SUMMARY") == sum(chunk.kind == "PAGE_SUMMARY" for chunk in own)
        length = sum(len(chunk.text) for chunk in own if chunk.kind == "PAGE_EXAMPLES")
        assert ("PAGE_EXAMPLES" in kinds) == (
            any(chunk.kind == "PAGE_EXAMPLES" for chunk in own) and length < 500
        )
        assert all(chunk.id in found for chunk in page.chunks if chunk.kind == "SECTION")
    sections = {hit.id for hit in hits if hit.record.kind == "SECTION"}
    assert sections <= set(ids)


# Degraded sources


class _Broken:
    inline = True

    def search(self, ask: object) -> object:
        raise RuntimeError("out of order")

    def scores(self, ask: object, keys: object) -> object:
        raise RuntimeError("out of order")


@pytest.mark.parametrize(("broken", "rest"), [("keyword", "vector"), ("vector", "keyword")])
def test_when_one_source_fails_the_other_answers(tmp_path: Path, broken: str, rest: str) -> None:
    (tmp_path / "a.md").write_text(PAGES["concepts/leases.md"])
    with sennit.open(":memory:", sources={broken: _Broken()}) as db:  # type: ignore[dict-item]
        db.index(tmp_path, recipe="docs")
        result = db.search("lease", recipe="docs")
        assert len(result)
        assert [one.source for one in result.degraded] == [broken]
        assert {source for hit in result for source in hit.sources} == {rest}
        answer = db.ask("what is a lease?")
        assert "lease" in answer.text
        assert answer.citations
        assert [one.source for one in answer.degraded] == [broken]


def test_keyword_search_answers_without_embeddings(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(PAGES["concepts/leases.md"])
    with sennit.open(":memory:", embedding__provider="none") as db:
        db.index(tmp_path, recipe="docs")
        result = db.search("lease", recipe="docs")
        assert result[0].title.startswith("Leases")
        assert [one.source for one in result.degraded] == ["vector"]


def test_nothing_found_gives_an_empty_list_and_says_so() -> None:
    with sennit.open(":memory:") as db:
        assert list(db.search("lease", recipe="docs")) == []
        answer = db.ask("what is a lease?", recipe="docs")
        assert answer.text == "Nothing was found that answers this."
        assert (answer.citations, answer.pages, answer.answered) == ((), (), 2)
