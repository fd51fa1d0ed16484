"""Learning a ranking: what is really better is kept, chance is refused, and each caller's feedback stays apart."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import sennit
from evaluation.folders import write_folder
from sennit.apps.cli.exit_codes import NOT_CONFIRMED
from sennit.apps.cli.program import program
from sennit.engine import Database
from sennit.errors import InvalidInput, NotFound
from sennit.evaluation import learning
from sennit.evaluation.learning import (
    OWN_FEATURES,
    FeatureSet,
    LabelledQuery,
    assign_folds,
    discounted,
    learn_trees,
)
from sennit.evaluation.learning_data import (
    base_recipe,
    describe_training,
    label_feedback,
    read_svmlight,
    select_feedback,
)
from sennit.feedback import FeedbackEvent, LoggedQuery, ShownHit
from sennit.ranking.features import BASE_FEATURE, FEATURE_NAMES, FEATURES_VERSION
from sennit.ranking.ranker import Ranker, RankerScope, ranker_from_json
from sennit.ranking.trees import Tree, TreeSum
from sennit.recipes import recipe_from_dict
from sennit.repositories.feedback import FeedbackOwner
from sennit.repositories.keys import encode_key


def planted(count: int = 60, seed: int = 0) -> list[LabelledQuery]:
    """Queries whose relevant candidates have a high coverage, which the recipe's score does not know."""
    rng = np.random.default_rng(seed)
    out = []
    for number in range(count):
        features = np.zeros((8, len(FEATURE_NAMES)))
        features[:, FEATURE_NAMES.index(BASE_FEATURE)] = np.linspace(1.0, 0.9, 8)
        features[:, FEATURE_NAMES.index("coverage")] = rng.random(8)
        gains = (features[:, FEATURE_NAMES.index("coverage")] > 0.7).astype(np.float64)
        out.append(
            LabelledQuery(f"q{number}", f"c{number % 2}", features, gains, discounted(-np.sort(-gains)))
        )
    return out


