"""Failed sources: the others answer, and the response reports the failure without details of the server."""

from __future__ import annotations

import threading
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sennit.apps.http.errors import redact_locations
from sennit.errors import EmbeddingError, StoreCorrupt, StoreError, StoreFull
from sennit.sources.base import SourceRequest
from sennit.stores.contract import ScoredKeys

from .conftest import Service, StartService, assert_error

NAMES = ("keyword", "vector", "graph")
SUBSETS = [subset for size in (1, 2, 3) for subset in combinations(NAMES, size)]


class Broken:
    """A source that fails with details of the server in its message."""

    inline = True

    def search(self, request: SourceRequest) -> ScoredKeys:
        raise EmbeddingError("http://10.0.0.5:11434/api did not answer; see /var/lib/sennit/models/x.onnx")

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        raise EmbeddingError("it is broken")


class Hanging(Broken):
    inline = False

    def __init__(self) -> None:
        self.released = threading.Event()

    def search(self, request: SourceRequest) -> ScoredKeys:
        self.released.wait(60)
        return ScoredKeys.empty()


class Nonsense(Broken):
    def search(self, request: SourceRequest) -> ScoredKeys:
        return ScoredKeys(np.array([10**12]), np.array([np.inf]))


@pytest.mark.parametrize("kind", [Broken, Hanging, Nonsense])
@pytest.mark.parametrize("down", SUBSETS, ids="+".join)
def test_any_subset_of_sources_may_fail(
    serve: StartService, down: tuple[str, ...], kind: type[Broken]
) -> None:
    sources = {name: kind() for name in down}
    with serve(sources=sources, search__deadline=0.2) as service:
        response = service.get("/v1/context", query="What did I tell Priya about vacation?")
        assert response.status_code == 200
        body = response.json()
        assert sorted(one["source"] for one in body["degraded"]) == sorted(down)
        assert all(one["reason"] for one in body["degraded"])
        assert bool(body["results"]) is (len(down) < 3)
        found = service.search("vacation with Priya", recipe="memory", explain=True)
        assert sorted(one["source"] for one in found["degraded"]) == sorted(down)
        assert bool(found["hits"]) is (len(down) < 3)
        block = service.get("/v1/context", query="vacation Priya", format="prompt")
        assert block.status_code == 200
        assert sorted(block.headers["x-sennit-degraded"].split(", ")) == sorted(down)
        assert bool(block.text) is (len(down) < 3)
        for source in sources.values():
            if isinstance(source, Hanging):
                source.released.set()
        figures = service.get("/metrics").text
        for name in NAMES:
            assert (f'sennit_source_failures_total{{source="{name}"}} 3.0' in figures) is (name in down)


def test_failure_reasons_do_not_reveal_paths_or_urls(serve: StartService) -> None:
    with serve(sources={"vector": Broken()}) as service:
        for response in (
            service.post("/v1/search", {"query": "vineyard", "explain": True}),
            service.get("/v1/context", query="vineyard"),
            service.get("/v1/why", query="zzzz", id="harvest"),
        ):
            assert response.status_code == 200
            assert "did not answer" in response.text
            for secret in ("10.0.0.5", "11434", "/var/lib", "x.onnx"):
                assert secret not in response.text


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("no answer within 2 s", "no answer within 2 s"),
        ("and/or 3/4, a keyword", "and/or 3/4, a keyword"),
        ("cannot open '/home/ana/my models/a.onnx'", "cannot open […]"),
        ("cannot open /home/ana/a.onnx: no", "cannot open […]: no"),
        ("https://user:pw@host:1/x?y failed", "[…] failed"),
        ("no route to 192.168.1.7:80 today", "no route to […] today"),
        ("notes.sennit/sennit.db is damaged", "the database/sennit.db is damaged"),
        ("~/models/x is missing", "[…] is missing"),
        (r"C:\models\x is missing", "[…] is missing"),
    ],
)
def test_redact_locations(reason: str, told: str) -> None:
    assert redact_locations(reason, "notes.sennit") == told


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoreFull("/srv/notes.sennit is full"), 503, "unavailable"),
        (StoreCorrupt("/srv/notes.sennit/sennit.db is damaged"), 503, "unavailable"),
        (StoreError("/srv/notes.sennit is locked"), 503, "unavailable"),
        (OSError(5, "I/O error", "/srv/notes.sennit"), 500, "internal_error"),
        (KeyError("/srv/secret"), 500, "internal_error"),
        (TimeoutError("/srv/secret"), 500, "internal_error"),
    ],
)
def test_internal_errors_do_not_reveal_details(
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    status: int,
    code: str,
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(service.db, "search", broken)
    monkeypatch.setattr(service.db, "add", broken)
    monkeypatch.setattr(service.db.store.models, "progress", broken)
    for response in (
        service.post("/v1/search", {"query": "x"}),
        service.post("/v1/records", {"id": "x", "text": "y"}),
        service.get("/readyz"),
    ):
        assert "srv" not in assert_error(response, status, code)
        assert response.headers["x-request-id"] in caplog.text
    assert "srv" in caplog.text
    assert service.get("/healthz").status_code == 200
