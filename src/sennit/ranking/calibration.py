"""The calibrated scale of similarity: a cosine means the same for every embedding model.

One model gives unrelated texts a cosine of 0.1, another 0.7. So a cosine is read against its background, the mean
cosine of the query with a sample of the records: `lift` is 0 for an arbitrary record and 1 for a text that says the
same as the query. `similarity` maps the lift to the scale of thresholds: it is read like a cosine, and means the same
for every model and every kind of record. A distance is made of it as of a cosine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAMPLE_RECORDS: Final = 300
"""Records in the background sample. With 300, the mean cosine of a query is within 0.007 of that with all records."""

PRIOR_RECORDS: Final = 10.0
"""How many records the usual background of a known model counts for. It matters for databases of a few records only."""

MAX_BACKGROUND: Final = 0.95
"""A higher background would leave no room above it: all records say the same as the query."""

USUAL_BACKGROUNDS: Final[Mapping[str, float]] = {
    "static/sennit-static-256": 0.14,
    "onnx/minilm": 0.11,
    "onnx/bge-small": 0.47,
    "onnx/e5-small": 0.74,
}
"""The mean cosine of a question with an arbitrary record, by model: `python -m benchmarks.relevance --scales`."""

WORD_MODELS: Final = ("static/",)
"""The beginning of the names of models that add up word vectors and know no context."""

WORD_MODEL_RESOLUTION: Final = 0.5
RESOLUTION: Final = 0.85
"""What a lift counts for in a weighted fusion. Word vectors say less about a text than a model that reads it as a whole;
docs/design/relevance.md has the figures."""

BEND: Final = 0.05
"""The lift at which the normalised value bends towards 0, below the background."""

RELATED: Final = 0.05
TRUE_ANSWERS_95: Final = 0.12
TRUE_ANSWERS_50: Final = 0.40
"""The lift from which a text is related to the query, and those that 95 % and 50 % of the true answers of the dev
collections exceed; nearly equal for all models. Of the answers to questions about code, 99 % exceed even the second."""

_LIFTS: Final = (0.0, RELATED, TRUE_ANSWERS_95, TRUE_ANSWERS_50, 1.0)
_SIMILARITIES: Final = (0.0, 0.7, 0.75, 0.85, 1.0)
"""A similarity of 0.75 is a distance of 0.5, as for the squared distance of unit vectors; code is related from 0.7."""

RELATED_SIMILARITY: Final = 0.7
JUST_RELATED: Final = 0.701
RELATED_COVERAGE: Final = 0.4
"""The share of the query's information at which a text of code counts as related, whatever its vector."""


class CosineSample(NamedTuple):
    """The mean cosine of a query with a sample of the records, and the size of the sample."""

    mean: float
    records: int

    def without(self, cosines: Floats, share: float) -> CosineSample:
        """Return the sample without records that are known to be related; `share` of them are in the sample."""
        left = self.records - share * len(cosines)
        if left < 1:
            return CosineSample(0.0, 0)
        return CosineSample((self.records * self.mean - share * float(cosines.sum())) / left, round(left))


@dataclass(frozen=True, slots=True)
class Background:
    """What a cosine is compared with: the similarity of the query to arbitrary records, and the model's resolution."""

    mean: float
    resolution: float = RESOLUTION

    @classmethod
    def estimate(cls, model: str, sample: CosineSample) -> Background:
        """Combine the sample with the usual background of the model, which a small sample needs."""
        usual = USUAL_BACKGROUNDS.get(model)
        prior = 0.0 if usual is None else PRIOR_RECORDS
        total = sample.records + prior
        mean = (sample.records * sample.mean + prior * (usual or 0.0)) / total if total else 0.0
        resolution = WORD_MODEL_RESOLUTION if model.startswith(WORD_MODELS) else RESOLUTION
        return cls(min(mean, MAX_BACKGROUND), resolution)

    def lift(self, cosines: Floats) -> Floats:
        """Return how far each cosine is above the background: 0 at the background, 1 at a cosine of 1."""
        return (cosines - self.mean) / (1.0 - self.mean)

    def normalise(self, cosines: Floats) -> Floats:
        """Return what a weighted fusion adds: about the lift above the background, and nearly 0 below it.

        It is above 0 everywhere and keeps the order, so a record that was found never stands behind one that was not.
        """
        lift = self.lift(cosines)
        above: Floats = (lift + np.sqrt(lift * lift + BEND * BEND)) / 2
        return above * self.resolution

    def similarity(self, cosines: Floats) -> Floats:
        """Return the calibrated similarity, from 0 to 1.

        0.75 lies where 95 % of true answers are above it, 0.85 where half of them are.
        """
        similarity: Floats = np.interp(self.lift(cosines), _LIFTS, _SIMILARITIES)
        return similarity

    def distance(self, cosines: Floats) -> Floats:
        """Return the calibrated distance, from 0 to 2: 0.5 lies where 95 % of true answers are nearer."""
        return 2.0 - 2.0 * self.similarity(cosines)


def relatedness(similarity: Floats, coverage: Floats, relevance: Floats, fitting: float) -> Floats:
    """Return how related texts are to a query, on the scale of similarities: by meaning, by words, or by both.

    Words and meaning that fall short alone may make a text related together, and no more than that. So does a relevance
    of `fitting`, from which the search says that a text fits.
    """
    words: Floats = np.interp(coverage, (0.0, RELATED_COVERAGE, 1.0), (0.0, RELATED_SIMILARITY, 1.0))
    together = similarity + words - similarity * words
    is_related = (together > RELATED_SIMILARITY) | (relevance >= fitting)
    return np.maximum(np.maximum(similarity, words), np.where(is_related, JUST_RELATED, 0.0))


NO_BACKGROUND: Final = Background(0.0, 1.0)
"""Leaves a cosine as it is."""
