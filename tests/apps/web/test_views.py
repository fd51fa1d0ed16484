"""The other views of the page in a real Chromium: tuning, judging, the prompt, memory and facts, and the state."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import sennit
from apps.http.conftest import SampleDatabase
from apps.web.conftest import Visit, Visits
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
    if "vector" in names:
        scores = [
            one["score"]
            for candidate in base["trace"]["candidates"]
            for one in candidate["sources"]
            if one["source"] == "vector" and one["rank"]
        ]
        settings["thresholds"] = {
            "vector": {"min_score": sorted(scores)[len(scores) // 2], "max_distance": None}
        }
    changed = trial(**settings)
    found = owner.page.evaluate(RERANK, [base["trace"], {**settings, "similarity": base["similarity"]}])
    if not found["estimated"]:
        assert found["ids"] == [hit["id"] for hit in changed["hits"]]
        assert found["scores"] == pytest.approx([hit["score"] for hit in changed["hits"]], rel=1e-6)
    assert recipe == "memory" or not found["estimated"]


def test_sliders_reorder_and_make_a_recipe(owner: Visit) -> None:
    owner.open_view("tune?q=vineyard&recipe=rrf")
    expect(owner.page.locator("[aria-label=After] li").first).to_be_visible()
    slider = owner.page.get_by_label("weight of keyword")
    slider.focus()
    slider.press("End")
    expect(owner.page.locator(".badge.good")).to_have_text("confirmed by the engine")
    table = tomllib.loads(owner.page.get_by_label("Recipe", exact=True).last.inner_text())
    recipe = recipe_from_dict("tuned", table["recipes"]["tuned"])
    assert recipe.fusion.weights == {"keyword": 2.0, "vector": 1.0}  # type: ignore[union-attr]


def test_two_recipes_stand_side_by_side(owner: Visit) -> None:
    owner.open_view("tune?q=vineyard&recipe=keyword")
    owner.page.get_by_label("Compare with").select_option("vector")
    expect(owner.page.locator(".status")).to_contain_text("keyword beside vector")
    expect(owner.page.locator("[aria-label=After] li").first).to_be_visible()


# The prompt


def test_memory_block_and_plan_are_shown(owner: Visit) -> None:
    owner.open_view("prompt?q=vacation+in+March")
    expect(owner.page.get_by_label("Memory block", exact=True)).to_contain_text("March for vacation")
    owner.page.get_by_label("What", exact=False).first.select_option("plan")
    owner.page.get_by_label("Store in the episode").fill("page-test")
    owner.page.get_by_role("button", name="Show").click()
    expect(owner.page.locator(".budget")).to_be_visible()
    turn = owner.page.get_by_role("group", name="Turns of page-test").get_by_role("button").first
    expect(turn).to_have_accessible_name(re.compile("^turn 1: vacation in March"))
    turn.focus()
    owner.page.keyboard.press("Enter")
    expect(owner.page.get_by_label("page-test, turn 1", exact=True)).to_contain_text("vacation in March")
    expect(owner.page).to_have_url(re.compile("episode=page-test&turn=1"))
    owner.page.reload()
    expect(owner.page.get_by_label("page-test, turn 1", exact=True)).to_be_visible()


def test_memory_block_shows_its_budget_and_what_it_had_no_room_for(owner: Visit) -> None:
    turns = [
        {"session": "harbour", "speaker": "Anil", "text": f"The steamboat {number} is late, {'x' * 180}"}
        for number in range(14)
    ]
    owner.call("POST", "/v1/turns", turns)
    owner.call(
        "POST", "/v1/facts", {"subject": "steamboat", "relation": "belongs to", "object": "steamboat Anil"}
    )
    owner.page.route("**/v1/context?*", lambda route: route.continue_(url=f"{route.request.url}&limit=15"))
    owner.open_view("prompt?q=steamboat+of+Anil")
    block = owner.page.get_by_label("Block", exact=True)
    expect(block.get_by_role("img")).to_have_accessible_name(re.compile(r"^9\d % of the budget"))
    expect(block).to_contain_text("of 2,000 characters")
    fill = block.locator(".budget")
    kept = fill.locator(".semantic, .anchor").count()
    expect(fill.locator(".anchor")).to_have_count(1)
    cut = owner.page.get_by_label("Cut from the block")
    expect(cut.locator("tbody tr")).to_have_count(15 - kept)
    expect(cut).to_contain_text("steamboat")
    expect(block.locator(".badge", has_text="shortened")).to_have_count(kept - 1)


# Memory and facts


def test_facts_are_corrected_and_the_former_one_stays_in_history(owner: Visit) -> None:
    owner.open_view("memory?entity=Rajesh")
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


def test_a_turn_is_forgotten_after_a_question(owner: Visit) -> None:
    owner.open_view("memory")
    owner.page.get_by_role("button", name=re.compile("^s1")).click()
    turn = owner.page.locator(".turn", has_text="March for vacation")
    turn.get_by_role("button", name="Forget").click()
    expect(owner.page.locator("dialog")).to_contain_text("March for vacation")
    owner.page.keyboard.press("Escape")
    expect(turn).to_be_visible()


def test_a_reader_is_offered_no_changes(visits: Visits) -> None:
    visit = visits("reader")
    visit.open_view("memory")
    expect(visit.page.locator(".fact").first).to_be_visible()
    expect(visit.page.get_by_role("button", name="Forget")).to_have_count(0)


# State


def test_state_shows_the_last_hour_and_a_report_without_secrets(
    owner: Visit, web_sample: SampleDatabase
) -> None:
    owner.search("vineyard")
    owner.open_view("state")
    expect(owner.page.locator(".chart").first).to_be_visible()
    expect(owner.page.get_by_label("Collections")).to_contain_text("hostile")
    expect(owner.page.get_by_label("Roles and servers")).to_contain_text("keyword")
    expect(owner.page.get_by_label("Models")).to_contain_text("% of the records")
    expect(owner.page.get_by_label("Now")).to_contain_text("vectors to compute")
    with owner.page.expect_download() as download:
        owner.page.get_by_role("button", name="Download a report").click()
    report = json.loads(download.value.path().read_text())
    assert report["sennit"] == sennit.__version__
    text = json.dumps(report)
    assert "vineyard" not in text
    assert str(web_sample.path.parent) not in text
    assert web_sample.tokens["owner"] not in text
