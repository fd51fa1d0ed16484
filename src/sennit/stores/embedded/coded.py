"""Vectors in lists by direction, each as a code of four bits for two numbers: where to look closer (faiss).

A search scores the codes of the lists nearest to the query, and then the vectors themselves of the best of them. How
many lists that takes depends on how the vectors lie, so it is measured whenever an index is made.
"""

from __future__ import annotations

from functools import lru_cache
from threading import Event
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.layers import Cancelled
from sennit.stores.embedded.library import faiss
from sennit.stores.embedded.products import Compact, Vectors, held, nearest, one_thread, selector
from sennit.stores.embedded.selection import Selection

ROUNDS: Final = 6
POINTS: Final = 32
CODE_POINTS: Final = 128
"""Of k-means, and the vectors it looks at for each list and for each code."""

CHUNK: Final = 16_384
"""Vectors taken in between two looks at whether the work should be given up."""

CLOSER: Final = 4
CLOSER_LEAST: Final = 200
"""For k results so many times k are looked at closer, and at least so many."""

EVERYWHERE: Final = 2.0
"""Lists are searched whose centre is at most so much less like the query than the nearest centre is. A query that lies
far from everything has many such, and needs them."""

TRIALS: Final = 512
NEIGHBOURS: Final = 20
SHARE: Final = 0.99
FARTHER: Final = 1.25
"""The reach is what so great a share of the twenty nearest of some of the vectors need, and a quarter more: a question has
fewer words than a text, and lies farther from what answers it."""

JUDGED: Final = 64
JUDGED_AT: Final = 50
USABLE: Final = 0.8
"""Codes that find less than .8 of the fifty nearest of some of the vectors, wherever they look, are not used."""

GROWN: Final = 1.2
"""Lists that are kept and added to are measured again when they hold so many times as many vectors."""

BROADER: Final = 0.1
"""With a filter, what is searched for lies farther out: the fewer pass, the farther, by this power."""


def lists_for(count: int) -> int:
    """How many lists so many vectors are parted into: the power of two next to 1.6 times the root."""
    return int(2 ** round(np.log2(1.6 * np.sqrt(count))))


