"""What every source works with: the search it answers, one request to it, and the protocol it implements."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import QueryTerm, is_stop_word, query_terms
from sennit.analysis.verb_forms import other_forms
from sennit.embedding.vector_ops import normalise_rows
from sennit.errors import InvalidInput
from sennit.filters import EVERYTHING, Equal, Filter, Range, matches
from sennit.graph.fact_matches import NEWS_BY_NAME, QueryInformation, question_terms
from sennit.places import FindRevision, Locate
from sennit.ranking.calibration import NO_BACKGROUND, Background
from sennit.ranking.rank_scale import RankScale
from sennit.ranking.stages import no_ranker, read_fields
from sennit.records import Json, Record
from sennit.stores.contract import (
    BM25,
    Backend,
    IndexServer,
    KeywordQuery,
    KeywordRole,
    Model,
    ScoredKeys,
    Snapshot,
    Steps,
)

if TYPE_CHECKING:
    # Not imported at runtime: a new process that searches once needs none of it.
    from sennit.periods import Period, QueryTime
    from sennit.ranking.ranker import Ranker

EmbedQuery = Callable[[Model | None, str], NDArray[np.float32]]

HINT_WEIGHT: Final = 0.3
"""The weight of all hints together in the query vector, and of each hint in keyword search; the query weighs 1."""


OUTSIDE_TOPIC_WEIGHT: Final = 0.25
"""The weight of a speaker's name or of a period as words of the query, where speaker and time count themselves."""

OTHER_FORM_WEIGHT: Final = 0.7
"""The weight of another form of an irregular verb."""

MAX_NAME_CANDIDATES: Final = 64
"""Words of a query that are looked up as names of speakers."""


def document_share(index: KeywordRole, snapshot: Snapshot, word: str) -> float:
    """Return the share of records that contain a word, judged by its rarest term."""
    return min((index.document_share(snapshot, term.hash) for term in query_terms(word)), default=0.0)


def period_filter(period: Period) -> Filter:
    """Return the filter for records with a time in a period."""
    start, end = (None if one is None else one.timestamp() for one in (period.start, period.end))
    return Range("timestamp", start, end, include_high=False)


_ENGLISH_QUESTION: Final = re.compile(r"\b(?:what|who|whose|when|where|which|how|why|did|does)\b", re.I)
_WORDS_OF_TALK: Final = (
    "about any anything discuss happened heard hear mention news remember say said talk tell told"
)
"""Words with which a question asks for what was said; the answer has none of them."""

_INNER_CAPITAL: Final = re.compile(r"(?<=[\w,] )(?!I\b)[A-ZÀ-Þ][\w-]*")


@dataclass(frozen=True, slots=True)
class QueryRewrite:
    """A text to embed in place of the query, and hints that add a little to it.

    Keyword search always gets the original query.
    """

    vector_text: str | None = None
    hints: tuple[str, ...] = ()
    hint_weight: float = HINT_WEIGHT
    transform: Mapping[str, Json] = field(default_factory=dict)
    """How `vector_text` was made, for the trace: original, used, by, milliseconds and perhaps error."""

    def to_dict(self) -> dict[str, Json]:
        """Return what the trace shows; empty when the query was not changed."""
        out = dict(self.transform)
        if self.vector_text is not None:
            out.setdefault("used", self.vector_text)
        if self.hints:
            out |= {"hints": list(self.hints), "hint_weight": self.hint_weight}
        return out


NO_REWRITE: Final = QueryRewrite()


