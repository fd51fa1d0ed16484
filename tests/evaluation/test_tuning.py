"""Tuning finds what is there to be found, and reports nothing where there is nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sennit
from evaluation.folders import write_folder
from sennit import Record, SearchRequest
from sennit.apps.cli.program import program
from sennit.errors import InvalidInput
from sennit.evaluation.metrics import compute_metrics
from sennit.evaluation.search_space import CANDIDATE_FACTORS, scale_candidates, search_space
from sennit.evaluation.tuning import MIN_QUERIES, assign_folds, ndcg, tune
from sennit.evaluation.tuning_queries import from_documents, from_feedback, from_model, make_query
from sennit.evaluation.tuning_run import TuningOptions, tune_database
from sennit.ranking.fusion import RRF, Weighted, fuse
from sennit.recipes import Recipe, SourceConfig
from sennit.recipes.builtin import BUILTIN_RECIPES

SOURCES = (SourceConfig(source="keyword"), SourceConfig(source="vector"))
EVEN = Recipe(name="even", sources=SOURCES, fusion=Weighted({"keyword": 1.0, "vector": 1.0}, "none"))
CANDIDATES = 20


class Synthetic(NamedTuple):
    """Queries with the scores of two sources for each candidate, and the relevant candidate of each."""

    scores: NDArray[np.float64]  # [query, source, candidate]
    relevant: NDArray[np.int64]

    def measure(self, recipe: Recipe) -> NDArray[np.float64]:
        """The reciprocal of log2(1 + rank) of the relevant candidate: nDCG with one relevant document."""
        keys = np.arange(self.scores.shape[2])
        out = []
        for scores, relevant in zip(self.scores, self.relevant.tolist(), strict=True):
            lists = [
                (config.name, keys[order], row[order])
                for config, row in zip(recipe.sources, scores, strict=True)
                for order in [np.argsort(-row)]
            ]
            fused = fuse(recipe.fusion, lists).scores
            rank = int((fused > fused[relevant]).sum()) + 1
            out.append(1 / np.log2(1 + rank) if rank <= 10 else 0.0)
        return np.array(out)


def make_synthetic(seed: int, queries: int, *, weights: tuple[float, float] | None) -> Synthetic:
    """Scores by chance; the relevant candidate is the best by the planted weights, or any where there are none."""
    rng = np.random.default_rng(seed)
    scores = rng.random((queries, 2, CANDIDATES))
    if weights is None:
        return Synthetic(scores, rng.integers(0, CANDIDATES, queries))
    sums = np.tensordot(np.array(weights), scores, (0, 1)) + rng.normal(0, 0.05, (queries, CANDIDATES))
    return Synthetic(scores, sums.argmax(axis=1))


# The metric


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcdefghijklmnop"), st.integers(0, 4), min_size=1),
    st.lists(st.sampled_from("abcdefghijklmnopqrst"), unique=True),
)
def test_ndcg_is_that_of_trec_eval(grades: dict[str, int], ranking: list[str]) -> None:
    expected = compute_metrics({"q": grades}, {"q": ranking})["q"]["nDCG@10"]
    assert ndcg(grades, ranking) == pytest.approx(expected)


# The space


@pytest.mark.parametrize("name", BUILTIN_RECIPES)
def test_every_value_of_the_space_makes_a_valid_recipe(name: str) -> None:
    recipe = BUILTIN_RECIPES[name]
    dimensions = search_space(recipe)
    assert dimensions
    for dimension in dimensions:
        for value in dimension.values:
            assert dimension.apply(recipe, value) != recipe
        if dimension.group != "candidates":
            assert dimension.apply(recipe, dimension.own).stages == recipe.stages


def test_only_proportions_of_weights_are_tuned() -> None:
    names = [one.name for one in search_space(BUILTIN_RECIPES["default"]) if one.name.startswith("fusion")]
    assert names == ["fusion.weights.keyword", "fusion.weights.vector"]  # links has the largest
    assert "fusion.k" in [one.name for one in search_space(BUILTIN_RECIPES["rrf"])]


# The procedure


@pytest.mark.parametrize("weights", [(1.0, 0.25), (0.125, 1.0)])
def test_planted_weights_are_found(weights: tuple[float, float]) -> None:
    report = tune(EVEN, make_synthetic(1, 120, weights=weights).measure)
    assert report.is_confirmed, report.verdict
    assert report.after > report.before + 0.05
    assert report.test.interval.low > 0
    found = report.tuned.fusion
    assert isinstance(found, Weighted)
    ratio = found.weights["vector"] / found.weights["keyword"]
    planted = weights[1] / weights[0]
    assert planted / 2 <= ratio <= planted * 2


def test_what_is_best_already_stays() -> None:
    report = tune(EVEN, make_synthetic(2, 60, weights=(1.0, 1.0)).measure)
    assert not report.is_confirmed
    assert report.verdict.startswith("Refused: ")


@pytest.mark.slow
def test_noise_is_refused_in_95_of_100_runs() -> None:
    """200 runs on labels by chance; the paired test confirms a gain by chance in at most one of twenty."""
    confirmed = sum(
        tune(EVEN, make_synthetic(1000 + run, 60, weights=None).measure).is_confirmed for run in range(200)
    )
    assert confirmed <= 10


def test_too_few_queries_are_refused() -> None:
    with pytest.raises(InvalidInput, match=f"at least {MIN_QUERIES}"):
        tune(EVEN, make_synthetic(1, MIN_QUERIES - 1, weights=(1, 0)).measure)


def test_folds_must_leave_queries_to_learn_from() -> None:
    with pytest.raises(InvalidInput, match="folds must be from 2"):
        tune(EVEN, make_synthetic(1, 30, weights=(1, 0)).measure, folds=1)


@given(st.lists(st.sampled_from("abc"), min_size=10, max_size=60), st.integers(2, 5))
def test_folds_are_even_and_spread_every_group(groups: list[str], folds: int) -> None:
    fold_of = assign_folds(groups, folds)
    sizes = np.bincount(fold_of, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    for group in set(groups):
        own = np.bincount(fold_of[[at for at, one in enumerate(groups) if one == group]], minlength=folds)
        assert own.max() - own.min() <= 1


# Replays


def words(number: int) -> str:
    parts = ("harbour", "crane", "tide", "mooring", "rope", "lantern", "keel", "anchor", "buoy", "sail")
    return " ".join(parts[(number * step) % 10] for step in (1, 3, 7, 9)) + f" berth {number % 7}"


@pytest.fixture(scope="module")
def db() -> sennit.Database:
    opened = sennit.open(":memory:", privacy__open=True)
    opened.add(
        Record(id=f"r{n}", text=words(n), title=f"Berth {n}" if n % 4 == 0 else "", parent="log", position=n)
        for n in range(80)
    )
    return opened


@pytest.mark.parametrize("name", ["default", "rrf", "memory", "keyword"])
def test_a_replay_ranks_as_a_search_does(db: sennit.Database, name: str) -> None:
    recipe = db.recipes[name]
    queries = ["crane at the harbour", "rope and lantern", "berth 3", "tide yesterday"]
    requests = [
        SearchRequest(query, recipe=scale_candidates(recipe, max(CANDIDATE_FACTORS)), limit=10)
        for query in queries
    ]
    variants = [recipe, scale_candidates(recipe, 0.5)]
    variants += [one.apply(recipe, one.values[0]) for one in search_space(recipe)]
    with db.admin.replays(requests) as replays:
        for query, replay in zip(queries, replays, strict=True):
            assert not replay.degraded
            for variant in variants:
                expected = [hit.id for hit in db.search(query, recipe=variant, limit=10)]
                assert replay.rank(variant) == expected


def test_replays_of_two_callers_are_refused(db: sennit.Database) -> None:
    requests = [SearchRequest("a"), SearchRequest("b", caller=sennit.Caller(name="b"))]
    with pytest.raises(InvalidInput, match="different callers"), db.admin.replays(requests):
        pass
    with db.admin.replays([]) as none:
        assert list(none) == []


# Queries that nobody judged


def test_a_title_becomes_the_query_and_leaves_the_document() -> None:
    text = "The valve on the left closes the circuit. " * 5
    made = make_query(Record(id="a", title="How to bleed a radiator", text=text))
    assert made is not None
    assert made.text == "How to bleed a radiator"
    assert (made.document.title, made.document.text) == ("", text)


def test_a_heading_or_first_sentence_becomes_the_query() -> None:
    rest = "The valve on the left closes the circuit. " * 5
    headed = make_query(Record(id="a", text=f"## Bleed the radiators\n{rest}"))
    plain = make_query(Record(id="b", text=f"Radiators must be bled every autumn. {rest}"))
    assert headed is not None
    assert plain is not None
    assert (headed.text, headed.document.text) == ("Bleed the radiators", rest)
    assert (plain.text, plain.document.text) == ("Radiators must be bled every autumn.", rest)
    assert make_query(Record(id="c", text="Too short.")) is None


def test_queries_from_documents_are_about_copies() -> None:
    records = [Record(id=f"r{n}", title=f"Report of day {n}", text=f"{words(n)} " * 6) for n in range(30)]
    made = from_documents(records, limit=20)
    assert len(made.queries) == 20
    assert len(made.documents) == 30
    assert sum(not record.title for record in made.documents) == 20
    by_id = {record.id: record for record in made.documents}
    for query in made.queries:
        (relevant,) = made.judgements[query.id]
        assert query.text not in by_id[relevant].text


def test_the_same_query_of_several_people_is_one() -> None:
    with sennit.open(":memory:", privacy__open=True, feedback__record="all") as opened:
        opened.add([{"id": "a", "text": "a boiler"}, {"id": "b", "text": "a second boiler"}])
        for name, action in (("ann", "click"), ("bob", "reject")):
            caller = sennit.Caller(name=name, everything=True)
            result = opened.search("boiler" if name == "ann" else " Boiler", caller=caller)
            opened.feedback.add(result, action, "a", caller=caller)
        found = from_feedback(opened.feedback.read(everything=True))
    assert [query.text for query in found.queries] == ["boiler"]
    assert found.judgements == {"q1": {"a": 1}}


class Scripted:
    """A language model that answers from the passage itself."""

    name = "scripted"

    def complete(self, system: str, prompt: str, *, max_tokens: int, timeout: float) -> str:
        del system, max_tokens, timeout
        return f'"Where is\n{prompt.split()[0]}?"'


def test_a_language_model_writes_queries() -> None:
    found = from_model([Record(id="a", text=f"{words(1)} " * 6)], Scripted(), timeout=1)  # type: ignore[arg-type]
    assert [query.text for query in found.queries] == ["Where is crane?"]
    assert found.judgements == {"q1": {"a": 1}}


# Databases and the command


PARTS = ("alpha", "beta", "gamma", "delta", "omega", "sigma", "kappa", "theta")


def write_keyword_folder(folder: Path) -> Path:
    """Queries whose relevant document has their code, while documents of their meaning have not."""
    documents = [
        {"_id": f"d{n}", "text": f"The lamp of part {PARTS[n % 8]}{n} is checked by the crew."}
        for n in range(32)
    ]
    documents += [
        {"_id": f"m{n}", "text": f"A symphony for violin, cello and orchestra, by composer {n}."}
        for n in range(32)
    ]
    queries = [{"_id": f"q{n}", "text": f"{PARTS[n % 8]}{n} piano concerto music"} for n in range(32)]
    judged = "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in range(32))
    return write_folder(folder, documents=documents, queries=queries, judged=judged)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(program, ["tune", *map(str, arguments)])


def write_vector_first(tmp_path: Path) -> None:
    """A recipe that keyword search hardly counts in."""
    table = '[recipes.wrong]\nbase = "rrf"\nfusion = {method = "rrf", k = 1, weights = {keyword = 0.05, vector = 1.0}}\n'
    (tmp_path / "sennit.toml").write_text(f"# mine\n{table}", encoding="utf-8")


def test_a_confirmed_recipe_is_written_and_used_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_vector_first(tmp_path)
    result = run(write_keyword_folder(tmp_path / "parts"), "--recipe", "wrong", "--name", "mine", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["confirmed"]
    assert found["evidence"]["after"] > found["evidence"]["before"]
    assert found["written"] == str(tmp_path / "sennit.toml")
    text = (tmp_path / "sennit.toml").read_text(encoding="utf-8")
    assert text.startswith("# mine\n[recipes.wrong]")
    with sennit.open("db") as opened:
        opened.add([Record(id="a", text="lamp")])
        assert [hit.id for hit in opened.search("lamp", recipe="mine")] == ["a"]
        evidence = opened.recipes["mine"].evidence
    assert (evidence["queries"], evidence["queries_from"], evidence["folds"]) == (32, "judgements", 5)
    assert {"interval", "p", "date", "model", "contract", "metric", "base"} <= set(evidence)
    # A second run replaces what the first wrote.
    again = run(tmp_path / "parts", "--recipe", "wrong", "--name", "mine")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "sennit.toml").read_text(encoding="utf-8") == text


def test_what_is_not_confirmed_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(write_keyword_folder(tmp_path / "parts"), "--recipe", "keyword")
    assert result.exit_code == 8
    assert "Refused: no change of 'keyword' is better" in result.stdout
    assert not (tmp_path / "sennit.toml").exists()


@pytest.mark.slow
def test_queries_ask_at_the_given_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two turns that say the same, the later is meant; only with a clock does the recipe know which that is."""
    monkeypatch.chdir(tmp_path)
    documents = [
        {
            "_id": f"{when}{n}",
            "text": f"The lamp of part {PARTS[n % 8]}{n} is red.",
            "metadata": {"date": date},
        }
        for n in range(24)
        for when, date in (("a", "2025-01-05"), ("b", "2026-03-01"))
    ]
    queries = [{"_id": f"q{n}", "text": f"which lamp has {PARTS[n % 8]}{n}"} for n in range(24)]
    judged = "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\tb{n}\t1\n" for n in range(24))
    folder = write_folder(tmp_path / "turns", documents=documents, queries=queries, judged=judged)
    (tmp_path / "sennit.toml").write_text(
        '[recipes.recent]\nbase = "rrf"\nstages = [{stage = "decay", recency = 1.0}]\n', encoding="utf-8"
    )
    before = {
        clock: json.loads(run(folder, "--recipe", "recent", "--dry-run", "--json", *clock).stdout)[
            "evidence"
        ]["before"]
        for clock in ((), ("--now", "last"))
    }
    assert before["--now", "last"] == 1.0
    assert before[()] < 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--name", "default"], "is a built-in recipe"),
        (["--name", "wrong"], "was not tuned"),
        (["parts", "--queries-from", "documents"], "--queries-from is for a database"),
        (["--model", "static"], "need DIR"),
        (["--now", "end"], "need DIR"),
    ],
)
def test_wrong_usage_is_explained(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_vector_first(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_database_without_feedback_is_tuned_on_its_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with sennit.open(".sennit") as opened:
        opened.add(
            Record(
                id=f"r{n}", title=f"Log of {PARTS[n % 8]} berth {n}", text=f"{words(n)} {PARTS[n % 8]} " * 4
            )
            for n in range(40)
        )
    result = run("--recipe", "rrf", "--json")
    assert result.exit_code in (0, 8), result.output
    assert "queries are made from the documents instead" in result.stderr
    assert json.loads(result.stdout)["evidence"]["queries_from"] == "documents"


def test_a_database_is_tuned_on_the_feedback_of_the_chosen_caller_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SENNIT_FEEDBACK_RECORD", "all")
    ana = sennit.Caller(name="ana", scopes={"me"})
    ben = sennit.Caller(name="ben", scopes={"me"}, tenant="acme")
    with sennit.open(".sennit") as opened:
        for tenant in ("", "acme"):
            opened.add(
                Record(id=f"r{n}", text=f"{words(n)} {PARTS[n % 8]} berth {n}", scope="me", tenant=tenant)
                for n in range(40)
            )
        for caller, count in ((None, 1), (ana, 22), (ben, 21)):
            for n in range(count):
                result = opened.search(f"berth {n}", caller=caller)
                if result.hits:
                    opened.feedback.add(result, "click", result[0], caller=caller)

    def queries(*arguments: str) -> int:
        result = run("--recipe", "rrf", "--json", "--dry-run", *arguments)
        assert result.exit_code in (0, 8), result.output
        evidence = json.loads(result.stdout)["evidence"]
        assert evidence["queries_from"] == "feedback"
        return int(evidence["queries"])

    assert queries("--caller", "ana") == 22
    assert queries("--tenant", "acme") == 21
    assert queries("--tenant", "acme", "--caller", "ben") == 21
    assert (
        "has no feedback" in run("--caller", "ben").stderr
        or "no feedback of" in run("--caller", "ben").stderr
    )
    assert run("--caller", "ana", "--queries-from", "documents").exit_code == 2
    own = run("--recipe", "rrf", "--json", "--dry-run")
    assert "queries are made from the documents instead" in own.stderr, "the feedback of others is not used"


def test_a_recipe_that_finds_nothing_is_an_error(db: sennit.Database) -> None:
    collection = from_documents(
        [Record(id=f"x{n}", title=f"Something else {n}", text="z " * 80) for n in range(30)]
    )
    with pytest.raises(InvalidInput, match="finds no relevant record"):
        tune_database(db, collection, TuningOptions(recipe="rrf"))


def test_the_evidence_of_a_found_file_needs_no_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sennit.toml").write_text(
        '[recipes.a]\nbase = "rrf"\n[recipes.a.evidence]\nmodel = "onnx/minilm"\n', encoding="utf-8"
    )
    with sennit.open(":memory:") as opened:
        assert opened.recipes["a"].evidence == {"model": "onnx/minilm"}
        assert opened.recipes["a"] == sennit.Recipe(
            name="a", sources=opened.recipes["rrf"].sources, fusion=RRF(k=60, first_rank=1)
        )
