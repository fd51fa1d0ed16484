"""The recipe `docs` on Postgres alone: its figures, and the server killed in the middle."""

from __future__ import annotations

from typing import Any

import pytest
from scripts.servers.postgres import PostgresServer

from journeys.conftest import Service, User, wait_until

pytestmark = pytest.mark.servers

LONG_EXAMPLE = "run_worker(slots=4)\n" * 40
PAGES = {
    "docs/retries.md": (
        "# Retries\n\n## Summary\n\nA failed job is tried again after a pause that doubles.\n\n"
        "## Examples\n\n```python\n@app.task(retries=3)\n```\n\n"
        "## Backoff\n\nThe pause doubles with each attempt up to an hour.\n\n"
        "## Dead letters\n\nA job that failed for good is kept in the dead letter table.\n"
    ),
    "docs/workers.md": (
        "# Workers\n\n## Overview\n\nA worker runs jobs in slots, one job in each slot.\n\n"
        f"## Examples\n\n```python\n{LONG_EXAMPLE}```\n\n"
        "## Slots\n\nSlots are processes, so that a crash takes one job only.\n"
    ),
    "concepts/leases.md": (
        "# Leases\n\n## Overview\n\nA lease is a loan of a job to a worker and ends by itself.\n\n"
        "## Length\n\nThe lease is thirty seconds and is renewed every ten.\n"
    ),
}
QUESTION = "where is a job kept that failed for good?"


def check_figures(service: Service) -> None:
    """The numbers of section 1 of the specification."""
    answer = service.search(QUESTION, recipe="docs", limit=3, explain=True)
    assert answer["degraded"] == []
    assert answer["hits"][0]["title"].endswith("Dead letters")
    shares: dict[str, list[float]] = {"keyword": [], "vector": []}
    for hit in answer["hits"]:
        scores: list[dict[str, Any]] = hit["explanation"]["sources"]
        assert hit["score"] == pytest.approx(sum(one["share"] for one in scores), abs=1e-5)
        for one in scores:
            shares[one["source"]].append(one["share"])
            if one["score"] is not None and one["source"] == "vector":
                assert one["share"] == pytest.approx(0.7 * one["score"], abs=1e-4)
    assert max(shares["keyword"]) == pytest.approx(0.3), "keyword scores are brought to 0..1"
    assert {one["source"]: one["candidates"] for one in answer["trace"]["sources"]} == {
        "keyword": 3 + 5,
        "vector": 3 + 5,
    }
    pages: list[dict[str, Any]] = answer["pages"]
    assert pages[0]["name"] == "Retries"
    for page in pages:
        kinds = [part["kind"] for part in page["chunks"]]
        assert kinds[0] == "PAGE_SUMMARY"
        assert "PAGE_EXAMPLES" not in kinds[2:]
        assert ("PAGE_EXAMPLES" in kinds) == (page["name"] == "Retries"), "only examples under 500 characters"


def test_docs_on_postgres_alone_survives_a_crash_of_the_server(
    user: User, dsn: str, postgres: PostgresServer
) -> None:
    user.target = dsn
    user.configure(
        """
        [roles]
        records = "postgres"
        keyword = "postgres"
        vector = "postgres"
        """
    )
    for name, text in PAGES.items():
        (user.folder / name).parent.mkdir(exist_ok=True)
        (user.folder / name).write_text(text)
    user.run("index", "docs", "concepts")
    user.run("migrate")
    assert all(finding["level"] != "problem" for finding in user.json("doctor")["findings"])
    assert not any(user.json("status")["behind"].values())
    shown = user.run("search", QUESTION, "--recipe", "docs")
    assert "Dead letters" in shown
    with user.serving() as service:
        check_figures(service)
        before = service.ids()
        postgres.kill()
        refused = service.client.post("/v1/search", json={"query": QUESTION, "recipe": "docs"})
        assert refused.status_code == 503, refused.text
        assert "cannot be used right now" in refused.json()["error"]["message"]
        failed = user.try_to("search", QUESTION, "--recipe", "docs")
        assert (failed.returncode, failed.stdout) == (4, "")
        assert "cannot be reached" in failed.stderr
        postgres.start()
        wait_until(
            lambda: service.client.post("/v1/search", json={"query": QUESTION}).status_code == 200,
            "Postgres to answer again",
        )
        assert service.ids() == before
        check_figures(service)
        (user.folder / "docs/retries.md").write_text(PAGES["docs/retries.md"].replace("letter", "parcel"))
        user.run("index", "docs")
        wait_until(service.is_complete, "the indexes to get what was written last")
        found = service.search("the dead parcel table", recipe="docs", limit=3)
        assert found["hits"][0]["title"].endswith("Dead parcels")
        assert not any("letter" in hit["text"] for hit in found["hits"])
