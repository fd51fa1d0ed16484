"""Answer a question: transform it, search, build the prompt, ask the language model, check the citations."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, TypedDict, Unpack

from sennit.analysis import content_terms, term_hash
from sennit.context.citations import CitationFilter
from sennit.context.expansion import GroupByPage
from sennit.context.extractive_answer import ExtractiveAnswer, Weight, answer_from, covers
from sennit.context.memory_answer import answer_from_memories, is_memory
from sennit.context.prompt import Prompt, build_prompt, pages_from_hits
from sennit.engine.answers import Answer, AnswerStream
from sennit.engine.query_rewriter import ConfiguredModel, QueryRewriter
from sennit.engine.search_request import FilterLike, SearchRequest, check_options
from sennit.errors import SourceError
from sennit.facts import is_fact
from sennit.filters import Filter
from sennit.llm import LanguageModel
from sennit.periods import QueryTime, read_time
from sennit.privacy import Caller
from sennit.recipes import Recipe, find_recipe
from sennit.repositories.folders import Locator
from sennit.results import Degraded, Hit, Page, SearchResult
from sennit.settings import Settings
from sennit.stores.contract import Backend

__all__ = ["Answer", "AnswerService", "AnswerStream", "AskOptions"]

DEFAULT_LIMIT: Final = 5
ANSWERING_RECIPES: Final = ("docs", "memory")
"""The recipes that answers come from, if none is named: the first whose collections hold anything."""

EXAMPLES_RECIPE: Final = "examples"
MAX_EXAMPLES: Final = 3
"""Finished examples in a prompt. Code is long, and the second and third best are already variations."""

STATIC_PREFIX: Final = "static/"
"""The beginning of the name of the model that comes with the package."""

NO_ANSWER: Final = "Nothing was found that answers this."
NO_SOURCE: Final = "No source of the search answered, so there is nothing to answer from."


class AskOptions(TypedDict, total=False):
    """The optional arguments of a question."""

    recipe: str | Recipe | None
    """The recipe of the search. By default `docs`; `memory` or the default recipe where there are no such records."""
    editor: str | None
    """The code in the editor."""
    language: str | None
    limit: int | None
    """Sections to answer from; by default 5."""
    filters: FilterLike
    project: str | None
    """Answer only from this indexed folder, by its name or its path; None or `all` for every one."""
    caller: Caller | None
    now: datetime | None
    """The time from which ages and periods count; by default the present."""
    transform: bool | None
    """Whether the question is rewritten for the search by meaning; None leaves it to the recipe, as in a search."""
    write: bool
    """If False, only the material of an answer is returned; its text is empty."""


Search = Callable[[SearchRequest], SearchResult]


@dataclass(frozen=True, slots=True)
class Material:
    """What an answer is written from."""

    query: str
    result: SearchResult
    pages: tuple[Page, ...]
    examples: tuple[Hit, ...]
    prompt: Prompt
    keywords: tuple[str, ...]
    degraded: tuple[Degraded, ...]
    weight: Weight
    similarity: float
    """The highest cosine of a hit with the static model; 0 with another one, whose scale differs."""
    time: QueryTime
    began: float


class AnswerService:
    """Answers questions from the database. Safe to use from several threads."""

    def __init__(
        self,
        settings: Settings,
        recipes: Mapping[str, Recipe],
        backend: Backend,
        audience: Callable[[Caller | None, str | None], Filter],
        search: Search,
        rewriter: QueryRewriter,
        model: ConfiguredModel,
        locator: Callable[[], Locator],
    ) -> None:
        self._settings = settings
        self._recipes = recipes
        self._snapshot = backend.records.snapshot
        self._keyword = backend.keyword
        self._audience = audience
        self._search = search
        self._rewriter = rewriter
        self._model = model
        self._locator = locator

    def ask(self, query: str, **options: Unpack[AskOptions]) -> Answer:
        """Return the whole answer."""
        check_options(options, AskOptions, "ask")
        return AnswerStream(self._answer_parts(query, options, stream=False)).answer

    def ask_stream(self, query: str, **options: Unpack[AskOptions]) -> AnswerStream:
        """Return the answer in parts; the search runs when the first part is read."""
        check_options(options, AskOptions, "ask_stream")
        return AnswerStream(self._answer_parts(query, options, stream=True))

    def _answer_parts(self, query: str, options: AskOptions, *, stream: bool) -> Generator[str | Answer]:
        material = self._collect_material(query, options)
        known = {passage.number: passage.citation for passage in material.prompt.passages}
        citations = CitationFilter(known)
        degraded = list(material.degraded)
        write = options.get("write", True)
        model = self._model.get() if known and write else None
        text = ""
        if model is not None:
            try:
                for part in self._model_parts(model, material, stream=stream):
                    decided = citations.feed(part)
                    text += decided
                    yield decided
            except SourceError as error:
                degraded.append(Degraded("answer", str(error)))
            rest = citations.finish()
            text += rest
            yield rest
            if text.strip() and not citations.cited:
                degraded.append(Degraded("citations", "the answer cites no passage; judge it with care"))
        model_name = model.name if model is not None and text.strip() else ""
        if not model_name and write:
            extracted = _extractive_answer(material)
            known = {citation.number: citation for citation in extracted.citations}
            text = extracted.text
            citations = CitationFilter(known)
            text = citations.feed(text) + citations.finish()
            yield text
        yield Answer(
            query=query,
            text=text.strip(),
            citations=tuple(known[number] for number in sorted(citations.cited)),
            removed_citations=citations.removed,
            pages=material.pages,
            examples=material.examples,
            degraded=tuple(degraded),
            model=model_name,
            hints=() if material.examples else material.result.hints,
            answered=material.result.answered,
            editor_keywords=material.keywords,
            prompt=material.prompt.system,
            trace=material.result.trace,
            query_id=material.result.query_id,
            milliseconds=(time.perf_counter() - material.began) * 1000,
        )

    def _model_parts(self, model: LanguageModel, material: Material, *, stream: bool) -> Iterator[str]:
        llm = self._settings.llm
        if stream:
            yield from model.stream(
                material.prompt.system, material.query, max_tokens=llm.max_tokens, timeout=llm.timeout
            )
        else:
            yield model.complete(
                material.prompt.system, material.query, max_tokens=llm.max_tokens, timeout=llm.timeout
            )

    def _collect_material(self, query: str, options: AskOptions) -> Material:
        """Search sections and finished examples, and build the prompt from them."""
        began = time.perf_counter()
        settings = self._settings
        limit = options.get("limit")
        request = SearchRequest(
            query,
            limit=DEFAULT_LIMIT if limit is None else limit,
            filters=options.get("filters"),
            project=options.get("project"),
            caller=options.get("caller"),
            editor=options.get("editor"),
            language=options.get("language"),
            now=options.get("now"),
            transform=options.get("transform"),
            explain=True,
        )
        audience = self._audience(request.caller, request.project)
        recipe = options.get("recipe") or self._choose_recipe(audience)
        if not isinstance(recipe, Recipe):
            recipe = find_recipe(recipe, self._recipes)
        # Two searches follow, and both use the same rewrite.
        request = replace(request, recipe=recipe, rewrite=self._rewriter.rewrite(request, recipe, audience))
        result = self._search(request)
        degraded = list(result.degraded)
        examples: tuple[Hit, ...] = ()
        if EXAMPLES_RECIPE in self._recipes and any(
            isinstance(stage, GroupByPage) for stage in recipe.stages
        ):
            found = self._search(replace(request, recipe=self._recipes[EXAMPLES_RECIPE], limit=MAX_EXAMPLES))
            degraded += [failure for failure in found.degraded if failure not in degraded]
            examples = found.hits
        pages = result.pages or pages_from_hits(result)
        locator = self._locator()
        return Material(
            query,
            result,
            pages,
            examples,
            build_prompt(
                pages,
                examples,
                hits=result.hits,
                editor=request.editor or "",
                keywords=request.rewrite.hints,
                max_characters=settings.llm.prompt_characters,
                locate=locator,
                find_revision=locator.revision,
            ),
            request.rewrite.hints,
            tuple(degraded),
            self._weights(query, audience),
            self._similarity(result, audience),
            read_time(query, request.now or datetime.now(UTC)),
            began,
        )

    def _choose_recipe(self, audience: Filter) -> str:
        """Return the first recipe for answers whose collections hold anything, else the default recipe."""
        with self._snapshot(audience) as snapshot:
            held = snapshot.text_counts("collection").keys()
        for name in ANSWERING_RECIPES:
            if name in self._recipes and not held.isdisjoint(self._recipes[name].collections):
                return name
        return self._settings.search.recipe

    def _similarity(self, result: SearchResult, audience: Filter) -> float:
        with self._snapshot(audience) as snapshot:
            if snapshot.model is None or not snapshot.model.name.startswith(STATIC_PREFIX):
                return 0.0
        scores = [
            one.score
            for hit in result
            if hit.explanation is not None
            for one in hit.explanation.source_scores
            if one.source == "vector" and one.score is not None
        ]
        return max(scores, default=0.0)

    def _weights(self, query: str, audience: Filter) -> Weight:
        """Return how informative the terms of a question are in this corpus: their inverse document frequency."""
        with self._snapshot(audience) as snapshot:
            rarest = 1.0 / (snapshot.count() + 1)
            shares = {
                term: max(self._keyword.document_share(snapshot, term_hash(term)), rarest)
                for term in content_terms(query)
            }
        return lambda term: math.log(1.0 / shares[term]) + 0.1 if term in shares else 0.0


def _extractive_answer(material: Material) -> ExtractiveAnswer:
    passages, query = material.prompt.passages, material.query
    if not passages:
        return ExtractiveAnswer(NO_ANSWER if material.result.answered else NO_SOURCE)
    if any(is_memory(passage.record) for passage in passages):
        fits = material.result.fits or is_fact(passages[0].record)
        if not fits and material.time.period is not None:
            # The words of a period are in the question and not in what was said then.
            fits = covers(query.replace(material.time.period.words, " "), passages, material.weight)
        return answer_from_memories(query, passages, material.time, fits=fits)
    found = answer_from(query, passages, material.weight, material.similarity)
    return found or ExtractiveAnswer(NO_ANSWER)