def shuffled(queries: list[LabelledQuery], seed: int = 1) -> list[LabelledQuery]:
    rng = np.random.default_rng(seed)
    return [
        LabelledQuery(one.group, one.collection, one.features, rng.permutation(one.gains), one.ideal)
        for one in queries
    ]


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less work; the folds and tests are the same."""
    monkeypatch.setattr(learning, "TREE_COUNTS", (5, 15))


@pytest.mark.usefixtures("few_trees")
def test_what_is_better_on_held_out_folds_is_kept() -> None:
    steps: list[tuple[int, int]] = []
    trees, report = learn_trees(planted(), OWN_FEATURES, lambda *step: steps.append(step))
    assert report.refusal == ""
    assert report.whole.test.difference > 0.1
    assert report.whole.learned > report.whole.recipe
    assert list(report.importance) == ["coverage"]
    assert [one.collection for one in report.collections] == ["c0", "c1"]
    assert steps[-1][0] == steps[-1][1]
    assert 1 <= len(trees.trees) <= 15
    assert json.loads(json.dumps(report.to_dict()))["p"] < 0.05


@pytest.mark.usefixtures("few_trees")
def test_trees_use_no_feature_whose_scale_is_that_of_a_database() -> None:
    queries = planted()
    for query in queries:
        columns = [FEATURE_NAMES.index(name) for name in ("coverage", "keyword_score")]
        query.features[:, columns] = query.features[:, columns[::-1]]
    trees, report = learn_trees(queries, OWN_FEATURES)
    assert report.refusal
    assert report.importance == {}
    assert not trees.scores(queries[0].features).any()


@pytest.mark.usefixtures("few_trees")
def test_shuffled_labels_are_refused() -> None:
    _, report = learn_trees(shuffled(planted()), OWN_FEATURES)
    assert "not significantly better" in report.refusal
    assert "held-out queries" in report.refusal


@pytest.mark.slow
@pytest.mark.usefixtures("few_trees")
def test_chance_is_hardly_ever_kept() -> None:
    kept = [
        seed
        for seed in range(20)
        if not learn_trees(shuffled(planted(seed=seed), seed + 100), OWN_FEATURES)[1].refusal
    ]
    # A two-sided test at 5 % keeps what is better by chance in one of forty runs.
    assert len(kept) <= 2


@pytest.mark.usefixtures("few_trees")
def test_a_ranker_that_is_worse_on_one_collection_is_refused() -> None:
    bad = planted(40)
    for query in bad:
        # The opposite holds there.
        column = query.features[:, FEATURE_NAMES.index("coverage")]
        order = (column > 0.7).argsort(kind="stable")
        query.features[:] = query.features[order]
    queries = [
        *planted(120),
        *(
            LabelledQuery(
                f"b{one.group}",
                "bad",
                one.features,
                np.array([3.0, 2, 1, 0, 0, 0, 0, 0]),
                discounted(np.array([3.0, 2, 1])),
            )
            for one in bad
        ),
    ]
    _, report = learn_trees(queries, OWN_FEATURES)
    assert "significantly worse on bad" in report.refusal


def test_too_few_queries_are_refused_with_what_to_do() -> None:
    for queries in (planted(19), planted(19) * 10):
        with pytest.raises(InvalidInput, match=r"19 different queries .* at least 20"):
            learn_trees(queries, OWN_FEATURES)


@pytest.mark.usefixtures("few_trees")
def test_the_same_question_is_neither_learned_and_asked_nor_counted_twice() -> None:
    """Trees can learn by heart what is relevant to a question by chance; asked again, it would be confirmed."""
    rng = np.random.default_rng(0)
    by_chance = [
        LabelledQuery(f"q{at}", "c", rng.random((6, 2)), rng.permutation([1.0, 0, 0, 0, 0, 0]), 1.0)
        for at in range(24)
    ]
    _, report = learn_trees(by_chance * 6, FeatureSet(("a", "b")))
    assert "not significantly better" in report.refusal
    assert report.whole.test.queries == 24


def test_the_same_question_is_never_in_two_folds() -> None:
    queries = [*planted(30), *planted(30, seed=1)]
    folds = assign_folds(queries, 5)
    assert folds[:30] == folds[30:]
    assert sorted(set(folds)) == [0, 1, 2, 3, 4]
    assert max(folds.count(fold) for fold in range(5)) <= 2 * 7


# SVMlight


def write_svmlight(file: Path, *, with_qid: bool = True) -> None:
    """A synthetic collection: the middle of the third feature is relevant, which no single feature can say."""
    rng = np.random.default_rng(0)
    lines = []
    for query in range(1, 41):
        for _ in range(6):
            noise, signal = rng.random(2)
            qid = f"qid:{query} " if with_qid else ""
            lines.append(f"{int(0.3 < signal < 0.6)} {qid}1:{noise:.3f} 3:{signal:.3f}\n")
    file.write_text("".join(lines))


def test_svmlight_is_read_with_and_without_qid(tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    write_svmlight(first)
    write_svmlight(second, with_qid=False)
    (tmp_path / "b.txt.query").write_text("6\n" * 40)
    (one, features), (two, _) = read_svmlight(first), read_svmlight(second)
    assert features == FeatureSet(("feature_1", "feature_2", "feature_3"))
    assert len(one) == len(two) == 40
    np.testing.assert_array_equal(one[3].features, two[3].features)
    assert one[0].features.shape == (6, 3)
    (tmp_path / "b.txt.query").write_text("6\n")
    with pytest.raises(InvalidInput, match="counts 6 rows, and the file has 240"):
        read_svmlight(second)
    with pytest.raises(NotFound):
        read_svmlight(tmp_path / "missing")


def test_what_sennit_exported_without_a_value_stays_unknown(tmp_path: Path) -> None:
    file = tmp_path / "own.txt"
    file.write_text(f"# sennit features {FEATURES_VERSION}: {' '.join(FEATURE_NAMES)}\n2 qid:1 1:0.5 # q d\n")
    (query,), features = read_svmlight(file)
    assert features == OWN_FEATURES
    assert query.features[0, 0] == 0.5
    assert np.isnan(query.features[0, 1:]).all()


@pytest.mark.slow
def test_a_public_collection_is_learned_and_refused_with_shuffled_labels(shared_data: Path) -> None:
    queries, features = read_svmlight(shared_data / "ltr" / "rank.train")
    _, report = learn_trees(queries, features)
    assert report.refusal == ""
    assert report.whole.test.p_randomisation < 0.05
    _, chance = learn_trees(shuffled(queries), features)
    assert chance.refusal


# The command


def run(*arguments: object, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(program, [*map(str, arguments)], env=env)


@pytest.mark.usefixtures("few_trees")
def test_the_command_writes_a_ranker_from_svmlight(tmp_path: Path) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "ranker.json"
    write_svmlight(source)
    result = run("learn", "--svmlight", source, "--output", target, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["stored"]
    assert found["refused"] is None
    assert found["baseline"] == "the best single feature of the training folds"
    assert ranker_from_json(target.read_text()).training.data == "the file a.txt"
    stored = run("rankers", "add", target, "--db", tmp_path / "db")
    assert stored.exit_code == 2
    assert "does not know" in stored.stderr
    with sennit.open(tmp_path / "db"):
        pass
    unusable = run("learn", "--svmlight", source, "--db", tmp_path / "db")
    assert unusable.exit_code == 2
    assert "No search can use a ranker that is learned from the file a.txt" in unusable.stderr


@pytest.mark.parametrize("target", ["missing/ranker.json", "folder"])
def test_a_file_that_cannot_be_written_is_refused_before_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    def train(*_: object) -> None:
        raise AssertionError("training has begun")

    monkeypatch.setattr("sennit.evaluation.learning.learn_trees", train)
    (tmp_path / "folder").mkdir()
    source = tmp_path / "a.txt"
    write_svmlight(source)
    result = run("learn", "--svmlight", source, "--output", tmp_path / target)
    assert result.exit_code == 2
    assert str(Path(target).parts[0]) in result.stderr
    assert run("tune", "--write", tmp_path / "missing" / "x").exit_code == 2


@pytest.mark.usefixtures("few_trees")
def test_the_command_refuses_chance_with_its_own_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    rng = np.random.default_rng(0)
    rows = [f"{rng.integers(2)} qid:{at // 6} 1:{rng.random():.3f}\n" for at in range(240)]
    file.write_text("".join(rows))
    target = tmp_path / "ranker.json"
    result = run("learn", "--svmlight", file, "--output", target)
    assert result.exit_code == NOT_CONFIRMED, result.output
    assert "Refused: the ranker is not significantly better" in result.stdout
    assert not target.exists()


def small_ranker(db: Database, scope: RankerScope) -> Ranker:
    """A ranker of one tree for the recipe `default`, which prefers long texts."""
    at = FEATURE_NAMES.index("log_length")
    tree = Tree([at], [3.5], [-1], [-2], [True], [-20.0, 20.0], [0.0])
    return Ranker(
        name="long",
        features_version=FEATURES_VERSION,
        feature_names=FEATURE_NAMES,
        trees=TreeSum([tree], len(FEATURE_NAMES)),
        base_feature="score_relative",
        base_weight=10.0,
        training=describe_training(db, base_recipe(db.recipes["default"]), "a test", 1, scope, None),
    )


def test_a_ranker_that_cannot_be_read_is_named_by_every_command_and_removed(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db, db.store.transaction() as transaction:
        transaction.state.put([(encode_key("ranker", "broken", 0, 0), b"{}")])
    for command in (("status",), ("rankers", "list"), ("rankers", "export", "broken", tmp_path / "x")):
        shown = run(*command, "--db", tmp_path / "db")
        assert "'broken' cannot be read" in shown.output
        assert "sennit rankers remove broken" in shown.output
    listed = json.loads(run("rankers", "list", "--json", "--db", tmp_path / "db").stdout)
    assert [one["name"] for one in listed["unreadable"]] == ["broken"]
    assert run("rankers", "remove", "broken", "--db", tmp_path / "db").exit_code == 0
    assert "There are no rankers" in run("rankers", "list", "--db", tmp_path / "db").stderr


def test_one_of_several_rankers_of_a_name_is_chosen_and_never_guessed(tmp_path: Path) -> None:
    owner = FeedbackOwner.of(ANA)
    with sennit.open(tmp_path / "db") as db:
        for scope in (RankerScope(), RankerScope(""), RankerScope("", owner.identity)):
            db.rankers.add(small_ranker(db, scope))
    target = tmp_path / "ranker.json"
    for command in (("export", "long", target), ("remove", "long")):
        refused = run("rankers", *command, "--db", tmp_path / "db")
        assert refused.exit_code == 2
        assert "There are 3 rankers 'long'" in refused.stderr
    assert run("rankers", "export", "long", target, "--caller", "ana", "--db", tmp_path / "db").exit_code == 0
    assert ranker_from_json(target.read_text()).training.scope.caller == owner.identity
    assert run("rankers", "remove", "long", "--caller", "eve", "--db", tmp_path / "db").exit_code == 3
    assert run("rankers", "remove", "long", "--tenant", "", "--db", tmp_path / "db").exit_code == 0
    assert run("rankers", "remove", "long", "--everything", "--db", tmp_path / "db").exit_code == 0
    left = run("rankers", "remove", "long", "--db", tmp_path / "db")
    assert left.exit_code == 0
    assert "one caller" in left.stderr


def test_eval_measures_a_recipe_with_and_without_its_ranker(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    texts = [
        (f"{topic}-{size}", f"How to prune {topic}. " + "More of it. " * size)
        for topic in TOPICS
        for size in (0, 8)
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"_id": i, "text": t}) + "\n" for i, t in texts))
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": topic, "text": f"prune {topic}"}) + "\n" for topic in TOPICS)
    )
    judged = "".join(f"{topic}\t{topic}-8\t1\n" for topic in TOPICS)
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    stages = '[{stage = "rescore"}, {stage = "project"}, {stage = "learned", ranker = "long"}]'
    config = tmp_path / "sennit.toml"
    config.write_text(f'[recipes.mine]\nbase = "default"\nstages = {stages}\n')
    with sennit.open(tmp_path / "db") as db:
        db.add([{"id": "a", "text": "something"}])
        ranker = small_ranker(db, RankerScope("", FeedbackOwner.of(ANA).identity))
    (tmp_path / "ranker.json").write_text(ranker.to_json())
    options = ("eval", folder, "--ranker", tmp_path / "ranker.json")
    environment = {"SENNIT_CONFIG": str(config)}
    result = run(*options, "--recipe", "mine", "--compare", "mine without ranker", "--json", env=environment)
    assert result.exit_code == 0, result.output
    values = {one["system"]: one for one in json.loads(result.stdout)["results"]}
    assert values["mine"]["nDCG@10"] == 1.0
    assert values["mine without ranker"]["nDCG@10"] < 1.0
    assert not any("degraded" in one for one in values.values())
    unused = run(*options, "--recipe", "default", env=environment)
    assert unused.exit_code == 2
    assert "No measured recipe uses the ranker 'long'" in unused.stderr


def test_the_command_takes_one_source_of_labels(tmp_path: Path) -> None:
    result = run("learn", tmp_path, "--everything")
    assert result.exit_code == 2
    assert "Give folders, --svmlight, or one of" in result.stderr


# Feedback

ANA = sennit.Caller(name="ana", scopes={"me"})
BEN = sennit.Caller(name="ben", scopes={"me"})
TOPICS = "vines apples pears plums cherries figs quinces walnuts".split()


def fill(db: Database) -> None:
    db.add(
        sennit.Record(
            id=f"{topic}-{size}", text=f"How to prune {topic}. " + f"Number {size} says more. " * size
        )
        for topic in TOPICS
        for size in (0, 1, 4, 8)
    )


def click_long_texts(db: Database, caller: sennit.Caller | None, rounds: int) -> None:
    """A user who always chooses the longest text."""
    for at in range(rounds):
        result = db.search(f"{TOPICS[at % 8]} prune number {at // 8}", caller=caller, limit=4)
        longest = max(result, key=lambda hit: len(hit.text))
        db.feedback.add(result.query_id, "click", longest.id, caller=caller)


def test_feedback_of_one_caller_does_not_enter_the_ranker_of_another() -> None:
    with sennit.open(":memory:") as db:
        fill(db)
        click_long_texts(db, ANA, 8)
        recipe = base_recipe(db.recipes["default"])
        before, scope = select_feedback(db, caller="ana")
        first, _ = label_feedback(db, before, recipe)
        click_long_texts(db, BEN, 16)
        after, _ = select_feedback(db, caller="ana")
        second, _ = label_feedback(db, after, recipe)
        assert len(first) == len(second) == 8
        for one, two in zip(first, second, strict=True):
            np.testing.assert_array_equal(one.features, two.features)
            np.testing.assert_array_equal(one.gains, two.gains)
        assert scope.tenant == ""
        assert scope.caller is not None
        assert "ana" in scope.caller
        whole, everyone = select_feedback(db, everything=True)
        assert (len(whole), everyone) == (24, RankerScope())
        assert everyone.about == "everyone"
        assert select_feedback(db, tenant="")[1] == RankerScope("")
        assert select_feedback(db, tenant="acme")[0] == ()
        assert select_feedback(db)[0] == ()
        with pytest.raises(NotFound, match="'cleo'"):
            select_feedback(db, caller="cleo")
        with pytest.raises(InvalidInput, match="give neither"):
            select_feedback(db, caller="ana", everything=True)


def test_what_the_asker_may_not_see_has_no_part_in_the_features() -> None:
    # The default caller of an open database sees everything.
    with sennit.open(":memory:", privacy__open=True) as db:
        fill(db)
        click_long_texts(db, ANA, 8)
        recipe = base_recipe(db.recipes["default"])
        feedback, _ = select_feedback(db, caller="ana")
        before, _ = label_feedback(db, feedback, recipe)
        secrets = [f"How to prune {topic}, in secret." for topic in TOPICS]
        db.add(
            sennit.Record(id=f"secret-{at}", text=text, sensitivity="private", scope="board")
            for at, text in enumerate(secrets)
        )
        after, _ = label_feedback(db, feedback, recipe)
        for one, two in zip(before, after, strict=True):
            np.testing.assert_array_equal(one.features, two.features)


def test_features_that_an_experiment_recorded_are_searched_again() -> None:
    """Its list is of two recipes, so that no features are those of the one."""
    features = tuple(float(at) for at in range(len(FEATURE_NAMES)))
    query = LoggedQuery(
        query_id="q",
        query="prune apples",
        recipe="default",
        shown=(ShownHit("apples-0", features=features), ShownHit("apples-1", features=features)),
        features_version=FEATURES_VERSION,
    )
    event = FeedbackEvent(query_id="q", action_name="click", object_id="apples-1")
    with sennit.open(":memory:") as db:
        fill(db)
        recipe = base_recipe(db.recipes["default"])
        for experiment, is_recorded in (("", True), ("e", False)):
            db.feedback.forget()
            db.feedback.load([replace(query, experiment=experiment)], [event])
            ((labelled,), _) = label_feedback(db, db.feedback.read(), recipe)
            assert np.array_equal(labelled.features[0], features) is is_recorded


def test_a_click_counts_by_the_position_at_which_it_was_made() -> None:
    with sennit.open(":memory:") as db:
        fill(db)
        for topic in TOPICS[:4]:
            result = db.search(f"prune {topic}", limit=4)
            db.feedback.add(result, "click", result[2])
        queries, curve = label_feedback(db, db.feedback.read(), base_recipe(db.recipes["default"]))
    assert curve.weight(2) > 1
    assert [one.gains.max() for one in queries] == [curve.weight(2)] * 4


def test_callers_of_one_name_with_different_rights_have_no_ranker_together() -> None:
    with sennit.open(":memory:") as db:
        fill(db)
        for caller in (ANA, sennit.Caller(name="ana", scopes={"me"}, clearance="private")):
            click_long_texts(db, caller, 2)
        with pytest.raises(NotFound, match="2 callers are called 'ana'"):
            select_feedback(db, caller="ana")


def test_a_query_is_searched_again_as_of_its_time() -> None:
    with sennit.open(":memory:") as db:
        db.add(
            sennit.Record(
                id=f"{size}",
                text="How to prune vines. " * size,
                timestamp=datetime(2026, 3, size, tzinfo=UTC),
            )
            for size in (1, 2, 3)
        )
        event = FeedbackEvent(query_id="q", action_name="click", object_id="1")
        query = LoggedQuery(
            query_id="q",
            query="prune vines",
            shown=(ShownHit("1"), ShownHit("2")),
            timestamp=datetime(2026, 3, 11, tzinfo=UTC),
        )
        db.feedback.load([query], [event])
        ((labelled,), _) = label_feedback(db, db.feedback.read(), base_recipe(db.recipes["default"]))
    ages = np.expm1(labelled.features[:, FEATURE_NAMES.index("log_age_days")])
    np.testing.assert_allclose(sorted(ages), [9, 10])


def test_recorded_features_are_used_and_others_searched_again() -> None:
    with sennit.open(":memory:", feedback__features=True) as db:
        fill(db)
        click_long_texts(db, None, 4)
        recipe = base_recipe(db.recipes["default"])
        recorded, curve = label_feedback(db, db.feedback.read(), recipe)
        again, _ = label_feedback(db, db.feedback.read(), base_recipe(db.recipes["rrf"]))
        assert len(recorded) == len(again) == 4
        fused = FEATURE_NAMES.index("fused")
        assert all(one.features[0, fused] > 0.1 for one in recorded)
        assert all(one.features[0, fused] < 0.1 for one in again), "those of the other recipe"
        assert "assumed" in str(curve.to_dict()["method"])
        for one, query in zip(recorded, db.feedback.read(), strict=True):
            np.testing.assert_array_equal(one.features, [hit.features for hit in query.query.shown])
            assert one.by_clicks


@pytest.mark.slow
def test_a_ranker_from_feedback_ranks_the_next_search(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        fill(db)
        click_long_texts(db, None, 48)
    result = run("learn", "--db", folder, "--name", "long")
    assert result.exit_code == 0, result.output
    assert "for the searches of one caller" in result.output
    listed = json.loads(run("rankers", "list", "--db", folder, "--json").stdout)
    assert [one["name"] for one in listed["rankers"]] == ["long"]
    status = json.loads(run("status", "--db", folder, "--json").stdout)
    assert status["rankers"][0]["ranks_for"].startswith("one caller")
    stages = [{"stage": "rescore"}, {"stage": "project"}, {"stage": "learned", "ranker": "long"}]
    with sennit.open(folder) as db:
        recipe = recipe_from_dict("mine", {"base": "default", "stages": stages})
        found = db.search("plums prune number 7", recipe=recipe, limit=4)
        assert not found.degraded
        assert found[0].id == "plums-8"
    assert run("rankers", "export", "long", tmp_path / "out.json", "--db", folder).exit_code == 0
    assert run("rankers", "remove", "long", "--db", folder).exit_code == 0
    assert run("rankers", "remove", "long", "--db", folder).exit_code == 3
    assert run("rankers", "add", tmp_path / "out.json", "--db", folder).exit_code == 0


def test_eval_refuses_a_ranker_with_other_features_before_indexing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def index(*_: object) -> None:
        raise AssertionError("indexing has begun")

    with sennit.open(tmp_path / "db") as db:
        db.add([{"id": "a", "text": "something"}])
        value = json.loads(small_ranker(db, RankerScope()).to_json())
    value["feature_names"][1] = "moon_phase"
    other = tmp_path / "ranker.json"
    other.write_text(json.dumps(value))
    monkeypatch.setattr("sennit.evaluation.run.index_collection", index)
    result = run("eval", write_folder(tmp_path / "fruit"), "--ranker", other)
    assert result.exit_code == 2
    assert "it has the feature 'moon_phase', which this program does not know" in result.stderr