class Coded:
    """The lists over some vectors, which are held elsewhere."""

    def __init__(self, lists: Any, vectors: Compact, reach: float = EVERYWHERE, measured: int = 0) -> None:
        """`reach` is what `measured` of the vectors need."""
        self._lists = lists
        self.reach = reach
        self.measured = measured
        self._vectors = vectors
        self._refined = faiss.IndexRefine(lists, vectors.index)
        self._centres = _centres(lists)
        # Kept: to make them takes as long as to search a list.
        self._parameters = lru_cache(maxsize=256)(_parameters)

    @classmethod
    def over(cls, vectors: Compact, stopping: Event, like: Coded | None = None) -> Coded | None:
        """The lists over these vectors, unless they are such that codes do not tell them apart.

        `like` are lists that already hold the first of them."""
        # In one thread: the other cores are for those who write and search meanwhile.
        with one_thread():
            if like is not None and like._lists.nlist == lists_for(len(vectors)):
                lists = faiss.clone_index(like._lists)
            else:
                lists, like = _trained(vectors), None
            while lists.ntotal < len(vectors):
                if stopping.is_set():
                    raise Cancelled
                lists.add(vectors.widened(vectors.half[lists.ntotal : lists.ntotal + CHUNK]))
            if like is not None and len(vectors) < GROWN * like.measured:
                return cls(lists, vectors, like.reach, like.measured)
            return _measured(cls(lists, vectors))

    @classmethod
    def revived(cls, codes: NDArray[np.uint8], reach: float, measured: int, vectors: Compact) -> Coded:
        """The lists from their bytes."""
        lists = faiss.deserialize_index(np.array(codes))
        if lists.ntotal != len(vectors):
            raise ValueError(f"codes of {lists.ntotal} vectors and not of {len(vectors)}")
        return cls(lists, vectors, reach, measured)

    def codes(self) -> NDArray[np.uint8]:
        """The lists as bytes."""
        out: NDArray[np.uint8] = faiss.serialize_index(self._lists)
        return out

    def nearest(
        self,
        query: Vectors,
        k: int,
        allowed: Selection | None = None,
        *,
        reach: float | None = None,
        closer: float = CLOSER,
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Positions of about the k nearest, nearest first, and about their scores; `closer` times k are looked at."""
        if reach is None:
            reach = self.reach
        if allowed is not None:
            reach /= (allowed.count / len(self._vectors)) ** BROADER
        likeness = self._centres @ query
        lists = int(np.count_nonzero(likeness >= np.maximum.reduce(likeness) - reach))
        if allowed is None:
            parameters = self._parameters(-(-lists // 8) * 8, k, closer)
        else:
            parameters = _parameters(lists, k, closer, allowed)
        return nearest(self._refined, self._centres.shape[1], query, k, parameters)

    def needed(self, queries: Vectors, k: int) -> NDArray[np.float32]:
        """The reach by which each of the k nearest of each query would be found."""
        found = [self.nearest(query, k, reach=EVERYWHERE)[0] for query in queries]
        _, lists = self._lists.quantizer.search(self._vectors.at(np.concatenate(found)), 1)
        asked = np.repeat(np.arange(len(queries)), [len(one) for one in found])
        likeness = queries @ self._centres.T
        out: NDArray[np.float32] = likeness.max(axis=1)[asked] - likeness[asked, lists[:, 0]]
        return out


def _trained(vectors: Compact) -> Any:
    """Lists without vectors, made from a sample of these."""
    count, dimensions = vectors.half.shape
    parts = lists_for(count)
    # A code for two numbers; one for each where they do not pair up.
    coded = dimensions if dimensions % 2 else dimensions // 2
    centres = faiss.IndexFlatIP(dimensions)
    lists = faiss.IndexIVFPQFastScan(centres, dimensions, parts, coded, 4, faiss.METRIC_INNER_PRODUCT)
    lists.own_fields = True
    centres.this.disown()
    lists.by_residual = True
    lists.cp.niter = ROUNDS
    lists.cp.spherical = True
    lists.cp.min_points_per_centroid = 1
    lists.cp.max_points_per_centroid = POINTS
    lists.pq.cp.min_points_per_centroid = 1
    lists.pq.cp.max_points_per_centroid = CODE_POINTS
    lists.pq.cp.niter = ROUNDS
    lists.train(vectors.widened(vectors.half[:: max(1, count // (POINTS * parts))]))
    return lists


def _parameters(lists: int, k: int, closer: float, allowed: Selection | None = None) -> Any:
    """What faiss is to do: search so many lists, and look closer at some times k."""
    inner = faiss.SearchParametersIVF(nprobe=lists)
    if allowed is not None:
        inner.sel = selector(allowed)
    return faiss.IndexRefineSearchParameters(k_factor=max(closer, CLOSER_LEAST / k), base_index_params=inner)


def _centres(lists: Any) -> Vectors:
    """The centres of the lists, as faiss holds them."""
    flat = faiss.downcast_index(lists.quantizer)
    return held(lists, flat.get_xb(), np.float32, (lists.nlist, lists.d))


def _measured(coded: Coded) -> Coded | None:
    """The same lists with the reach that their vectors need; None where codes do not serve."""
    vectors = coded._vectors
    luck = np.random.default_rng(len(vectors))
    judged = vectors.at(luck.integers(0, len(vectors), JUDGED))
    exact, _ = vectors.index.search(judged, JUDGED_AT)
    near = (coded.nearest(question, JUDGED_AT, reach=EVERYWHERE)[1] for question in judged)
    hits = sum(np.count_nonzero(scores >= last) for scores, last in zip(near, exact[:, -1], strict=True))
    if hits < USABLE * exact.size:
        return None
    questions = vectors.at(luck.integers(0, len(vectors), TRIALS))
    needed = float(np.quantile(coded.needed(questions, NEIGHBOURS), SHARE))
    coded.reach = min(FARTHER * needed, EVERYWHERE)
    coded.measured = len(vectors)
    return coded
