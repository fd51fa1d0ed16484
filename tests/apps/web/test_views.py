"""The other views of the page in a real Chromium: tuning, judging, the prompt, memory and facts, and the state."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Download, expect

import sennit
from apps.http.conftest import SampleDatabase
from apps.web.conftest import Visit, Visits
from apps.web.test_page import assert_accessible
from sennit.ranking.calibration import Background
from sennit.ranking.fusion import METHODS, fuse, fusion_from_dict
from sennit.ranking.normalisation import NORMALISATIONS
from sennit.recipes import recipe_from_dict

pytestmark = pytest.mark.browser

RERANK = """async ([trace, settings]) => {
  const { rerank } = await import('/web/ranking.js');
  const out = rerank(trace, settings);
  return { ids: out.order.map(({ index }) => trace.candidates[index].id),
           scores: out.order.map(({ score }) => score), estimated: out.estimated };
}"""


def open_view(visit: Visit, address: str) -> None:
    visit.go(f"#/{address}")
    visit.page.reload()


# Tuning


def test_formulas_of_the_page_are_those_of_the_engine(owner: Visit) -> None:
    random = np.random.default_rng(7)
    lists = []
    for name in ("keyword", "vector", "links"):
        keys = random.permutation(40)[: random.integers(10, 30)]
        lists.append((name, keys, np.sort(random.normal(0.4, 0.3, len(keys)))[::-1]))
    background = Background(0.2, 0.85)
    cases: list[dict[str, Any]] = [
        {"method": method, **({"weights": {"*": 1.0, "vector": 0.7}} if method in WEIGHTED else {})}
        for method in METHODS
        if method != "condorcet"
    ]
    cases += [{"method": "weighted", "weights": {"*": 0.5}, "normalise": rule} for rule in NORMALISATIONS]
    cases += [{"method": "rrf", "k": 2.0, "first_rank": 0.0, "weights": {"*": 3.0}, "weighting": "rank"}] * 1
    given = [
        {
            "name": name,
            "background": background.mean,
            "resolution": background.resolution,
            "entries": [
                {"index": int(key), "score": float(score)} for key, score in zip(keys, scores, strict=True)
            ],
        }
        for name, keys, scores in lists
    ]
    for case in cases:
        method = fusion_from_dict(case)
        full = sennit.ranking.fusion.fusion_to_dict(method)
        fused = fuse(method, lists, background=background)
        expected = dict(zip(fused.keys.tolist(), fused.scores.tolist(), strict=True))
        found = owner.page.evaluate(
            "async ([fusion, lists]) => [...(await import('/web/ranking.js')).fuse(fusion, lists)]",
            [full, given],
        )
        assert dict(map(tuple, found)) == pytest.approx(expected, abs=1e-12), case


WEIGHTED = ("rrf", "weighted", "linear", "relative_score")


@pytest.mark.parametrize("recipe", ["rrf", "memory", "vector", "keyword"])
def test_order_in_the_browser_is_that_of_the_engine(
    owner: Visit, web_sample: SampleDatabase, recipe: str
) -> None:
    def trial(**changes: Any) -> Any:
        body = {"query": "vineyard vacation in March", "recipe": recipe, "limit": 10, **changes}
        return owner.page.evaluate(
            "async ([body, token]) => (await fetch('/v1/trial', {method: 'POST', body: JSON.stringify(body), "
            "headers: {authorization: `Bearer ${token}`, 'content-type': 'application/json'}})).json()",
            [body, web_sample.tokens["owner"]],
        )

    base = trial()
    settings = {"fusion": base["trace"]["recipe"]["fusion"], "stages": base["trace"]["recipe"]["stages"]}
    names = [source["name"] for source in base["trace"]["recipe"]["sources"]]
    settings["fusion"]["weights"] = {name: 0.3 + at for at, name in enumerate(names)}
    for stage in settings["stages"]:
        if stage["stage"] == "decay":
            stage["recency"] = 0.8
        if stage["stage"] == "mmr":
            stage["relevance_weight"] = 0.4
    changed = trial(**settings)
    found = owner.page.evaluate(RERANK, [base["trace"], {**settings, "similarity": base["similarity"]}])
    if not found["estimated"]:
        assert found["ids"] == [hit["id"] for hit in changed["hits"]]
        assert found["scores"] == pytest.approx([hit["score"] for hit in changed["hits"]], rel=1e-6)
    assert recipe == "memory" or not found["estimated"]


def test_sliders_reorder_and_make_a_recipe(owner: Visit) -> None:
    open_view(owner, "tune?q=vineyard&recipe=rrf")
    expect(owner.page.locator("[aria-label=After] li").first).to_be_visible()
    slider = owner.page.get_by_label("weight of keyword")
    slider.focus()
    slider.press("End")
    expect(owner.page.locator(".badge.good")).to_have_text("confirmed by the engine")
    table = tomllib.loads(owner.page.get_by_label("Recipe", exact=True).last.inner_text())
    recipe = recipe_from_dict("tuned", table["recipes"]["tuned"])
    assert recipe.fusion.weights == {"keyword": 2.0, "vector": 1.0}  # type: ignore[union-attr]
    assert_accessible(owner.page)


def test_two_recipes_stand_side_by_side(owner: Visit) -> None:
    open_view(owner, "tune?q=vineyard&recipe=keyword")
    owner.page.get_by_label("Compare with").select_option("vector")
    expect(owner.page.locator(".status")).to_contain_text("keyword beside vector")
    expect(owner.page.locator("[aria-label=After] li").first).to_be_visible()


# Judging


def test_one_key_grades_a_result_and_judgements_are_measured(owner: Visit) -> None:
    owner.search("vineyard harvest")
    first = owner.page.locator("article").first
    first.focus()
    owner.page.keyboard.press("3")
    expect(first.get_by_role("button", name="3: exactly right")).to_have_attribute("aria-pressed", "true")
    second = owner.page.locator("article").nth(1)
    second.focus()
    owner.page.keyboard.press("0")
    expect(second.get_by_role("button", name="0: not relevant")).to_have_attribute("aria-pressed", "true")
    open_view(owner, "tune?q=vineyard&recipe=rrf")
    owner.page.get_by_role("button", name="Measure nDCG@10").click()
    expect(owner.page.locator(".ndcg")).to_contain_text("over 1 query")
    downloads: list[Download] = []

    def note_download(one: Download) -> None:
        downloads.append(one)

    owner.page.on("download", note_download)
    with owner.page.expect_download(lambda one: one.suggested_filename == "qrels.tsv"):
        owner.page.get_by_role("button", name="Download qrels").click()
    saved = {one.suggested_filename: one.path().read_text() for one in downloads}
    assert json.loads(saved["queries.jsonl"])["text"] == "vineyard harvest"
    assert sorted(line.split("\t")[2] for line in saved["qrels.tsv"].splitlines()[1:]) == ["0", "3"]


# The prompt


def test_memory_block_and_plan_are_shown(owner: Visit) -> None:
    open_view(owner, "prompt?q=vacation+in+March")
    expect(owner.page.get_by_label("Memory block", exact=True)).to_contain_text("March for vacation")
    owner.page.get_by_label("What", exact=False).first.select_option("plan")
    owner.page.get_by_label("Episode").first.fill("page-test")
    owner.page.get_by_role("button", name="Plan").click()
    expect(owner.page.locator(".budget")).to_be_visible()
    owner.page.get_by_label("Episode").last.fill("page-test")
    owner.page.get_by_role("button", name="Show").click()
    expect(owner.page.get_by_role("button", name="turn 1")).to_be_visible()
    assert_accessible(owner.page)


# Memory and facts


def test_facts_are_corrected_and_the_former_one_stays_in_history(owner: Visit) -> None:
    open_view(owner, "memory?entity=Rajesh")
    fact = owner.page.locator(".fact.valid", has_text="planning").first
    fact.get_by_role("button", name="Correct").click()
    owner.page.get_by_label("Rajesh planning").fill("Kochi")
    owner.page.get_by_role("button", name="Save").click()
    expect(owner.page.locator(".fact.valid", has_text="Kochi")).to_be_visible()
    expect(owner.page.locator(".fact.ended", has_text="Priya")).to_contain_text("superseded by")
    as_of = owner.page.get_by_label(re.compile("^As of"))
    as_of.focus()
    as_of.press("Home")
    expect(owner.page.locator(".fact", has_text="Kochi")).to_have_count(0)
    assert_accessible(owner.page)


def test_a_turn_is_forgotten_after_a_question(owner: Visit) -> None:
    open_view(owner, "memory")
    owner.page.get_by_role("button", name=re.compile("^s1")).click()
    turn = owner.page.locator(".turn", has_text="March for vacation")
    turn.get_by_role("button", name="Forget").click()
    expect(owner.page.locator("dialog")).to_contain_text("March for vacation")
    owner.page.keyboard.press("Escape")
    expect(turn).to_be_visible()


def test_a_reader_is_offered_no_changes(visits: Visits) -> None:
    visit = visits("reader")
    open_view(visit, "memory")
    expect(visit.page.locator(".fact").first).to_be_visible()
    expect(visit.page.get_by_role("button", name="Forget")).to_have_count(0)


# State


def test_state_shows_the_last_hour_and_a_report_without_secrets(
    owner: Visit, web_sample: SampleDatabase
) -> None:
    owner.search("vineyard")
    open_view(owner, "state")
    expect(owner.page.locator(".chart")).to_be_visible()
    expect(owner.page.get_by_label("Collections")).to_contain_text("hostile")
    with owner.page.expect_download() as download:
        owner.page.get_by_role("button", name="Download a report").click()
    report = json.loads(download.value.path().read_text())
    assert report["sennit"] == sennit.__version__
    text = json.dumps(report)
    assert "vineyard" not in text
    assert str(web_sample.path.parent) not in text
    assert web_sample.tokens["owner"] not in text
    assert_accessible(owner.page)


@pytest.mark.parametrize("view", ["tune?q=vineyard", "prompt", "memory", "state"])
def test_views_fit_a_phone(owner: Visit, view: str) -> None:
    owner.page.set_viewport_size({"width": 390, "height": 844})
    owner.page.emulate_media(color_scheme="dark")
    open_view(owner, view)
    expect(owner.page.locator("main h1")).to_have_count(1)
    owner.page.wait_for_load_state("networkidle")
    assert owner.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert_accessible(owner.page)
