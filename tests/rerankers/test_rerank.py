"""The stage `rerank` with a tiny cross-encoder of our own and with servers on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import sennit
from embedding.server import ModelServer, Request, Response, as_json, hang
from sennit import Record, SearchResult
from sennit.apps.cli.program import program
from sennit.errors import InvalidInput, SettingsError, SourceError
from sennit.ranking.rerank import Rerank
from sennit.ranking.stages import Ranking, StageContext
from sennit.recipes.builtin import BUILTIN_RECIPES
from sennit.rerankers import RerankService, RerankSpec, create_reranker
from sennit.settings import load_settings

WORDS = {"[UNK]": 0, "bad": 1, "fair": 2, "good": 3, "best": 4}
QUERY = "a lamp"
RECORDS = [Record(id=name, text=f"{name} lamp") for name in ("bad", "fair", "good", "best")]
RERANK = Rerank(milliseconds=20_000)


def write_model(folder: Path, *, per_pair: int = 1) -> Path:
    """Write a cross-encoder whose score is the highest number of a word in the text, and its tokenizer."""
    import onnx
    from onnx import TensorProto, helper
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    folder.mkdir(parents=True)
    names = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["input_ids", "token_type_ids"], ["of_text"]),
            helper.make_node("Mul", ["of_text", "attention_mask"], ["seen"]),
            helper.make_node("Cast", ["seen"], ["numbers"], to=TensorProto.FLOAT),
            helper.make_node("ReduceMax", ["numbers"], ["highest"], axes=[1], keepdims=1),
            helper.make_node("Concat", ["highest"] * per_pair, ["logits"], axis=1),
        ],
        "cross-encoder",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "pieces"]) for name in names],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", per_pair])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    tokenizer = Tokenizer(WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A:0 $B:1", special_tokens=[])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


class RerankServer(ModelServer):
    """Scores a text by its number of characters, and sends the results in the reverse order."""

    def respond(self, request: Request) -> Response:
        texts = request.body.get("documents", request.body.get("texts"))
        assert isinstance(texts, list)
        name = "score" if request.path == "/rerank" else "relevance_score"
        results = [{"index": at, name: float(len(text))} for at, text in enumerate(texts)][::-1]
        return as_json(results if request.path == "/rerank" else {"results": results})


@pytest.fixture
def server() -> Iterator[RerankServer]:
    opened = RerankServer()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime")
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


def search(stage: Rerank = RERANK, *, explain: bool = False, **settings: object) -> SearchResult:
    with sennit.open(":memory:", privacy__open=True, **settings) as db:  # type: ignore[arg-type]
        db.add(RECORDS)
        recipe = replace(db.recipes["keyword"], name="reranked", stages=(stage,))
        return db.search(QUERY, recipe=recipe, explain=explain)


def ids(result: SearchResult) -> list[str]:
    return [hit.id for hit in result]


# In this process


def test_a_cross_encoder_orders_the_candidates(model: Path) -> None:
    result = search(rerank__provider="onnx", rerank__model=str(model), explain=True)
    assert ids(result) == ["best", "good", "fair", "bad"]
    assert not result.degraded
    scores = [hit.score for hit in result]
    assert scores == sorted(scores, reverse=True)
    assert result.trace is not None
    (stage,) = [one for one in result.trace.stages if one.name == "rerank"]
    assert stage.reasons[result[0].key].startswith("4.0000 by the reranker, rank 1 instead of")


def test_why_has_the_score_of_the_reranker(model: Path) -> None:
    with sennit.open(":memory:", privacy__open=True, rerank__provider="onnx", rerank__model=str(model)) as db:
        db.add(RECORDS)
        recipe = replace(db.recipes["keyword"], name="reranked", stages=(RERANK,))
        assert "4.0000 by the reranker" in db.why(QUERY, "best", recipe=recipe).reason


def test_only_the_first_candidates_are_reranked(model: Path) -> None:
    plain = search(replace(RERANK, candidates=1))
    result = search(replace(RERANK, candidates=2), rerank__provider="onnx", rerank__model=str(model))
    assert set(ids(result)[:2]) == set(ids(plain)[:2])
    assert ids(result)[2:] == ids(plain)[2:]


def test_a_model_with_two_scores_per_pair_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = write_model(tmp_path / "two", per_pair=2)
    result = search(rerank__provider="onnx", rerank__model=str(folder))
    assert len(result) == 4
    assert "one score per pair" in result.degraded[0].reason


@pytest.mark.parametrize(
    ("name", "message"),
    [("./nowhere", "rerank.model must name a folder"), ("broken", "cannot be loaded")],
)
def test_a_missing_or_broken_model_leaves_the_ranking(name: str, message: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = tmp_path / "broken"
    folder.mkdir()
    for file in ("model.onnx", "tokenizer.json"):
        (folder / file).write_bytes(b"nothing")
    result = search(rerank__provider="onnx", rerank__model=str(folder) if name == "broken" else name)
    assert len(result) == 4
    assert message in result.degraded[0].reason


# On a server


@pytest.mark.parametrize("provider", ["cohere", "jina", "tei"])
def test_a_server_orders_the_candidates(
    provider: str, server: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RERANK_KEY", "secret")
    result = search(
        rerank__provider=provider,
        rerank__model="m",
        rerank__base_url=server.url,
        rerank__api_key_env="RERANK_KEY",
    )
    assert not result.degraded
    assert set(ids(result)[:3]) == {"best", "fair", "good"}
    assert ids(result)[3] == "bad"
    (request,) = server.requests
    assert request.body["query"] == QUERY
    assert request.headers["authorization"] == "Bearer secret"
    assert request.path == {"cohere": "/v2/rerank", "jina": "/v1/rerank", "tei": "/rerank"}[provider]


def test_a_reranker_reads_the_beginning_of_a_text(server: RerankServer) -> None:
    stage = replace(RERANK, characters=6)
    search(stage, rerank__provider="tei", rerank__base_url=server.url)
    (request,) = server.requests
    texts = request.body["texts"]
    assert isinstance(texts, list)
    assert sorted(texts) == ["bad la", "best l", "fair l", "good l"]


def test_another_server_does_not_get_the_key_of_the_provider(
    server: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COHERE_API_KEY", "secret")
    search(rerank__provider="cohere", rerank__model="m", rerank__base_url=server.url)
    assert "authorization" not in server.requests[0].headers


GOOD = [{"index": at, "score": 1.0} for at in range(4)]
NONSENSE = {
    "nan": b'[{"index": 0, "score": NaN}, {"index": 1, "score": 1}, {"index": 2, "score": 1}, {"index": 3, "score": 1}]',
    "too few": json.dumps(GOOD[:3]).encode(),
    "too many": json.dumps([*GOOD, {"index": 4, "score": 1.0}]).encode(),
    "twice": json.dumps([*GOOD[:3], {"index": 0, "score": 1.0}]).encode(),
    "negative index": json.dumps([*GOOD[:3], {"index": -1, "score": 1.0}]).encode(),
    "a text as index": json.dumps([*GOOD[:3], {"index": "3", "score": 1.0}]).encode(),
    "a text as score": json.dumps([*GOOD[:3], {"index": 3, "score": "high"}]).encode(),
    "no score": json.dumps([*GOOD[:3], {"index": 3}]).encode(),
    "an object": b'{"error": "no"}',
    "no JSON": b"<html>",
}


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_leaves_the_ranking_and_is_reported(body: bytes, server: RerankServer) -> None:
    server.script.append(Response(body=body))
    result = search(rerank__provider="tei", rerank__base_url=server.url)
    assert ids(result) == ids(search(replace(RERANK, candidates=1)))
    (problem,) = result.degraded
    assert problem.source == "rerank"
    assert result.answered


@pytest.mark.parametrize("status", [401, 429, 500])
def test_a_refusal_leaves_the_ranking_and_is_not_retried(status: int, server: RerankServer) -> None:
    server.script.append(as_json({"error": "no"}, status))
    result = search(rerank__provider="tei", rerank__base_url=server.url)
    assert len(result) == 4
    assert f"answered {status}" in result.degraded[0].reason
    assert len(server.requests) == 1


def test_a_late_answer_is_not_waited_for(server: RerankServer) -> None:
    server.script.append(Response(act=hang))
    result = search(replace(RERANK, milliseconds=50), rerank__provider="tei", rerank__base_url=server.url)
    assert len(result) == 4
    assert "answer within" in result.degraded[0].reason


class Stuck:
    """A reranker that does not return until it is closed."""

    name = "stuck"

    def __init__(self) -> None:
        self._closed = threading.Event()

    def score(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        del query, seconds
        self._closed.wait(30)
        return [0.0 for _ in texts]

    def close(self) -> None:
        self._closed.set()


def test_searches_go_without_a_reranker_that_does_not_return() -> None:
    service = RerankService(RerankSpec(provider="tei"), lambda _: Stuck())
    for _ in range(4):
        with pytest.raises(SourceError, match="no answer within 1 ms"):
            service.score("a", ["b"], 0.001)
    with pytest.raises(SourceError, match="busy"):
        service.score("a", ["b"], 1)
    service.close()


# Configuration


def test_off_by_default() -> None:
    assert not any(stage.name == "rerank" for recipe in BUILTIN_RECIPES.values() for stage in recipe.stages)
    assert create_reranker(RerankSpec()) is None
    result = search()
    assert len(result) == 4
    assert "set rerank.provider" in result.degraded[0].reason


def test_every_recipe_can_have_the_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sennit.toml").write_text(
        '[recipes.mine]\nbase = "rrf"\nstages = [{stage = "rerank", candidates = 9, milliseconds = 70}]\n',
        encoding="utf-8",
    )
    with sennit.open(":memory:") as db:
        assert db.recipes["mine"].stages == (Rerank(9, 70),)


@pytest.mark.parametrize(
    "line", ['provider = "tei"', 'model = "x"', 'base_url = "http://127.0.0.1:1"', 'api_key_env = "K"']
)
def test_a_found_file_may_not_choose_a_reranker(line: str, tmp_path: Path) -> None:
    (tmp_path / "sennit.toml").write_text(f"[rerank]\n{line}\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="config trust"):
        load_settings(start=tmp_path, env={"HOME": str(tmp_path)})


@pytest.mark.parametrize("options", [{"candidates": 0}, {"milliseconds": 0.5}, {"characters": True}])
def test_budgets_are_checked(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be a whole number"):
        Rerank(**options)


def test_a_hosted_reranker_needs_a_model() -> None:
    with pytest.raises(SourceError, match=r"set rerank\.model"):
        create_reranker(RerankSpec(provider="cohere"))
    with pytest.raises(InvalidInput):
        sennit.open(":memory:", rerank__provider="other")


def test_doctor_asks_the_reranker(
    server: RerankServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SENNIT_RERANK_PROVIDER", "tei")
    monkeypatch.setenv("SENNIT_RERANK_BASE_URL", server.url)
    with sennit.open(".sennit") as db:
        db.add(RECORDS)
    fine = CliRunner().invoke(program, ["doctor", "--json"])
    assert fine.exit_code == 0, fine.output
    found = {one["check"]: one for one in json.loads(fine.stdout)["findings"]}
    assert found["reranker"]["level"] == "ok"
    server.script.append(as_json({"error": "no"}, 500))
    broken = CliRunner().invoke(program, ["doctor"])
    assert broken.exit_code == 6
    assert "answered 500" in broken.stdout


# The stage alone


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8), st.integers(1, 10))
def test_reranking_keeps_every_candidate_and_the_scale_of_scores(
    given_scores: list[float], candidates: int
) -> None:
    count = len(given_scores)
    records = {key: Record(id=f"r{key}", text="a lamp") for key in range(count)}
    ranking = Ranking(np.arange(count), np.linspace(1.0, 0.1, count))
    context = StageContext(
        query="lamp",
        limit=10,
        now=datetime(2026, 1, 1, tzinfo=UTC),
        records=lambda keys: {key: records[key] for key in keys},
    )

    def rerank(query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        del query, seconds
        return given_scores[: len(texts)]

    output = Rerank(candidates=candidates).apply(ranking, replace(context, rerank=rerank))
    assert sorted(output.keys.tolist()) == sorted(ranking.keys.tolist())
    assert np.array_equal(output.scores, ranking.scores)
    head = min(candidates, count)
    by_key = dict(zip(ranking.keys.tolist(), given_scores, strict=True))
    ordered = [by_key[key] for key in output.keys[:head].tolist()]
    assert ordered == sorted(ordered, reverse=True)
    assert output.keys[head:].tolist() == ranking.keys[head:].tolist()
