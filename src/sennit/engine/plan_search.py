"""The code search behind one plan: candidates as the recipe ranks them, and the relevance of anchors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from sennit.analysis import content_terms, term_hash
from sennit.engine.catalogue import CODE, StoreCatalogue
from sennit.filters import EVERYTHING, Equal, Filter, In
from sennit.hydration import Candidate, CodeUnit, PlanWarning
from sennit.hydration.similarity_scale import (
    MAX_BACKGROUND_RECORDS,
    Floats,
    calibrate,
    measure_background,
)
from sennit.pipeline import Pipeline, SearchPlan
from sennit.ranking.fusion import Weighted
from sennit.recipes import Recipe
from sennit.results import Hit
from sennit.search_parameters import LIMIT
from sennit.settings.sections import HydrationSettings
from sennit.sources.base import SearchContext

MIN_CANDIDATES: Final = 50
"""Candidates that are considered at least; those that do not fit are listed as dropped."""

SCORE_DIGITS: Final = 6
"""Decimal digits of a cosine that are used; further digits differ between machines."""

MIN_KEYWORD_COVERAGE: Final = 0.25
"""The share of the query's information that a candidate by keyword has at least: a common word finds nothing."""

VECTOR: Final = "vector"


class Found(NamedTuple):
    """The candidates of a plan, and warnings about them."""

    candidates: list[Candidate]
    warnings: list[PlanWarning]


class PlanSearch:
    """Runs the recipe of code for one plan. All runs share the query's terms and vector."""

    def __init__(
        self,
        pipeline: Pipeline,
        plan: SearchPlan,
        context: SearchContext,
        catalogue: StoreCatalogue,
        settings: HydrationSettings,
    ) -> None:
        self._pipeline = pipeline
        self._plan = plan
        self._context = context
        self._catalogue = catalogue
        self._settings = settings

    def relevance(self, units: Sequence[CodeUnit]) -> Mapping[str, float]:
        """Return the scores of entities for the query, by key, as the recipe ranks them within their files."""
        if not self._context.text.strip() or len(units) < 2:
            return {}
        paths = tuple(sorted({unit.path for unit in units}))
        limit = max(MIN_CANDIDATES, min(len(units), LIMIT.maximum))
        scores: dict[str, float] = {}
        for unit, hit in self._units(self._run(limit, In("path", paths))):
            scores.setdefault(unit.key, round(hit.score, SCORE_DIGITS))
        return scores

    def without_vectors(self) -> PlanSearch:
        """Return the same search by keyword alone."""
        recipe = _without_vectors(self._plan.recipe)
        plan = replace(self._plan, recipe=recipe, sources=recipe.expand_sources(()))
        return PlanSearch(self._pipeline, plan, self._context, self._catalogue, self._settings)

    def vector_error(self) -> str | None:
        """Return why the query or the records have no vectors to search with; None if they have."""
        vectors = [one for one in self._plan.sources if one.source == VECTOR][:1]
        if not vectors or not self._context.text.strip():
            return None
        (result,) = self._pipeline.run_sources(
            replace(self._plan, sources=tuple(vectors), limit=1), self._context
        )
        return result.error

    def candidates(self, known: Iterable[str], max_entities: int) -> Found:
        """Return the entities that are near the query, or else those that have its words; without the known ones."""
        limit = max(max_entities, MIN_CANDIDATES)
        skipped = frozenset(known)
        ranked = [
            (unit, hit.key)
            for unit, hit in self._units(self._run(min(limit + len(skipped), LIMIT.maximum), EVERYTHING))
            if unit.key not in skipped
        ][:limit]
        scores, missing = self._similarity([key for _, key in ranked])
        threshold = self._settings.semantic_threshold
        near = _falling(
            (unit, score, "semantic")
            for (unit, _), score in zip(ranked, scores.tolist(), strict=True)
            if score > threshold
        )
        if near or not ranked:
            return Found(near, [])
        by_keyword = self._by_keyword([unit for unit, _ in ranked])
        instead = f"by keyword instead: {len(by_keyword)}"
        if missing:
            return Found(by_keyword, [PlanWarning("no_vectors", f"{missing}; {instead}")])
        message = f"no candidate is above the threshold of {threshold:g} (the nearest has {np.nanmax(scores):.2f}); {instead}"
        return Found(by_keyword, [PlanWarning("below_threshold", message)])

    def _run(self, limit: int, where: Filter) -> Sequence[Hit]:
        return self._pipeline.run(replace(self._plan, limit=limit, where=where), self._context)

    def _units(self, hits: Sequence[Hit]) -> Iterator[tuple[CodeUnit, Hit]]:
        """Yield the entity of each hit, the best part of each first."""
        units = self._catalogue.units(hit.key for hit in hits)
        seen: set[str] = set()
        for hit in hits:
            unit = units.get(hit.key)
            if unit is not None and unit.key not in seen:
                seen.add(unit.key)
                yield unit, hit

    def _similarity(self, keys: Sequence[int]) -> tuple[Floats, str]:
        """Return the similarity of each record to the query on the scale of the settings, and why there is none."""
        snapshot, vector = self._context.snapshot, self._context.vector
        cosines = np.round(snapshot.vector_scores(vector, np.array(keys, np.int64)), SCORE_DIGITS)
        if not np.count_nonzero(vector):
            return np.zeros(len(keys)), "the embedding model knows no word of the query"
        if len(keys) and np.isnan(cosines).all():
            return np.zeros(
                len(keys)
            ), "the entities have no vectors yet; they are computed in the background"
        if self._settings.semantic_metric == "cosine":
            return np.nan_to_num(cosines, nan=-1.0), ""
        sample = snapshot.sample(Equal("collection", CODE), MAX_BACKGROUND_RECORDS)
        background = measure_background(snapshot.vector_scores(vector, sample))
        return np.nan_to_num(calibrate(cosines, round(background, SCORE_DIGITS))), ""

    def _by_keyword(self, units: Sequence[CodeUnit]) -> list[Candidate]:
        """Return the entities that have enough of the query's information, in their order."""
        snapshot = self._context.snapshot
        rarest = 1.0 / (snapshot.count() + 1)
        weights = {
            term: -math.log(max(snapshot.document_share(term_hash(term)), rarest))
            for term in sorted(content_terms(self._context.text))
        }
        total = sum(weights.values()) or 1.0

        def coverage(unit: CodeUnit) -> float:
            own = content_terms(f"{unit.qualified} {unit.text}")
            return sum(weight for term, weight in weights.items() if term in own) / total

        covered = ((unit, coverage(unit), "keyword") for unit in units)
        return _falling(one for one in covered if one[1] >= MIN_KEYWORD_COVERAGE)


def _falling(ranked: Iterable[tuple[CodeUnit, float, str]]) -> list[Candidate]:
    """Return candidates in the order of the ranking, none with a higher score than the one before."""
    out: list[Candidate] = []
    lowest = 1.0
    for unit, score, source in ranked:
        lowest = min(lowest, round(score, 2))
        out.append(Candidate(unit, lowest, source))
    return out


def _without_vectors(recipe: Recipe) -> Recipe:
    sources = tuple(one for one in recipe.sources if one.source != VECTOR)
    fusion = recipe.fusion
    if isinstance(fusion, Weighted):
        names = {one.name for one in sources} | {"*"}
        weights = {name: weight for name, weight in fusion.weights.items() if name in names}
        fusion = replace(fusion, weights=weights)
    return replace(recipe, sources=sources, fusion=fusion)
