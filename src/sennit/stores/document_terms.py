"""The terms of a record by field, counted once for many queries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from sennit.analysis import count_terms
from sennit.records import Record

CACHED_DOCUMENTS: Final = 8192
"""Records whose counts are kept: more than a buffer holds before the writer waits for the server."""


class DocumentTerms(NamedTuple):
    """How often each term occurs in the text and in the title, and how long both are."""

    text: Mapping[int, int]
    title: Mapping[int, int]
    lengths: tuple[int, int]

    def has(self, term: int) -> bool:
        """Whether the term occurs in the record."""
        return term in self.text or term in self.title


def document_terms(record: Record) -> DocumentTerms:
    """The terms of a record."""
    return _count(record.text, record.title)


@lru_cache(CACHED_DOCUMENTS)
def _count(text: str, title: str) -> DocumentTerms:
    in_text, text_length = count_terms(text)
    in_title, title_length = count_terms(title) if title else ({}, 0)
    return DocumentTerms(in_text, in_title, (text_length, title_length))
