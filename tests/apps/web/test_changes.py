"""What the page changes or hands out: recipes, judgements, memories and facts, and copied searches that really run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Download, expect

from apps.http.conftest import PROGRAM, RunningServer, SampleDatabase
from apps.web.conftest import Visit, Visits

pytestmark = pytest.mark.browser

HOSTILE_NAME = "<b>mine</b>\"'"


# Recipes


def test_thresholds_cut_at_once_and_stay_in_the_address(owner: Visit) -> None:
    owner.open_view("tune?q=vineyard&recipe=rrf")
    after = owner.page.locator("[aria-label=After] li")
    expect(after.first).to_be_visible()
    before = after.count()
    slider = owner.page.get_by_label("least relevance")
    slider.focus()
    for _ in range(4):
        slider.press("PageUp")
    expect(owner.page.locator(".badge.good")).to_have_text(re.compile("by the engine"))
    expect(after).not_to_have_count(before)
    owner.page.get_by_label("greatest distance of vector").press("PageDown")
    owner.page.get_by_label("least score of vector").press("PageUp")
    expect(owner.page.get_by_label("Recipe", exact=True).last).to_contain_text("min_score")
    table = tomllib.loads(owner.page.get_by_label("Recipe", exact=True).last.inner_text())["recipes"]["tuned"]
    assert table["min_relevance"] > 0.2
    assert table["sources"][1]["max_distance"] == pytest.approx(1.8)
    owner.page.reload()
    expect(owner.page.get_by_label("least relevance")).to_have_value(str(table["min_relevance"]))
    expect(owner.page.get_by_label("least score of vector")).to_have_value(
        str(table["sources"][1]["min_score"])
    )
    owner.page.get_by_role("button", name="Reset").click()
    expect(owner.page.get_by_label("least relevance")).to_have_value("0")


def test_recipe_is_saved_after_a_look_and_works_at_once(owner: Visit, web_sample: SampleDatabase) -> None:
    config = web_sample.path.parent / "sennit.toml"
    before = config.read_text()
    owner.open_view("tune?q=vineyard&recipe=rrf")
    owner.page.get_by_role("slider", name="k", exact=True).fill("7")
    owner.page.get_by_label("Name").fill(HOSTILE_NAME)
    owner.page.get_by_role("button", name="Save …").click()
    dialog = owner.page.locator("dialog")
    expect(dialog).to_contain_text(str(config))
    written = dialog.get_by_label("What is written").inner_text()
    assert tomllib.loads(written)["recipes"][HOSTILE_NAME]["fusion"]["k"] == 7.0
    dialog.get_by_role("button", name="Cancel").click()
    assert config.read_text() == before
    owner.page.get_by_role("button", name="Save …").click()
    owner.page.keyboard.press("Tab")
    dialog.get_by_role("button", name="Write it").press("Enter")
    expect(owner.page.locator(".toast")).to_contain_text("works at once")
    assert config.read_text() == f"{before}\n{written}"
    expect(owner.page.get_by_role("combobox", name="Recipe", exact=True)).to_have_value(HOSTILE_NAME)
    owner.page.get_by_label("Name").fill(HOSTILE_NAME)
    expect(owner.page.get_by_role("alert").first).to_contain_text("already")
    owner.open_view("search?q=vineyard")
    owner.page.get_by_label("Recipe").select_option(HOSTILE_NAME)
    expect(owner.page).to_have_url(re.compile("mine"))
    owner.page.locator("article").first.hover()
    expect(owner.page.locator(".flow-detail")).to_contain_text("/ (7 + 1)")
    owner.console.clear()  # the browser reports the 422


def test_who_may_not_save_gets_the_table(visits: Visits) -> None:
    visit = visits("reader")
    visit.open_view("tune?q=vineyard&recipe=rrf")
    expect(visit.page.get_by_role("button", name="Save …")).to_have_count(0)
    expect(visit.page.get_by_label("Recipe", exact=True).last).to_contain_text("base")
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name="Download", exact=True).click()
    assert tomllib.loads(download.value.path().read_text())["recipes"]["tuned"]["base"] == "rrf"


# Judgements


def test_judgements_are_measured_with_every_slider_and_read_by_eval(owner: Visit, tmp_path: Path) -> None:
    for query, grades in (("vineyard harvest", "30"), ("barrel of the cellar", "03")):
        owner.open_view(f"search?q={query.replace(' ', '+')}")
        expect(owner.page.locator("article").first).to_be_visible()
        for at, grade in enumerate(grades):
            article = owner.page.locator("article").nth(at)
            article.focus()
            owner.page.keyboard.press(grade)
            expect(article.locator("[aria-pressed=true]")).to_have_text(grade)
    owner.open_view("tune?q=vineyard&recipe=rrf")
    expect(owner.page.locator(".ndcg")).to_contain_text("queries")
    owner.page.get_by_label("least relevance").press("End")
    expect(owner.page.get_by_label("Queries that change")).to_contain_text("barrel of the cellar")
    owner.page.get_by_label("Compare with").select_option("vector")
    measured = owner.call("POST", "/v1/trial/judged", {"recipe": "rrf", "compare_with": "vector"})
    expect(owner.page.locator(".ndcg")).to_have_text(
        re.compile(rf"^nDCG@10 rrf {measured['before']:.3g} → vector {measured['after']:.3g} over")
    )
    downloads: list[Download] = []

    def note_download(one: Download) -> None:
        downloads.append(one)

    owner.page.on("download", note_download)
    with owner.page.expect_download(lambda one: one.suggested_filename == "qrels.tsv"):
        owner.page.get_by_role("button", name="Download qrels").click()
    for one in downloads:
        one.save_as(tmp_path / one.suggested_filename)
    texts = [json.loads(line)["text"] for line in (tmp_path / "queries.jsonl").read_text().splitlines()]
    assert {"vineyard harvest", "barrel of the cellar"} <= set(texts)
    listed = owner.call("GET", "/v1/records?limit=1000")["records"]
    corpus = [{"_id": one["id"], "title": one["title"], "text": one["text"]} for one in listed]
    (tmp_path / "corpus.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in corpus))
    done = subprocess.run(
        [PROGRAM, "eval", str(tmp_path), "-r", "keyword", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "nDCG@10" in done.stdout


# Memory and facts


def test_a_turn_is_corrected_and_forgotten_by_keyboard(owner: Visit) -> None:
    turns = [{"session": "edit me", "speaker": "Anil", "text": text} for text in ("It rains", "It snows")]
    owner.call("POST", "/v1/turns", turns)
    owner.open_view("memory?session=edit+me")
    turn = owner.page.locator(".turn", has_text="It rains")
    turn.get_by_role("button", name="Correct").press("Enter")
    owner.page.keyboard.press("Control+a")
    owner.page.keyboard.type("It pours")
    owner.page.keyboard.press("Tab")
    owner.page.keyboard.press("Enter")
    expect(owner.page.locator(".turn", has_text="It pours")).to_be_visible()
    expect(turn).to_have_count(0)
    snow = owner.page.locator(".turn", has_text="It snows")
    snow.get_by_role("button", name="Forget").press("Enter")
    expect(owner.page.locator("dialog")).to_contain_text("It snows")
    owner.page.keyboard.press("Escape")
    expect(snow).to_be_visible()
    snow.get_by_role("button", name="Forget").press("Enter")
    owner.page.get_by_role("button", name="Yes, forget").press("Enter")
    expect(snow).to_have_count(0)
    owner.page.get_by_role("button", name="Forget the session edit me").click()
    owner.page.get_by_role("button", name="Yes, forget").click()
    expect(owner.page.locator(".toast")).to_contain_text("Forgot 1 record")
    found = owner.call("POST", "/v1/search", {"query": "It pours", "limit": 50})
    assert "pours" not in json.dumps(found["hits"])


def test_facts_around_an_answer_as_of_a_day(owner: Visit) -> None:
    first = {"id": "home-1", "subject": "Meera", "relation": "lives in", "object": "Panaji"}
    owner.call("POST", "/v1/facts", first | {"timestamp": "2026-01-10T00:00:00Z"})
    second = {"subject": "Meera", "relation": "lives in", "object": "Kollam", "supersedes": ["home-1"]}
    owner.call("POST", "/v1/facts", second | {"timestamp": "2026-06-10T00:00:00Z"})
    owner.call("POST", "/v1/facts", {"subject": "Kollam", "relation": "lies in", "object": "Kerala"})
    owner.open_view("search?q=where+does+Meera+live&tab=facts")
    facts = owner.page.get_by_role("tabpanel", name="Facts around")
    ended = facts.locator(".fact.ended", has_text="Panaji")
    expect(ended).to_contain_text("from 2026-01-10 until 2026-06-10")
    expect(ended).to_contain_text("superseded by “Meera lives in Kollam”")
    expect(facts.locator(".fact.valid", has_text="Kollam").last).to_contain_text(
        "supersedes “Meera lives in Panaji”"
    )
    expect(facts.locator(".fact.valid", has_text="Kerala")).to_be_visible()
    expect(facts.get_by_role("img")).to_have_accessible_name(re.compile("facts between them"))
    address = re.sub(r"$", "&as_of=2026-03-01", owner.page.url)
    owner.page.goto(address)
    owner.page.reload()
    expect(facts.locator(".fact.valid", has_text="Panaji")).to_be_visible()
    expect(facts.locator(".fact", has_text="Meera lives in Kollam")).to_have_count(0)
    facts.get_by_role("button", name="Panaji").first.press("Enter")
    expect(owner.page).to_have_url(re.compile("entity=Panaji"))


@pytest.mark.parametrize("time_zone", ["UTC", "Asia/Kolkata", "America/Los_Angeles", "Pacific/Auckland"])
def test_a_day_counts_to_its_end_where_the_person_is(visits: Visits, time_zone: str) -> None:
    visit = visits("owner", time_zone)
    # Ten in the morning of a day on which clocks change in Los Angeles, and of one without.
    days = ["2026-03-08", "2026-03-19"]
    times = visit.page.evaluate(
        "(days) => days.map((day) => new Date(`${day}T10:00:00`).toISOString())", days
    )
    who = f"Asha of {time_zone}"
    first = {"id": f"pet of {who}", "subject": who, "relation": "feeds", "object": "a parrot"}
    visit.call("POST", "/v1/facts", first | {"timestamp": times[0]})
    second = {"subject": who, "relation": "feeds", "object": "a kitten", "supersedes": [first["id"]]}
    visit.call("POST", "/v1/facts", second | {"timestamp": times[1]})
    facts = visit.page.locator(".fact", has_text=who)
    parrot = facts.filter(has_text="a parrot")
    kitten = visit.page.locator(".fact.valid", has_text=f"{who}feedsa kitten")
    for day, parrots, kittens in (
        ("2026-03-07", 0, 0),
        (days[0], 1, 0),
        ("2026-03-18", 1, 0),
        (days[1], 1, 1),
    ):
        visit.open_view(f"memory?entity={quote(who)}&as_of={day}")
        slider = visit.page.get_by_role("slider", name=re.compile("^As of"))
        expect(slider).to_have_attribute("aria-valuetext", day)
        expect(parrot).to_have_count(parrots + kittens)
        expect(kitten).to_have_count(kittens)
        expect(visit.page).to_have_url(re.compile(f"as_of={day}"))
    expect(parrot.first).to_contain_text("from 2026-03-08 until 2026-03-19")
    slider.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", "2026-03-18")
    expect(kitten).to_have_count(0)
    slider.press("End")
    expect(visit.page).not_to_have_url(re.compile("as_of"))


@pytest.mark.parametrize("time_zone", ["Asia/Kolkata", "America/Los_Angeles"])
def test_a_date_without_a_time_of_day_is_that_day_everywhere(visits: Visits, time_zone: str) -> None:
    visit = visits("owner", time_zone)
    who = f"Ravi of {time_zone}"
    visit.call(
        "POST",
        "/v1/facts",
        {"subject": who, "relation": "sold", "object": "a boat", "timestamp": "2026-05-04"},
    )
    visit.call(
        "POST", "/v1/turns", {"session": who, "speaker": "Ravi", "text": "sold", "timestamp": "2026-05-04"}
    )
    visit.open_view(f"memory?entity={quote(who)}&as_of=2026-05-04")
    expect(visit.page.locator(".fact", has_text=who)).to_contain_text("from 2026-05-04")
    visit.open_view(f"memory?session={quote(who)}")
    expect(visit.page.locator(".day")).to_have_text("2026-05-04")


# Copied searches


def test_copied_searches_really_run(owner: Visit, server: RunningServer, web_sample: SampleDatabase) -> None:
    owner.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    owner.open_view("search?q=it%27s+the+%22harvest%22&recipe=keyword&in=artifacts&in=history&limit=3")
    owner.page.get_by_role("combobox", name="Filter").fill('kind = "report" or exists speaker')
    owner.page.keyboard.press("Escape")
    expect(owner.page).to_have_url(re.compile("filter="))
    expect(owner.page.locator("article h2").first).to_have_text("Harvest report")
    copied = {}
    for name in ("prompt block", "JSON", "curl", "Python", "MCP call", "link"):
        owner.page.get_by_text("Copy as").click()
        owner.page.get_by_role("button", name=name, exact=True).click()
        expect(owner.page.locator(".toast")).to_have_text(f"Copied {name}.")
        copied[name] = owner.page.evaluate("navigator.clipboard.readText()")
    assert "sennit_" not in "".join(copied.values())
    ids = [hit["id"] for hit in json.loads(copied["JSON"])["hits"]]
    assert "vineyard gave more grapes" in copied["prompt block"]
    folder = web_sample.path.parent
    shell = {**os.environ, "SENNIT_TOKEN": web_sample.tokens["owner"]}
    answer = subprocess.run(["sh", "-c", copied["curl"]], capture_output=True, text=True, env=shell)
    assert [hit["id"] for hit in json.loads(answer.stdout)["hits"]] == ids
    here = {**os.environ, "SENNIT_DB": str(web_sample.path)}
    script = subprocess.run(
        [Path(PROGRAM).with_name("python"), "-c", copied["Python"].replace("sennit.open()", f"sennit.open({str(web_sample.path)!r})")],
        capture_output=True,
        text=True,
        cwd=folder,
    )  # fmt: skip
    assert script.returncode == 0, script.stderr
    assert "the vineyard gave more grapes" in script.stdout
    hello = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    lines = [hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, json.loads(copied["MCP call"])]
    with subprocess.Popen(
        [PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=here
    ) as tool:
        assert tool.stdin is not None
        assert tool.stdout is not None
        for line in lines:
            tool.stdin.write(f"{json.dumps(line)}\n")
        tool.stdin.flush()
        while (reply := json.loads(tool.stdout.readline())).get("id") != 1:
            pass
        tool.stdin.close()
        tool.terminate()
    assert "result" in reply, reply
    assert not reply["result"].get("isError"), reply
    assert "Harvest report" in json.dumps(reply)
    owner.go("docs")
    owner.page.goto(copied["link"])
    expect(owner.page.locator("article h2").first).to_have_text("Harvest report")
    expect(owner.page.get_by_role("combobox", name="Filter")).to_have_value(
        'kind = "report" or exists speaker'
    )
    expect(owner.page.locator("#collections-value")).to_have_text("artifacts, history")
    expect(owner.page.get_by_role("spinbutton", name="Results")).to_have_value("3")
