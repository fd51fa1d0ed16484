"""What Elasticsearch is sent where OpenSearch writes it differently, and how the two are told apart."""

from __future__ import annotations

import pytest

from sennit.stores.servers.opensearch.dialect import ElasticsearchDialect, OpenSearchDialect, dialect_of

ELASTICSEARCH = {
    "version": {"number": "9.2.0", "build_flavor": "default"},
    "tagline": "You Know, for Search",
}
OPENSEARCH = {
    "version": {"number": "3.6.0", "distribution": "opensearch"},
    "tagline": "The OpenSearch Project: https://opensearch.org/",
}


def test_a_server_is_known_by_what_it_says_of_itself() -> None:
    assert isinstance(dialect_of(ELASTICSEARCH), ElasticsearchDialect)
    assert isinstance(dialect_of(OPENSEARCH), OpenSearchDialect)
    assert dialect_of({"version": {"number": "1.0"}}) is None
    assert dialect_of({}) is None


def test_elasticsearch_gets_dense_vectors_of_plain_floats_and_its_own_knn_query() -> None:
    dialect = ElasticsearchDialect()
    assert dialect.index_settings() == {}
    field = dialect.vector_property(256)
    assert (field["type"], field["dims"]) == ("dense_vector", 256)
    assert field["index_options"] == {"type": "hnsw"}, "the default would round the vectors"
    where = {"term": {"values": "x"}}
    query = dialect.nearest("vector", [1.0, 0.0], 20_000, where)
    assert query == {
        "knn": {
            "field": "vector",
            "query_vector": [1.0, 0.0],
            "k": 10_000,
            "num_candidates": 10_000,
            "filter": where,
        }
    }


@pytest.mark.parametrize(("version", "score"), [((2, 18), 1.5), ((2, 19), 0.75), ((3, 6), 0.75)])
def test_a_cosine_is_read_by_the_formula_of_the_version(version: tuple[int, int], score: float) -> None:
    assert OpenSearchDialect(version).cosine_of(score) == pytest.approx(0.5)
    assert ElasticsearchDialect().cosine_of(1.5) == pytest.approx(0.5)


def test_no_value_is_part_of_a_script() -> None:
    hostile = "'); System.exit(1); ('"
    for dialect in (ElasticsearchDialect(), OpenSearchDialect()):
        for query in (dialect.by_cosine(hostile, [1.0], {}), dialect.by_inner_product(hostile, [1.0], {})):
            assert hostile not in query["script_score"]["script"]["source"]
