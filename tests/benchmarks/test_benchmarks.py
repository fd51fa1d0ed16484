"""A small run of the benchmarks over whatever is installed: the harness works, whatever the figures are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.corpus import Corpus
from benchmarks.peers.base import Found, Passage, reciprocal_ranks

from benchmarks import corpus as corpora
from benchmarks import figures, measure, peers, report, run

SIZE = 300


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def corpus(cache: Path) -> Corpus:
    # Half of the roots would do; the whole machine takes longer to walk than all else here.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "roots", lambda: [Path(json.__file__).parent.parent])
        return corpora.load(SIZE, 30, cache)


@pytest.fixture(scope="module")
def result(corpus: Corpus, cache: Path) -> dict[str, Any]:
    here, _ = peers.installed(list(peers.HOMES))
    fast = [name for name in ("sennit", "stack") if name in here]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "COLD_STARTS", 1)
        patch.setattr(run, "WRITER_SECONDS", 0.3)
        return run.measured(SIZE, fast, 30, cache=cache)


def test_passages_are_the_same_every_time_and_all_different(corpus: Corpus, cache: Path) -> None:
    again = corpora.load(SIZE, 30, cache)
    assert again.texts == corpus.texts
    assert again.queries == corpus.queries
    assert len(set(corpus.texts)) == len(corpus.texts) == SIZE
    assert corpus.vectors.shape == (SIZE, 256)
    assert len(corpus.queries) == 30
    assert not set(corpus.queries) & set(corpus.trials)
    assert not set(corpus.fresh) & set(corpus.texts)


def test_a_further_folder_gives_passages_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "roots", list)
    (tmp_path / "tale.txt").write_text("The ferry leaves the island in the evening. " * 40)
    assert corpora.passages(2) == []
    assert all("ferry leaves the island" in passage for passage in corpora.passages(2, [tmp_path]))
    assert corpora.passages(2, [tmp_path])


HERE, MISSING = peers.installed(list(peers.HOMES))


def test_a_system_that_is_not_installed_is_named() -> None:
    assert sorted([*HERE, *MISSING]) == sorted(peers.HOMES)
    assert "sennit" in HERE
    assert all("not installed" in reason for reason in MISSING.values())


@pytest.mark.parametrize("name", HERE)
def test_every_system_that_is_installed_answers_alike(name: str, corpus: Corpus, tmp_path: Path) -> None:
    peer = peers.make(name)
    assert peer.build(tmp_path / "db", corpus) > 0
    peer = peers.make(name)
    peer.open(tmp_path / "db")
    truth = measure.Truth(corpus, corpus.queries)
    for question in corpus.queries[:5]:
        for below in measure.FILTERS:
            found = peer.search(question, below)
            assert len(found) == min(10, SIZE if below is None else SIZE * below // 100)
            assert all(isinstance(hit, Found) for hit in found)
            assert all(corpus.texts[hit.number] == hit.text for hit in found)
            assert all(below is None or hit.number % 100 < below for hit in found)
        assert truth.recall(question, None, peer.dense(question, None)[:10]) >= 0.9
    text = corpus.fresh[0]
    peer.add(Passage(SIZE, text, corpora.embedder().embed_query(text)))
    assert SIZE in [hit.number for hit in peer.search(text[:200], None)]
    peer.remove(SIZE)
    assert SIZE not in [hit.number for hit in peer.search(text[:200], None)]
    peer.close()


def test_a_run_measures_everything_for_everyone(result: dict[str, Any]) -> None:
    systems = result["systems"]
    assert "sennit" in systems
    shape = {"build", "cold", "memory", "effort", "interleaved", "alone", "recall", "writes"}
    for entry in systems.values():
        assert "error" not in entry
        assert shape <= entry.keys()
        assert {"all", "1%", "10%", "50%"} <= entry["interleaved"].keys()
        assert entry["recall"]["all"] >= 0.9
        assert entry["writes"]["add_seen"] == entry["writes"]["remove_seen"] == 1
        assert entry["interleaved"]["10%"]["results"] == 10
    assert {"default", "explained"} <= systems["sennit"]["interleaved"].keys()
    json.dumps(result)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.HOMES, "nobody", ("benchmarks.peers.nobody", "Nobody"))
    assert peers.installed(["nobody"]) == ([], {"nobody": "not installed: benchmarks.peers.nobody"})


def test_the_page_keeps_what_people_wrote(result: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Mine\n\nbefore\n\n{report.BEGIN}\nyesterday\n{report.END}\n\nafter\n")
    missing = {"nobody": "not installed: nobody"}
    (tmp_path / "2026-01-01-300.json").write_text(json.dumps(result | {"not_measured": missing}))
    report.write(tmp_path, page)
    text = page.read_text()
    assert text.startswith("# Mine\n\nbefore\n\n")
    assert text.endswith("\n\nafter\n")
    assert "yesterday" not in text
    assert "| **sennit** |" in text
    assert "- nobody: not measured, not installed: nobody." in text


def test_figures_are_judged_from_a_result(result: dict[str, Any]) -> None:
    large = result | {"size": figures.LARGE}
    judged = list(figures.designed({figures.LARGE: large}))
    assert {figure.key for figure in judged} >= {"p50", "p99", "recall", "add", "cold", "ingest", "disk"}
    assert next(figure for figure in judged if figure.key == "huge").verdict == "not measured"
    assert all(figure.verdict.startswith(("met", "**not met**", "not measured")) for figure in judged)
    assert [figure.key for figure in figures.compared(large)][-1] == "filter-recall"


def test_recall_counts_ties_and_refuses_nonsense(corpus: Corpus) -> None:
    truth = measure.Truth(corpus, corpus.queries)
    question = corpus.queries[0]
    vector = corpora.embedder().embed_query(question)
    nearest = (corpus.vectors @ vector).argsort()[::-1][:10].tolist()
    assert truth.recall(question, None, nearest) == 1.0
    assert truth.recall(question, None, nearest[:5]) == 0.5
    with pytest.raises(ValueError, match="twice"):
        truth.recall(question, None, [nearest[0]] * 2)
    with pytest.raises(ValueError, match="filter"):
        truth.recall(question, 1, [1])


def test_reciprocal_ranks_prefer_what_both_have() -> None:
    assert reciprocal_ranks([1, 2, 3], [3, 4]) == [3, 1, 2, 4]
