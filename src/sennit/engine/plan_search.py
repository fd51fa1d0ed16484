"""The code search behind one plan: candidates as the recipe ranks them, and the relevance of anchors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import content_terms, term_hash
from sennit.engine.catalogue import StoreCatalogue
from sennit.filters import EVERYTHING, Equal, Filter, In
from sennit.hydration import Candidate, CodeUnit, PlanWarning
from sennit.pipeline import Pipeline, SearchPlan
from sennit.ranking.calibration import SAMPLE_RECORDS, Background, Floats, relatedness
from sennit.ranking.fusion import Weighted
from sennit.ranking.stages import Keys
from sennit.recipes import Recipe
from sennit.records import CODE_COLLECTION, OUTLINE_COLLECTION
from sennit.results import Hit
from sennit.results.hits import FIT_RELEVANCE
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
        hits = self._run(limit, In("parent", paths) & Equal("collection", CODE_COLLECTION))
        for unit, hit in self._units(hits):
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
        """Return the entities that are related to the query, or else those that have some of its words.

        Entities that are known already are left out.
        """
        limit = max(max_entities, MIN_CANDIDATES)
        skipped = frozenset(known)
        hits = self._run(min(limit + len(skipped), LIMIT.maximum), EVERYTHING)
        found = [(unit, hit) for unit, hit in self._units(hits) if unit.key not in skipped][:limit]
        if not found:
            return Found([], [])
        ranked = [(unit, hit.key) for unit, hit in found]
        units = [unit for unit, _ in ranked]
        coverage = self._coverage(units)
        scores, missing = self._similarity(ranked, skipped)
        threshold = self._settings.semantic_threshold
        if self._settings.semantic_metric == "calibrated" and not missing:
            relevance = np.array([hit.relevance for _, hit in found])
            scores = relatedness(scores, coverage, relevance, FIT_RELEVANCE)
        if (scores > threshold).any():
            return Found(_falling("semantic", units, scores, scores > threshold), [])
        by_keyword = _falling("keyword", units, coverage, coverage >= MIN_KEYWORD_COVERAGE)
        instead = f"by keyword instead: {len(by_keyword)}"
        if missing:
            return Found(by_keyword, [PlanWarning("no_vectors", f"{missing}; {instead}")])
        message = f"no candidate is above the threshold of {threshold:g} (the nearest has {scores.max():.2f}); {instead}"
        return Found(by_keyword, [PlanWarning("below_threshold", message)])

    def _run(self, limit: int, where: Filter) -> Sequence[Hit]:
        return self._pipeline.run(replace(self._plan, limit=limit, where=where), self._context)

    def _units(self, hits: Sequence[Hit]) -> Iterator[tuple[CodeUnit, Hit]]:
        """Yield the entity of each hit, each once; for the outline of a file, the most relevant entity of the file."""
        units = self._catalogue.units(hit.key for hit in hits)
        best_of_file = self._best_of_files({hit.record.parent or "" for hit in hits if hit.key not in units})
        seen: set[str] = set()
        for hit in hits:
            unit = units.get(hit.key) or best_of_file.get(hit.record.parent or "")
            if unit is not None and unit.key not in seen:
                seen.add(unit.key)
                yield unit, hit

    def _best_of_files(self, paths: Collection[str]) -> dict[str, CodeUnit]:
        """Return the most relevant entity of each file; the search ranks the best of every file first."""
        if not paths:
            return {}
        where = In("parent", tuple(sorted(paths))) & Equal("collection", CODE_COLLECTION)
        hits = self._run(max(MIN_CANDIDATES, len(paths)), where)
        units = self._catalogue.units(hit.key for hit in hits)
        best: dict[str, CodeUnit] = {}
        for hit in hits:
            if hit.key in units:
                best.setdefault(hit.record.parent or "", units[hit.key])
        return best

    def _similarity(
        self, ranked: Sequence[tuple[CodeUnit, int]], named: Collection[str]
    ) -> tuple[Floats, str]:
        """Return the similarity of entities to the query on the scale of the settings, and why there is none."""
        snapshot, vector = self._context.snapshot, self._context.vector
        cosines = self._cosines(np.array([key for _, key in ranked], np.int64))
        if not np.count_nonzero(vector):
            return np.zeros(len(ranked)), "the embedding model knows no word of the query"
        if np.isnan(cosines).all():
            return np.zeros(
                len(ranked)
            ), "the entities have no vectors yet; they are computed in the background"
        if self._settings.semantic_metric == "cosine":
            return np.nan_to_num(cosines, nan=-1.0), ""
        # The search finds an entity by the outline of its file too.
        paths = [unit.path for unit, _ in ranked]
        outlines = snapshot.sample(
            Equal("collection", OUTLINE_COLLECTION) & In("parent", tuple(sorted(set(paths)))), len(paths)
        )
        by_path = dict(
            zip(
                (path for (path,) in snapshot.columns(outlines, ("parent",))),
                self._cosines(outlines),
                strict=True,
            )
        )
        nearest = np.fmax(cosines, [by_path.get(path, np.nan) for path in paths])
        return np.nan_to_num(self._background(named).similarity(nearest)), ""

    def _background(self, named: Collection[str]) -> Background:
        """Return what candidates are compared with: in a small project, what the query names would be most of it."""
        snapshot, vector = self._context.snapshot, self._context.vector
        if snapshot.model is None:
            return self._context.background
        cosines = self._cosines(np.array(self._catalogue.rows(sorted(named)), np.int64))
        share = min(1.0, SAMPLE_RECORDS / max(1, snapshot.count()))
        sample = snapshot.cosine_sample(vector).without(cosines[~np.isnan(cosines)], share)
        return Background.estimate(snapshot.model.name, sample)

    def _cosines(self, keys: Keys) -> Floats:
        cosines: Floats = np.round(self._catalogue.cosines(self._context.vector, keys), SCORE_DIGITS)
        return cosines

    def _coverage(self, units: Sequence[CodeUnit]) -> Floats:
        """Return the share of the query's information that each entity has, in its name or text."""
        rarest = 1.0 / (self._context.snapshot.count() + 1)
        weights = {
            term: -math.log(max(self._catalogue.document_share(term_hash(term)), rarest))
            for term in sorted(content_terms(self._context.text))
        }
        total = sum(weights.values()) or 1.0
        texts = (content_terms(f"{unit.qualified} {unit.text}") for unit in units)
        shares = [sum(weight for term, weight in weights.items() if term in own) / total for own in texts]
        return np.round(shares, SCORE_DIGITS)


def _falling(
    source: str, units: Sequence[CodeUnit], scores: Floats, passing: NDArray[np.bool_]
) -> list[Candidate]:
    """Return the passing candidates in the order of the ranking, none with a higher score than the one before."""
    lowest = np.minimum.accumulate(np.where(passing, np.minimum(scores, 1.0), 1.0))
    return [
        Candidate(unit, round(score, 2), source)
        for unit, score, passes in zip(units, lowest.tolist(), passing.tolist(), strict=True)
        if passes
    ]


def _without_vectors(recipe: Recipe) -> Recipe:
    sources = tuple(one for one in recipe.sources if one.source != VECTOR)
    fusion = recipe.fusion
    if isinstance(fusion, Weighted):
        names = {one.name for one in sources} | {"*"}
        weights = {name: weight for name, weight in fusion.weights.items() if name in names}
        fusion = replace(fusion, weights=weights)
    return replace(recipe, sources=sources, fusion=fusion)
