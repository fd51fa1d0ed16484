"""The choice of a project on the page, in a real Chromium, on a service with two indexed folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import sennit
from apps.http.conftest import make_sample, run_server

pytestmark = pytest.mark.browser


def test_a_project_limits_search_prompt_and_tuning_and_is_part_of_the_address(
    browser: Browser, tmp_path: Path
) -> None:
    sample = make_sample(tmp_path)
    for name in ("shop", "bank"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "orders.py").write_text(f"def cancel_order():\n    return '{name}'\n")
    with sennit.open(sample.path) as db:
        db.index([tmp_path / "shop", tmp_path / "bank"])
    with run_server(sample) as server:
        page = browser.new_page()
        page.set_default_timeout(20_000)
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.add_init_script(f"sessionStorage.setItem('sennit.token', {sample.tokens['owner']!r})")
        page.goto(f"{server.url}/#/search?q=cancel_order")
        found = page.locator(".results article")
        expect(found.filter(has_text="bank/orders.py").first).to_be_visible()
        page.get_by_label("Project").select_option("shop")
        expect(found.filter(has_text="bank/orders.py")).to_have_count(0)
        expect(found.filter(has_text="shop/orders.py").first).to_be_visible()
        assert "project=shop" in page.url
        page.reload()
        expect(page.get_by_label("Project")).to_have_value("shop")
        expect(found.filter(has_text="shop/orders.py").first).to_be_visible()
        expect(found.filter(has_text="bank/orders.py")).to_have_count(0)
        page.goto(f"{server.url}/#/prompt?q=cancel_order&kind=plan&project=bank")
        plan = page.get_by_label("Plan", exact=True)
        expect(plan).to_contain_text("bank/orders.py")
        expect(plan).not_to_contain_text("shop/orders.py")
        page.goto(f"{server.url}/#/tune?q=cancel_order&project=shop")
        expect(page.get_by_label("Project")).to_have_value("shop")
        before = page.locator("[aria-label=Before] li")
        expect(before.filter(has_text="orders.py").first).to_be_visible()
        both = before.count()
        page.get_by_label("Project").select_option("")
        expect(before).not_to_have_count(both)
        assert problems == []
        page.close()
