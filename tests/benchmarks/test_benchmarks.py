"""A small run of the benchmarks over the installed systems, to test the harness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.corpus import Corpus
from benchmarks.peers.base import Passage, PassageHit, fuse_by_rrf

from benchmarks import corpus as corpora
from benchmarks import measurements, peers, report, run, targets

SIZE = 300


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def corpus(cache: Path) -> Corpus:
    # One root is enough; walking all of them takes longer than the rest of the test.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "text_roots", lambda: [Path(json.__file__).parent.parent])
        return corpora.load_corpus(SIZE, 30, cache)


@pytest.fixture(scope="module")
def result(corpus: Corpus, cache: Path) -> dict[str, Any]:
    here, _ = peers.find_installed(list(peers.ADAPTERS))
    fast = [name for name in ("sennit", "stack") if name in here]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "COLD_STARTS", 1)
        patch.setattr(run, "WRITER_SECONDS", 0.3)
        return run.measure_size(SIZE, fast, 30, cache=cache)


def test_corpus_is_deterministic_and_without_duplicates(corpus: Corpus, cache: Path) -> None:
    again = corpora.load_corpus(SIZE, 30, cache)
    assert again.texts == corpus.texts
    assert again.queries == corpus.queries
    assert len(set(corpus.texts)) == len(corpus.texts) == SIZE
    assert corpus.vectors.shape == (SIZE, 256)
    assert len(corpus.queries) == 30
    assert not set(corpus.queries) & set(corpus.trial_queries)
    assert not set(corpus.new_texts) & set(corpus.texts)


def test_passages_come_from_further_folders_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "text_roots", list)
    (tmp_path / "tale.txt").write_text("The ferry leaves the island in the evening. " * 40)
    assert corpora.collect_passages(2) == []
    assert all("ferry leaves the island" in passage for passage in corpora.collect_passages(2, [tmp_path]))
    assert corpora.collect_passages(2, [tmp_path])


HERE, MISSING = peers.find_installed(list(peers.ADAPTERS))


def test_missing_systems_are_reported() -> None:
    assert sorted([*HERE, *MISSING]) == sorted(peers.ADAPTERS)
    assert "sennit" in HERE
    assert all("not installed" in reason for reason in MISSING.values())


@pytest.mark.parametrize("name", HERE)
def test_every_installed_system_searches_adds_and_removes(name: str, corpus: Corpus, tmp_path: Path) -> None:
    peer = peers.make_peer(name)
    assert peer.build(tmp_path / "db", corpus) > 0
    peer = peers.make_peer(name)
    peer.open(tmp_path / "db")
    exact = measurements.ExactSearch(corpus, corpus.queries)
    for question in corpus.queries[:5]:
        for group_limit in measurements.FILTERS:
            found = peer.search(question, group_limit)
            assert len(found) == min(10, SIZE if group_limit is None else SIZE * group_limit // 100)
            assert all(isinstance(hit, PassageHit) for hit in found)
            assert all(corpus.texts[hit.number] == hit.text for hit in found)
            assert all(group_limit is None or hit.number % 100 < group_limit for hit in found)
        assert exact.recall(question, None, peer.dense(question, None)[:10]) >= 0.9
    text = corpus.new_texts[0]
    peer.add(Passage(SIZE, text, corpora.make_embedder().embed_query(text)))
    assert SIZE in [hit.number for hit in peer.search(text[:200], None)]
    peer.remove(SIZE)
    assert SIZE not in [hit.number for hit in peer.search(text[:200], None)]
    peer.close()


def test_run_measures_every_system(result: dict[str, Any]) -> None:
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


def test_adapter_without_its_module_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.ADAPTERS, "nobody", ("benchmarks.peers.nobody", "Nobody"))
    assert peers.find_installed(["nobody"]) == ([], {"nobody": "not installed: benchmarks.peers.nobody"})


def test_report_replaces_only_text_between_the_markers(result: dict[str, Any], tmp_path: Path) -> None:
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


def test_targets_are_checked_against_a_result(result: dict[str, Any]) -> None:
    large = result | {"size": targets.LARGE}
    judged = list(targets.design_targets({targets.LARGE: large}))
    assert {figure.key for figure in judged} >= {"p50", "p99", "recall", "add", "cold", "ingest", "disk"}
    assert next(figure for figure in judged if figure.key == "huge").verdict == "not measured"
    assert all(figure.verdict.startswith(("met", "**not met**", "not measured")) for figure in judged)
    assert [figure.key for figure in targets.peer_targets(large)][-1] == "filter-recall"


def test_recall_counts_ties_and_rejects_invalid_results(corpus: Corpus) -> None:
    exact = measurements.ExactSearch(corpus, corpus.queries)
    question = corpus.queries[0]
    vector = corpora.make_embedder().embed_query(question)
    nearest = (corpus.vectors @ vector).argsort()[::-1][:10].tolist()
    assert exact.recall(question, None, nearest) == 1.0
    assert exact.recall(question, None, nearest[:5]) == 0.5
    with pytest.raises(ValueError, match="twice"):
        exact.recall(question, None, [nearest[0]] * 2)
    with pytest.raises(ValueError, match="filter"):
        exact.recall(question, 1, [1])


def test_fuse_by_rrf_prefers_passages_of_both_lists() -> None:
    assert fuse_by_rrf([1, 2, 3], [3, 4]) == [3, 1, 2, 4]
