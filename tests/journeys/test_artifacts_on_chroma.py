"""The recipe `artifacts` with its vectors on Chroma: its figures, and the server killed in the middle."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from scripts.servers.chroma import ChromaProcess

from journeys.conftest import DEADLINE_SECONDS, RankedModel, Service, User, wait_until

pytestmark = pytest.mark.servers

QUERY = "harbour lease"
TEXTS = [
    "harbour lease harbour lease",
    "harbour lease harbour lease harbour office",
    "The harbour lease of the office ends in March",
    "The harbour lease needs a signature of the landlord before the end of the month",
    "The lease of a boat, with a deposit of two rents and a long list of other conditions",
    "Parking is included",
    "The office has a view",
]
"""By keyword, the third has rank 2, counted from 0."""
BY_MEANING = [TEXTS[5], TEXTS[6], TEXTS[0], TEXTS[1], TEXTS[3], TEXTS[2], TEXTS[4]]
"""By meaning, it has rank 5."""


@pytest.fixture
def model() -> Iterator[RankedModel]:
    server = RankedModel(BY_MEANING)
    yield server
    server.close()


@pytest.fixture
def service(user: User, chroma: ChromaProcess, model: RankedModel) -> Iterator[Service]:
    user.configure(
        f"""
        [roles]
        vector = "chroma"
        [chroma]
        url = "{chroma.url}"
        timeout_seconds = {DEADLINE_SECONDS}
        [embedding]
        provider = "ollama"
        model = "ranked"
        base_url = "{model.url}"
        """
    )
    lines = [
        {
            "id": f"art_{number}#0",
            "collection": "artifact_chunks",
            "text": text,
            "metadata": {
                "artifact_id": f"art_{number}",
                "chunk_index": 0,
                "artifact_type": "email",
                "source_system": "gmail",
            },
        }
        for number, text in enumerate(TEXTS)
    ]
    user.run("import", input="".join(json.dumps(line) + "\n" for line in lines))
    user.run("migrate")
    assert any(
        finding["check"] == "chroma" and finding["level"] == "ok"
        for finding in user.json("doctor")["findings"]
    )
    with user.serving() as service:
        wait_until(service.is_complete, "Chroma to have every change")
        yield service


def check_figures(service: Service) -> None:
    """The numbers of section 2 of the specification."""
    answer = service.search(QUERY, recipe="artifacts", limit=7, explain=True)
    assert answer["degraded"] == []
    hits = {hit["text"]: hit for hit in answer["hits"]}
    third = hits[TEXTS[2]]
    ranks = sorted(one["rank"] for one in third["explanation"]["sources"] if one["rank"] is not None)
    assert ranks == [3, 6], "as people count"
    assert round(third["score"], 4) == round(1 / 62 + 1 / 65, 4) == 0.0315
    assert answer["hits"] == sorted(answer["hits"], key=lambda hit: -hit["score"])


def test_artifacts_on_chroma_survive_a_crash_of_the_server(
    user: User, service: Service, chroma: ChromaProcess
) -> None:
    check_figures(service)
    before = service.ids()

    chroma.kill()
    answer = service.search(QUERY, recipe="artifacts", limit=7)
    assert answer["hits"], "words still answer"
    assert answer["hits"][0]["score"] == pytest.approx(1 / 60), "one list is left"
    assert all("Chroma" in one["reason"] for one in answer["degraded"])
    assert answer["degraded"]
    shown = user.try_to("search", QUERY, "--recipe", "artifacts")
    assert shown.returncode == 0
    assert "did not answer: Chroma at" in shown.stderr
    called = user.try_to("tools", "call", "hybrid_search", json.dumps({"query": QUERY}))
    assert "[1] RRF score: 0.017 (from: artifact_chunks)" in called.stdout
    assert "Chroma" in called.stdout, "the text for a model says what is missing"
    service.post(
        "/v1/records",
        {
            "id": "art_late#0",
            "collection": "artifact_chunks",
            "text": "The harbour lease was signed",
            "metadata": {"artifact_id": "art_late", "chunk_index": 0},
        },
    )
    chroma.start()
    wait_until(lambda: not service.degraded(QUERY, recipe="artifacts"), "Chroma to answer again")
    wait_until(service.is_complete, "Chroma to get what was written meanwhile")
    assert service.ids() == before | {"art_late#0"}
    found = service.search("The harbour lease was signed", recipe="vector", limit=2)
    assert "art_late#0" in {hit["id"] for hit in found["hits"]}
    assert service.client.delete("/v1/records/art_late%230").status_code == 200
    wait_until(service.is_complete, "Chroma to delete it too")
    check_figures(service)
