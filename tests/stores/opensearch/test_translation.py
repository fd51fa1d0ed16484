"""What needs no server: tokens of values, counts of terms, and hosts that do not answer."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts.servers.common import free_port

import sennit
from sennit.analysis import query_terms
from sennit.errors import SettingsError, SourceError
from sennit.filters import EVERYTHING, And, Equal, Filter, Like, Not, Or, parse_filter
from sennit.settings.servers import OpenSearchSettings
from sennit.stores.contract import BM25, KeywordQuery
from sennit.stores.document_terms import document_terms
from sennit.stores.servers.opensearch import OpenSearchServer
from sennit.stores.servers.opensearch.client import ClusterClient
from sennit.stores.servers.opensearch.filters import ALL, NONE, _sortable, field_values, to_query
from sennit.stores.servers.opensearch.terms import Counts, count_documents, pack, unpack

numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
)


@given(numbers, numbers)
def test_tokens_of_numbers_have_the_order_of_the_numbers(one: float, other: float) -> None:
    assert (_sortable(one) < _sortable(other)) == (one < other)
    assert (_sortable(one) == _sortable(other)) == (one == other)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4), st.text(max_size=20))
def test_counts_of_terms_survive_the_server(texts: list[str], query: str) -> None:
    terms = [term.hash for term in query_terms(" ".join([*texts, query]))]
    counted = [
        document_terms(sennit.Record(id=str(n), text=text or "x", title=text)) for n, text in enumerate(texts)
    ]
    here = count_documents(counted, terms)
    # The server leaves the padding out.
    there: Counts = unpack([pack(one).rstrip("=") for one in counted], terms)
    assert np.array_equal(here.frequencies, there.frequencies)
    assert np.array_equal(here.lengths, there.lengths)


def test_a_field_with_a_number_in_one_record_and_text_in_another_is_one_field() -> None:
    documents = [
        field_values(sennit.Record(id="a", text="x", metadata={"year": year}))
        for year in (1999, "1999", True)
    ]
    assert len({frozenset(one["values"]) for one in documents}) == 3
    assert all(one.keys() == {"values"} for one in documents)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (EVERYTHING, ALL),
        (Not(EVERYTHING), NONE),
        (Or(()), NONE),
        (And((Or(()), Equal("kind", "a"))), NONE),
        (Not(Like("path", "*A*", ignore_case=True)), ALL),
    ],
)
def test_what_the_server_cannot_tell_lets_more_through_never_less(where: Filter, expected: object) -> None:
    assert to_query(where) == expected


def test_a_filter_that_is_nested_too_deeply_for_the_server_is_cut() -> None:
    where: Filter = Equal("kind", "a")
    for number in range(30):
        where = Not(And((Equal("title", str(number)), where)))
    assert str(to_query(where)).count("bool") < 40


def test_no_more_clauses_are_sent_than_the_server_takes() -> None:
    where = And(tuple(parse_filter(f'tags = "t{n}"') for n in range(2000)))
    assert str(to_query(where)).count("term") <= 600


class Node(BaseHTTPRequestHandler):
    """Answers every request with its own port."""

    def do_GET(self) -> None:
        body = f'{{"port": {self.connection.getsockname()[1]}}}'.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def node() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Node) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_another_host_answers_for_one_that_is_dead(node: int) -> None:
    hosts = tuple(f"http://127.0.0.1:{port}" for port in (free_port(), node, free_port()))
    client = ClusterClient(OpenSearchSettings(hosts=hosts))
    assert [client.get("/")["port"] for _ in range(6)] == [node] * 6
    client.close()


def test_no_host_at_all_is_an_error_that_names_one() -> None:
    port = free_port()
    client = ClusterClient(OpenSearchSettings(hosts=(f"http://127.0.0.1:{port}",)))
    with pytest.raises(SourceError, match=f"127.0.0.1:{port} does not answer"):
        client.get("/")
    client.close()


@pytest.mark.parametrize("hosts", [("http://me:hunter2@127.0.0.1:9200",), (), ("127.0.0.1:9200",)])
def test_hosts_are_addresses_without_a_password(hosts: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError, match="without user, password") as raised:
        OpenSearchSettings(hosts=hosts)
    assert "hunter2" not in str(raised.value)


def test_a_missing_password_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_USER", "me")
    monkeypatch.delenv("OS_PASSWORD", raising=False)
    settings = OpenSearchSettings(
        hosts=("http://127.0.0.1:1",), username_env="OS_USER", password_env="OS_PASSWORD"
    )
    with pytest.raises(SourceError, match="OS_PASSWORD"):
        ClusterClient(settings).get("/")


def test_a_server_that_is_down_is_found_by_the_check() -> None:
    server = OpenSearchServer(OpenSearchSettings(hosts=(f"http://127.0.0.1:{free_port()}",)), "db")
    (finding,) = server.check()
    assert finding.level == "problem"
    assert "opensearch.hosts" in finding.message
    server.close()


def test_a_query_without_terms_finds_nothing() -> None:
    server = OpenSearchServer(OpenSearchSettings(), "db")
    index = server.keyword().find(None)
    assert index is not None
    body = index.searches(KeywordQuery([], BM25()), 10, EVERYTHING)[0]  # type: ignore[attr-defined]
    assert body["query"] == NONE
    server.close()