class SearchContext:
    """One search: its query, its snapshot, and what the sources share.

    Terms, vector and records are computed once, on first use. Sources add match reasons, warnings and ephemeral
    hits, which are passages that are not records of the database.
    """

    def __init__(
        self,
        text: str,
        snapshot: Snapshot,
        embed: EmbedQuery,
        index: KeywordRole,
        *,
        audience: Filter = EVERYTHING,
        keywords: Sequence[str] | None = None,
        now: datetime | None = None,
        rewrite: QueryRewrite = NO_REWRITE,
        vector: Sequence[float] | None = None,
        locate: Locate = attrgetter("path"),
        find_ranker: Callable[[str], Ranker] = no_ranker,
        find_revision: FindRevision = lambda _: "",
    ) -> None:
        """`vector` is that of the query, if it was given and is not to be computed."""
        self.text = text
        self.locate = locate
        """Returns the path of a record as it is shown."""
        self.find_ranker = find_ranker
        """Returns the learned ranker of a name for the caller."""
        self.find_revision = find_revision
        """Returns the revision of the folder of a record."""
        self._given_vector = None if vector is None else np.array(vector, np.float32)
        self.rewrite = rewrite
        self.snapshot = snapshot
        self.now = datetime.now(UTC) if now is None else now
        self.audience = audience
        """What the caller may see. It also applies to passages that are not in the database."""
        self.match_reasons: dict[tuple[str, int], str] = {}
        """Why a source found a record, by list name and key."""
        self.fact_matches: dict[int, float] = {}
        """How well each fact that the graph source found matches the query, from 0 to 1, by key."""
        self.warnings: list[tuple[str, str]] = []
        self._given_keywords = tuple(word for word in keywords or () if word.strip())
        self._embed = embed
        self._index = index
        self._ephemeral: dict[int, Record] = {}
        self._ephemeral_keys: dict[str, int] = {}
        self._lock = threading.Lock()
        self.scales: dict[str, RankScale] = {}
        """The scale of each list whose scores count only by rank, by the name of the list."""
        self._records: dict[int, Record] = {}

    @cached_property
    def time(self) -> QueryTime:
        """What the query says about time. The pipeline takes a period away in which nothing was said."""
        from sennit.periods import read_time

        return read_time(self.text, self.now)

    @cached_property
    def terms(self) -> list[QueryTerm]:
        return query_terms(self.text)

    @cached_property
    def information(self) -> QueryInformation:
        """How much each term of the query says to facts; words about time say nothing to them."""
        time = self.time
        words = self.text.replace(time.recent, " ") if time.recent else self.text
        return QueryInformation.of(
            question_terms(words),
            partial(self._index.document_share, self.snapshot),
            self.snapshot.count(),
            NEWS_BY_NAME if time.recent else 1.0,
        )

    @cached_property
    def weighted_terms(self) -> list[tuple[int, float]]:
        """Term hashes, each weighted by its count in the query; a hint has its own weight unless the query has it."""
        weights = {term.hash: float(term.count) for term in self.terms}
        for hint in self.rewrite.hints:
            for term in query_terms(hint):
                weights.setdefault(term.hash, self.rewrite.hint_weight)
        return list(weights.items())

    @cached_property
    def speakers(self) -> frozenset[str]:
        """The words of the query that are names of speakers."""
        words = dict.fromkeys(re.findall(r"[^\W\d_]+", self.text)[:MAX_NAME_CANDIDATES])
        names = [word for word in words if word[0].isupper() and not is_stop_word(word.casefold())]
        return frozenset(name for name in names if self.snapshot.count(Equal("metadata.speaker", name)))

    @cached_property
    def names(self) -> frozenset[str]:
        """The words of the query that are names: those of speakers, and capitalised words inside an English question."""
        if not _ENGLISH_QUESTION.search(self.text) or self.text == self.text.upper():
            return self.speakers
        inner = _INNER_CAPITAL.findall(self.text)[:MAX_NAME_CANDIDATES]
        return self.speakers | {word for word in inner if not is_stop_word(word.casefold())}

    @cached_property
    def asked_terms(self) -> list[tuple[int, float]]:
        """The weighted terms of what a question about a conversation asks for, besides names, times and words of talk.

        The names if there is nothing else: "Who is Clara?" None if it asks for whatever was said.
        """
        time = self.time
        if not time.has_topic:
            return []
        period = time.period
        terms = self.weighted_terms
        for outside in (
            f"{time.recent} {'' if period is None else period.words}",
            _WORDS_OF_TALK,
            # "When did Nadia go to Porto?" asks about Porto; "How tall is Bruno?" about his height.
            " ".join(self.names if len(self.names) == 1 else self.speakers),
        ):
            known = {term.hash for term in query_terms(outside)} if outside.strip() else set()
            terms = [one for one in terms if one[0] not in known] or terms
        return terms

    @cached_property
    def topic_terms(self) -> list[tuple[int, float]]:
        """The weighted terms of a question about a conversation.

        Those of speakers' names and of the period have little weight: a turn that says a name is seldom by it, and what
        was said in March seldom says so. A verb stands for all of its forms.
        """
        period = self.time.period
        outside = " ".join((*self.speakers, "" if period is None else period.words))
        known = {term.hash for term in query_terms(outside)} if outside.strip() else set()
        weights = {
            term: weight * OUTSIDE_TOPIC_WEIGHT if term in known else weight
            for term, weight in self.weighted_terms
        }
        for term, weight in list(weights.items()):
            for form in other_forms(term):
                weights.setdefault(form, weight * OTHER_FORM_WEIGHT)
        return list(weights.items())

    @cached_property
    def vector(self) -> NDArray[np.float32]:
        """The query vector, by the model whose vectors the snapshot searches."""
        if self._given_vector is not None:
            return self._given_vector
        rewrite = self.rewrite
        vector = self._embed(self.snapshot.model, rewrite.vector_text or self.text)
        if not rewrite.hints or not rewrite.hint_weight:
            return vector
        # Hints get a vector of their own: inside the text, ten words of an editor would outweigh a query of five.
        hints = self._embed(self.snapshot.model, " ".join(rewrite.hints))
        both: NDArray[np.float32] = normalise_rows((vector + np.float32(rewrite.hint_weight) * hints)[None])[
            0
        ]
        return both

    @cached_property
    def background(self) -> Background:
        """What the cosines of this query are compared with."""
        vector, model = self.known_vector, self.snapshot.model
        if vector is None or model is None:
            return NO_BACKGROUND
        return Background.estimate(model.name, self.snapshot.cosine_sample(vector))

    @property
    def known_vector(self) -> NDArray[np.float32] | None:
        """The query vector if a source has computed it; None if none did, or if the model failed."""
        return self.__dict__.get("vector")

    @property
    def has_keywords(self) -> bool:
        """Whether the caller gave exact keywords that are not just the query again."""
        return bool(self._given_keywords) and self._given_keywords != (self.text,)

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """Exact texts to look for: those the caller gave, or else the informative words of the query."""
        if self.has_keywords:
            return self._given_keywords
        from sennit.analysis.keywords import extract_keywords

        return extract_keywords(self.text, self.document_share)

    def document_share(self, word: str) -> float:
        """Return the share of records that contain a word, judged by its rarest term."""
        return document_share(self._index, self.snapshot, word)

    def add_match_reason(self, list_name: str, key: int, reason: str) -> None:
        """Record why a source found a record; the trace shows it."""
        self.match_reasons[list_name, key] = reason

    def warn(self, list_name: str, reason: str) -> None:
        """Report that a source answered only in part."""
        self.warnings.append((list_name, reason))

    def add_ephemeral(self, record: Record) -> int:
        """Give a passage that is not in the database a key that is valid for this search; the same for the same id."""
        with self._lock:
            known = self._ephemeral_keys.get(record.full_id)
            if known is not None:
                return known
            key = self._ephemeral_keys[record.full_id] = -1 - len(self._ephemeral)
            self._ephemeral[key] = self._records[key] = record
        return key

    def matches(self, key: int, where: Filter) -> bool:
        """Return whether a record or an ephemeral passage passes a filter."""
        record = self._ephemeral.get(key)
        return self.snapshot.matches(key, where) if record is None else matches(where, record)

    def find_ephemeral(self, record_id: str) -> int | None:
        """Return the key of an ephemeral passage."""
        return next((key for key, record in self._ephemeral.items() if record.id == record_id), None)

    def ids(self, keys: NDArray[np.int64]) -> list[bytes]:
        """Return the id of each record or ephemeral passage, as UTF-8."""
        if not self._ephemeral:
            return self.snapshot.ids(keys)
        stored = self.snapshot.ids(keys)
        ephemeral = self._ephemeral
        return [
            ephemeral[key].full_id.encode() if key in ephemeral else name
            for key, name in zip(keys.tolist(), stored, strict=True)
        ]

    def columns(self, keys: NDArray[np.int64], names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return these fields of records and ephemeral passages, in the order of the keys."""
        if not self._ephemeral:
            return self.snapshot.columns(keys, names)
        stored = iter(self.snapshot.columns(keys[keys >= 0], names))
        return [
            next(stored) if key >= 0 else read_fields(self._ephemeral[key], names) for key in keys.tolist()
        ]

    def records(self, keys: Iterable[int]) -> dict[int, Record]:
        """Return records and ephemeral passages by key; a search reads each record once."""
        keys = list(keys)
        self._records |= self.snapshot.records([key for key in keys if key not in self._records])
        return {key: self._records[key] for key in keys if key in self._records}


class SourceRequest(NamedTuple):
    """One call of one source. A search makes several of them, and a frozen dataclass takes four times as long."""

    context: SearchContext
    limit: int
    """How many candidates the source may return."""
    where: Filter
    bm25: BM25
    list_name: str = ""
    """The name of the recipe's list that the answer becomes."""
    knows_speakers: bool = False
    """Whether names of speakers and periods count less as words."""
    seconds: float = 2.0
    """How long the search waits for its sources."""

    @property
    def keyword_query(self) -> KeywordQuery:
        """What a keyword index is asked."""
        context = self.context
        terms = context.topic_terms if self.knows_speakers else context.weighted_terms
        return KeywordQuery(terms, self.bm25, context.text)


@runtime_checkable
class Source(Protocol):
    """Finds records. Any thread may call it."""

    @property
    def inline(self) -> bool:
        """True if a search takes about a millisecond and cannot hang, so that it runs in the searching thread."""
        ...

    def search(self, request: SourceRequest) -> ScoredKeys:
        """Return at most `limit` records that pass the filter, best first."""
        ...

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the score of each record for the query; nan where the source has none."""
        ...


@runtime_checkable
class Prepared(Protocol):
    """A source or an index that has something to do once in a process, which does not count against a deadline."""

    def prepare(self) -> None:
        """Do it, or return at once if it is done. It waits for no server."""
        ...


@runtime_checkable
class SteppedSource(Source, Protocol):
    """A source whose index is on a server that other sources of a search may use too."""

    @property
    def server(self) -> IndexServer | None:
        """Sources with the same server are asked in one request; None for a source that must not wait for others."""
        ...

    def steps(self, request: SourceRequest) -> Steps[ScoredKeys]:
        """`search`, step by step; called only where there is a server."""
        ...


MakeSource: TypeAlias = Callable[[Backend], Source]
"""Constructs a source with the indexes of the database that is being opened."""


def make_source(name: str, given: Source | MakeSource, backend: Backend) -> Source:
    """Return a source that a user gave, or what the user's function makes of the backend."""
    source = given if isinstance(given, Source) or not callable(given) else given(backend)
    if not isinstance(source, Source):
        raise InvalidInput(
            f"The source {name!r} must have inline, search and scores, or be a function of the backend that returns "
            f"such a source; it is {type(source).__name__}"
        )
    return source
