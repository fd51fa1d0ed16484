"""The keyword index with the analysis of the server: its analyser finds the words, and its own BM25 ranks them.

What the server has not applied yet is scored here by the same formula. The server's term vectors of documents that it does
not hold give their words by its analysis, with its statistics.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from sennit.errors import SourceError
from sennit.filters import EVERYTHING, Filter
from sennit.stores.contract import BM25, Document, Floats, KeywordQuery, ScoredKeys
from sennit.stores.document_terms import document_terms
from sennit.stores.servers.opensearch.client import Json
from sennit.stores.servers.opensearch.filters import NONE, to_query
from sennit.stores.servers.opensearch.indexes import HITS, KEY, LAYOUT, MAX_WINDOW, Cluster, ClusterIndex
from sennit.stores.servers.opensearch.terms import EMPTY, Statistics, bm25_scores, count_documents

FIELDS: Final = ("text", "title")

MAX_WORDS: Final = 256
"""Words of a query that are searched; the server refuses more than 1,024 clauses."""

MAX_BUFFERED_DOCUMENTS: Final = 4096
"""Documents of the buffer whose words are remembered between searches."""

VECTORS_PER_REQUEST: Final = 200
"""Documents whose words one request asks for."""


class _Words(NamedTuple):
    """The words of one field of a text, by the analysis of the server."""

    counts: Mapping[str, int]
    holding: Mapping[str, int]
    """How many documents of the index have each word."""
    documents: int
    average: float
    """The average number of words of a document of the index."""


_NO_WORDS: Final = _Words({}, {}, 0, 0.0)


class TextIndex(ClusterIndex):
    """Texts and titles, analysed by the server."""

    kind = "keyword"

    def __init__(self, server: Cluster) -> None:
        self._analyzer = server.settings.analyzer
        version = hashlib.blake2b(f"{LAYOUT} text {self._analyzer}".encode(), digest_size=4).hexdigest()
        super().__init__(server, server.index_name(f"keyword-{version}"))
        self._buffer_lock = threading.Lock()
        self._buffer: dict[int, tuple[_Words, ...]] = {}

    def properties(self) -> Json:
        field = {"type": "text", "analyzer": self._analyzer, "similarity": "contract"}
        return dict.fromkeys(FIELDS, field)

    def document(self, document: Document) -> Json:
        return {"text": document.record.text, "title": document.record.title}

    def searches(self, query: KeywordQuery, limit: int, where: Filter) -> list[Json]:
        """The body of one search."""
        words = _words_of(query)
        weighted = [
            f"{name}^{weight:g}"
            for name, weight in zip(FIELDS, query.bm25.field_weights, strict=True)
            if weight
        ]
        # Most fields: the scores of text and title are added.
        matching: Json = {"multi_match": {"query": words, "fields": weighted, "type": "most_fields"}}
        asked: Json = {"must": [matching]}
        if where != EVERYTHING:
            asked["filter"] = [to_query(where)]
        found = {"bool": asked} if words and weighted else NONE
        return [{**HITS, "size": min(limit, MAX_WINDOW), "docvalue_fields": [KEY], "query": found}]

    def read(self, query: KeywordQuery, limit: int, answers: Sequence[Json]) -> ScoredKeys:  # noqa: ARG002
        """The best documents from the answer to `searches`."""
        hits = answers[0]["hits"]["hits"][:limit]
        keys = np.array([hit["fields"][KEY][0] for hit in hits], np.int64)
        return ScoredKeys(keys, np.array([hit["_score"] for hit in hits], np.float64))

    def score(self, query: KeywordQuery, documents: Sequence[Document]) -> Floats:
        """The server's formula for what it does not have; by our own analysis while it does not answer."""
        words = _words_of(query)
        if not words:
            return np.full(len(documents), np.nan)
        try:
            asked = self._analyse([{"text": words, "title": words}])[0]
            counted = self._count(documents)
        except SourceError:
            return _score_by_terms(query, documents)
        return np.array([_score(query, asked, one) for one in counted], np.float64)

    def _count(self, documents: Sequence[Document]) -> list[tuple[_Words, ...]]:
        with self._buffer_lock:
            known = {one.key: self._buffer[one.key] for one in documents if one.key in self._buffer}
        new = [one for one in documents if one.key not in known]
        for start in range(0, len(new), VECTORS_PER_REQUEST):
            batch = new[start : start + VECTORS_PER_REQUEST]
            known |= zip(
                [one.key for one in batch], self._analyse([self.document(one) for one in batch]), strict=True
            )
        with self._buffer_lock:
            self._buffer = dict([*self._buffer.items(), *known.items()][-MAX_BUFFERED_DOCUMENTS:])
        return [known[one.key] for one in documents]

    def _analyse(self, texts: Sequence[Json]) -> list[tuple[_Words, ...]]:
        options = {"term_statistics": True, "positions": False, "offsets": False, "payloads": False}
        docs = [{"_index": self.name, "doc": text, "fields": list(FIELDS), **options} for text in texts]
        found = self._client.request("POST", "/_mtermvectors", {"docs": docs})["docs"]
        if any("error" in one for one in found):
            raise SourceError(f"{self.name}: the server does not analyse texts")
        return [tuple(_read_words(one.get("term_vectors", {}).get(name)) for name in FIELDS) for one in found]


def _words_of(query: KeywordQuery) -> str:
    return " ".join(query.text.split()[:MAX_WORDS])


def _read_words(found: Json | None) -> _Words:
    if not found:
        return _NO_WORDS
    statistics: Json = found.get("field_statistics", {})
    documents = max(0, statistics.get("doc_count", 0))
    total = max(0, statistics.get("sum_ttf", 0))
    terms: Mapping[str, Any] = found["terms"]
    return _Words(
        {word: one["term_freq"] for word, one in terms.items()},
        {word: one.get("doc_freq", 0) for word, one in terms.items()},
        documents,
        total / documents if documents else 0.0,
    )


def _score(query: KeywordQuery, asked: Sequence[_Words], found: Sequence[_Words]) -> float:
    """BM25 as Lucene computes it, added up over the fields; nan without a common word."""
    k1, b = BM25().k1, BM25().b
    score, matches = 0.0, False
    for weight, words, field in zip(query.bm25.field_weights, asked, found, strict=True):
        length = sum(field.counts.values())
        norm = k1 * (1 - b + b * length / (words.average or length or 1.0))
        for word, times in words.counts.items():
            count = field.counts.get(word, 0)
            if count and weight:
                matches = True
                holding = min(words.holding[word], words.documents)
                idf = math.log(1 + (words.documents - holding + 0.5) / (holding + 0.5))
                score += weight * times * idf * count / (count + norm)
    return score if matches else math.nan


def _score_by_terms(query: KeywordQuery, documents: Sequence[Document]) -> Floats:
    """The formula of the ranking contract among the documents of the buffer, by our own analysis."""
    counts = count_documents(
        [document_terms(document.record) for document in documents], [term for term, _ in query.terms]
    )
    return bm25_scores(query, counts, EMPTY if query.buffer is None else Statistics(*query.buffer))
