"""What `why` says about a record after the limit, and what it names as the change that admits it, is true."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sennit

WORDS = ("retry", "failed", "job", "queue", "worker", "pause", "limit", "timeout")
QUERY = "how do I retry a failed job in the queue"

files = st.lists(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), min_size=1, max_size=5),
    min_size=2,
    max_size=4,
)
"""For each file, the words of its sections."""


@contextmanager
def indexed(sections: list[list[list[str]]]) -> Iterator[sennit.Database]:
    """A database of files: every other one is documentation, the others are code."""
    with tempfile.TemporaryDirectory() as name, sennit.open(":memory:") as db:
        for at, parts in enumerate(sections):
            if at % 2:
                text = "".join(
                    f"def {words[0]}_{n}():\n    '''{' '.join(words)}'''\n\n\n"
                    for n, words in enumerate(parts)
                )
                (Path(name) / f"{at}.py").write_text(text)
            else:
                text = "".join(f"## Part {n}\n\n{' '.join(words)}\n\n" for n, words in enumerate(parts))
                (Path(name) / f"{at}.md").write_text(f"# File {at}\n\n{text}")
        db.index(name)
        yield db


@settings(max_examples=10, deadline=None)
@given(files, st.integers(1, 4), st.sampled_from(("default", "code")))
def test_a_record_after_the_limit_has_the_rank_that_why_says_at_that_limit(
    sections: list[list[list[str]]], limit: int, recipe: str
) -> None:
    with indexed(sections) as db:
        everything = [hit.id for hit in db.search(QUERY, recipe=recipe, limit=50)]
        for name in everything[limit : limit + 6]:
            why = db.why(QUERY, name, recipe=recipe, limit=limit)
            assert why.stage == "limit"
            said = re.search(r"rank (\d+) of", why.reason)
            assert said is not None
            rank = int(said[1])
            assert rank == everything.index(name) + 1
            shown = [hit.id for hit in db.search(QUERY, recipe=recipe, limit=rank)]
            assert shown.index(name) == rank - 1
            assert name not in [hit.id for hit in db.search(QUERY, recipe=recipe, limit=rank - 1)]


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(files, st.integers(1, 4), st.sampled_from(("default", "code")))
def test_every_change_that_is_named_admits_the_record_and_a_smaller_limit_does_not(
    sections: list[list[list[str]]], limit: int, recipe: str
) -> None:
    with indexed(sections) as db:
        everything = [hit.id for hit in db.search(QUERY, recipe=recipe, limit=50)]
        for name in everything[limit::4]:
            found = db.what_admits(QUERY, name, recipe=recipe, limit=limit)
            kinds = {change.kind: change for change in found.changes}
            raised = kinds["limit"].after
            assert isinstance(raised, int)
            assert name in [hit.id for hit in db.search(QUERY, recipe=recipe, limit=raised)]
            assert name not in [hit.id for hit in db.search(QUERY, recipe=recipe, limit=raised - 1)]
