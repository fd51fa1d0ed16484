"""The same binding on a real Elasticsearch: the conformance kit, and what is said where a feature is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scripts.servers.opensearch import OpenSearchCluster

import sennit
from sennit.errors import SourceError
from sennit.filters import EVERYTHING
from sennit.stores.servers.opensearch.dialect import MAX_NEIGHBOURS, ElasticsearchDialect
from sennit.testing import KeywordConformance, VectorConformance
from sennit.testing.indexes import Outage
from sennit.testing.records import NewTarget

from ..naughty_kit import assert_survives
from .conftest import Targets
from .test_conformance import kill_all

pytestmark = pytest.mark.servers


class _OnElasticsearch:
    @pytest.fixture
    def new_target(self, elastic_targets: Targets) -> NewTarget:
        return elastic_targets.new

    @pytest.fixture
    def outage(self, elasticsearch: OpenSearchCluster) -> Outage:
        return kill_all(elasticsearch)


class TestKeywordOnElasticsearch(_OnElasticsearch, KeywordConformance):
    """The keyword role."""


class TestVectorOnElasticsearch(_OnElasticsearch, VectorConformance):
    """The vector role."""

    many = MAX_NEIGHBOURS // 2
    """More neighbours than MAX_NEIGHBOURS need scripts, whose module is in no package."""


class TestKeywordWithTheAnalysisOfElasticsearch(_OnElasticsearch, KeywordConformance):
    """The keyword role with the server's own words and scores."""

    @pytest.fixture
    def new_target(self, elastic_targets: Targets) -> NewTarget:
        elastic_targets.overrides = {"opensearch.analysis": "server"}
        return elastic_targets.new


@pytest.fixture
def db(elastic_targets: Targets, tmp_path: Path) -> sennit.Database:
    return sennit.open(tmp_path / "notes", settings=elastic_targets.settings())


def test_the_server_is_known_by_its_headers_and_its_nodes(db: sennit.Database) -> None:
    with db:
        server = db.backend.servers["opensearch"]
        assert isinstance(server.dialect.get(), ElasticsearchDialect)  # type: ignore[attr-defined]
        (version, health, *_) = server.check()
        assert (version.level, version.message) == ("ok", "Elasticsearch 9.2.0 answers")
        assert health.level == "ok"


def test_every_naughty_string_in_every_field_filter_and_identifier(
    db: sennit.Database, naughty_strings: list[str]
) -> None:
    with db:
        assert_survives(db, naughty_strings, "keyword", "vector")


def test_a_search_that_needs_a_missing_module_says_which(db: sennit.Database) -> None:
    with db:
        db.add([sennit.Record(id="a", text="river")])
        db.admin.flush()
        with db.store.snapshot() as snapshot:
            query = np.asarray(db.embeddings.embed_query(snapshot.model, "river"))
            with pytest.raises(SourceError, match="painless"):
                db.backend.vector.search(snapshot, query, MAX_NEIGHBOURS + 1, EVERYTHING)
