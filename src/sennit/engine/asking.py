"""From a question to an answer in words: transform, search, prompt, language model, citations."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol, TypedDict, Unpack

from sennit.analysis import term_hash, words
from sennit.context.citations import Check
from sennit.context.extract import Weight, extracted, told
from sennit.context.prompt import Prompt, built, pages_of
from sennit.engine.answering import Answer, AnswerStream
from sennit.engine.planning import FilterLike
from sennit.errors import InvalidInput, SourceError
from sennit.filters import Filter
from sennit.ingest.editor import editor_keywords
from sennit.llm import LanguageModel, LanguageSpec, language_model
from sennit.llm.offline import widened
from sennit.llm.transform import ByModel, Transformed, transformed, untouched
from sennit.privacy import Caller
from sennit.recipes import Recipe, find_recipe
from sennit.results import Degraded, Hit, Page, Result
from sennit.settings import Settings
from sennit.sources.base import share_of
from sennit.sources.wording import Wording
from sennit.stores.embedded.snapshot import Snapshot

__all__ = ["Answer", "AnswerStream", "AskOptions", "Asking"]

LIMIT: Final = 5
EXAMPLES: Final = "examples"
MOST_EXAMPLES: Final = 3
"""Finished examples; code is long, and the second and third best are already variations."""

NOTHING: Final = "Nothing was found that answers this."
NO_SOURCE: Final = "No source of the search answered, so there is nothing to answer from."


class AskOptions(TypedDict, total=False):
    """How a question is asked, beside its words."""

    recipe: str | Recipe | None
    """How to search; by default `docs`."""
    editor: str | None
    """The code in the editor beside it."""
    language: str | None
    limit: int | None
    """Sections to answer from; by default 5."""
    filters: FilterLike
    caller: Caller | None
    transform: bool
    """False: the question is searched as it is."""
    write: bool
    """False: only what an answer would be written from; its text is empty."""


class Search(Protocol):
    """`Database.search`, as far as it is needed here."""

    def __call__(
        self,
        query: str,
        *,
        recipe: str | Recipe | None,
        limit: int | None,
        filters: FilterLike,
        caller: Caller | None,
        wording: Wording,
        explain: bool,
    ) -> Result: ...


@dataclass(frozen=True, slots=True)
class Material:
    """What there is to answer from."""

    query: str
    result: Result
    pages: tuple[Page, ...]
    examples: tuple[Hit, ...]
    prompt: Prompt
    keywords: tuple[str, ...]
    degraded: tuple[Degraded, ...]
    weight: Weight
    began: float


class Asking:
    """Answers questions by what the database holds. Safe to use from several threads."""

    def __init__(
        self,
        settings: Settings,
        recipes: Mapping[str, Recipe],
        snapshot: Callable[[Filter], AbstractContextManager[Snapshot]],
        audience: Callable[[Caller | None], Filter],
        search: Search,
    ) -> None:
        self._settings = settings
        self._recipes = recipes
        self._snapshot = snapshot
        self._audience = audience
        self._search = search
        self._model: LanguageModel | None = None
        self._by_model: ByModel | None = None
        self._making = threading.Lock()

    @property
    def model(self) -> LanguageModel | None:
        """The language model of the settings; made when it is first needed."""
        llm = self._settings.llm
        with self._making:
            if self._model is None and llm.provider != "none":
                spec = LanguageSpec(
                    provider=llm.provider,
                    model=llm.model,
                    base_url=llm.base_url,
                    api_key_env=llm.api_key_env,
                    retries=llm.retries,
                )
                self._model = language_model(spec)
            return self._model

    def ask(self, query: str, **options: Unpack[AskOptions]) -> Answer:
        """The whole answer."""
        return AnswerStream(self._answered(query, options, stream=False)).answer

    def ask_stream(self, query: str, **options: Unpack[AskOptions]) -> AnswerStream:
        """The answer in parts; the search is done when the first is asked for."""
        return AnswerStream(self._answered(query, options, stream=True))

    def close(self) -> None:
        """Let go of the model's connections."""
        if self._model is not None:
            self._model.close()

    def transformed(self, query: str, audience: Filter) -> Transformed:
        """The question as it is searched by meaning."""
        how = self._settings.llm.transform
        model = self.model if how == "auto" else None
        if model is not None:
            with self._making:
                if self._by_model is None:
                    self._by_model = ByModel(model, timeout=self._settings.llm.transform_timeout)
            return transformed(query, model.name, self._by_model)
        if how != "none":
            with self._snapshot(audience) as snapshot:
                return transformed(
                    query, "offline", lambda text: widened(text, lambda word: share_of(snapshot, word))
                )
        return untouched(query)

    def _answered(self, query: str, options: AskOptions, *, stream: bool) -> Generator[str | Answer]:
        found = self._material(query, options)
        known = {passage.number: passage.citation for passage in found.prompt.passages}
        check = Check(known)
        degraded = list(found.degraded)
        write = options.get("write", True)
        model = self.model if known and write else None
        text = ""
        if model is not None:
            try:
                for part in self._said(model, found, stream=stream):
                    sure = check.feed(part)
                    text += sure
                    yield sure
            except SourceError as error:
                degraded.append(Degraded("answer", str(error)))
            rest = check.finish()
            text += rest
            yield rest
            if text.strip() and not check.cited:
                degraded.append(Degraded("citations", "the answer cites no passage; judge it with care"))
        wrote = model.name if model is not None and text.strip() else ""
        if not wrote and write:
            text = self._extract(found)
            check = Check(known)
            text = check.feed(text) + check.finish()
            yield text
        yield Answer(
            query=query,
            text=text.strip(),
            citations=tuple(known[number] for number in sorted(check.cited)),
            removed_citations=check.removed,
            pages=found.pages,
            examples=found.examples,
            degraded=tuple(degraded),
            model=wrote,
            answered=found.result.answered,
            editor_keywords=found.keywords,
            prompt=found.prompt.system,
            trace=found.result.trace,
            milliseconds=(time.perf_counter() - found.began) * 1000,
        )

    def _said(self, model: LanguageModel, found: Material, *, stream: bool) -> Iterator[str]:
        llm = self._settings.llm
        if stream:
            yield from model.stream(
                found.prompt.system, found.query, max_tokens=llm.max_tokens, timeout=llm.timeout
            )
        else:
            yield model.complete(
                found.prompt.system, found.query, max_tokens=llm.max_tokens, timeout=llm.timeout
            )

    def _extract(self, found: Material) -> str:
        sentences = extracted(found.query, found.prompt.passages, found.weight)
        if sentences:
            return told(sentences)
        return NOTHING if found.result.answered else NO_SOURCE

    def _material(self, query: str, options: AskOptions) -> Material:
        """Search sections and finished examples, and build the prompt of what was found."""
        began = time.perf_counter()
        settings = self._settings
        named = options.get("recipe") or "docs"
        recipe = named if isinstance(named, Recipe) else find_recipe(named, self._recipes)
        caller, filters = options.get("caller"), options.get("filters")
        audience = self._audience(caller)
        editor = _editor(options.get("editor"))
        hints: tuple[str, ...] = ()
        if editor.strip() and settings.docs.editor_keywords:
            with self._snapshot(audience) as snapshot:
                hints = editor_keywords(
                    editor,
                    options.get("language"),
                    rarity=lambda word: share_of(snapshot, word),
                    limit=settings.docs.editor_keywords,
                )
        change = untouched(query)
        if options.get("transform", True):
            change = self.transformed(query, audience)
        wording = Wording(
            None if change.used == query else change.used,
            hints,
            settings.docs.editor_weight,
            change.to_dict() if change.by else {},
        )
        degraded = [] if change.error is None else [Degraded("transform", change.error)]

        def search(recipe: Recipe, limit: int) -> Result:
            result = self._search(
                query,
                recipe=recipe,
                limit=limit,
                filters=filters,
                caller=caller,
                wording=wording,
                explain=True,
            )
            degraded.extend(one for one in result.degraded if one not in degraded)
            return result

        limit = options.get("limit")
        result = search(recipe, LIMIT if limit is None else limit)
        examples: tuple[Hit, ...] = ()
        if recipe.by_page and EXAMPLES in self._recipes:
            examples = search(self._recipes[EXAMPLES], MOST_EXAMPLES).hits
        pages = result.pages or pages_of(result)
        return Material(
            query,
            result,
            pages,
            examples,
            built(
                pages,
                examples,
                hits=result.hits,
                editor=editor,
                keywords=hints,
                most=settings.llm.prompt_characters,
            ),
            hints,
            tuple(degraded),
            self._weights(query, audience),
            began,
        )

    def _weights(self, query: str, audience: Filter) -> Weight:
        """How telling the terms of a question are in this corpus."""
        with self._snapshot(audience) as snapshot:
            shares = {term: snapshot.document_share(term_hash(term)) for term in words(query)}
        return lambda term: math.log(1.0 / share) + 0.1 if (share := shares.get(term, 0.0)) else 0.0


def _editor(code: object) -> str:
    if code is None:
        return ""
    if not isinstance(code, str):
        raise InvalidInput(f"editor must be the code in the editor as a text, not {type(code).__name__}")
    return code
