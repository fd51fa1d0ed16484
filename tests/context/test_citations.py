"""Citations of passages stay, all others are removed, and code is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.context.citations import CitationFilter, filter_citations, make_citation
from sennit.records import Record

KNOWN = (1, 2, 3)


@pytest.mark.parametrize(
    ("said", "kept", "removed"),
    [
        ("Use it [1].", "Use it [1].", ()),
        ("Use it [9].", "Use it.", (9,)),
        ("Use it[2] and [3, 7].", "Use it[2] and [3].", (7,)),
        ("All [1-3], none [4-5].", "All [1][2][3], none.", (4, 5)),
        ("A link [1](http://evil.example/?q=x).", "A link [1].", ()),
        ("A link [8](http://evil.example/?q=x).", "A link.", (8,)),
        ("Footnote [^2] and [^8]", "Footnote [2] and", (8,)),
        ("`items[9]` and ``a `[8]` b`` are code [1]", "`items[9]` and ``a `[8]` b`` are code [1]", ()),
        ("```python\nx[7] = 1\n```\nso [7]", "```python\nx[7] = 1\n```\nso", (7,)),
        ("~~~\n[7]\n```\n[8]\n~~~\n[9]", "~~~\n[7]\n```\n[8]\n~~~\n", (9,)),
        ("```\nnever closed [7]", "```\nnever closed [7]", ()),
        ("a ` alone and [7]", "a ` alone and", (7,)),
        ("[a] [1 2] [] [12345] [ok](x)", "[a] [1 2] [] [12345] [ok](x)", ()),
        ("Nested [[9]7] and [7[9]]", "Nested [ 7] and [7 ]", (9,)),
        ("", "", ()),
    ],
)
def test_only_citations_that_exist_stay(said: str, kept: str, removed: tuple[int, ...]) -> None:
    assert filter_citations(said, KNOWN)[::2] == (kept, removed)


def test_cited_numbers_are_listed_once_in_order() -> None:
    assert filter_citations("b [2], a [1], b again [2], nothing [5] [4] [5]", KNOWN)[1:] == ((2, 1), (5, 4))


PIECES = st.sampled_from(
    ["[1]", "[9]", " [2", "]", "[1, 9]", "(x)", "(", ")", "`", "``", "```", "~~~", "\n", "\n\n", " ", "  ", "a", "b c",
     "[", "1", ",", "-", "^", "word ", "```py\n", "\n```\n"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30), st.data())
def test_the_result_does_not_depend_on_how_the_answer_is_split(
    pieces: list[str], data: st.DataObject
) -> None:
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    check = CitationFilter(KNOWN)
    parts = [check.feed(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert ("".join(parts) + check.finish(), check.cited, check.removed) == filter_citations(text, KNOWN)


@given(st.lists(PIECES, max_size=30))
def test_nothing_is_added_and_nothing_but_citations_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    everything = filter_citations(text, range(10_000))
    assert everything[2] == ()
    kept, _, removed = filter_citations(text, KNOWN)
    assert set(removed).isdisjoint(KNOWN)
    letters = "abcdw`~\n"
    assert [c for c in kept if c in letters] == [c for c in everything[0] if c in letters]


@given(st.lists(PIECES, max_size=30))
def test_the_output_cites_only_known_passages(pieces: list[str]) -> None:
    kept, _, _ = filter_citations("".join(pieces), KNOWN)
    assert filter_citations(kept, KNOWN)[2] == ()


def test_a_stream_of_single_characters_is_not_held_back() -> None:
    check = CitationFilter(KNOWN)
    shown = ""
    for character in "Leases end [1]. " * 50:
        shown += check.feed(character)
    assert len(shown) > 700  # and not all at the end
    assert shown + check.finish() == "Leases end [1]. " * 50


def test_a_citation_says_where_the_passage_really_is() -> None:
    record = Record(
        id="docs/retries#1",
        text="x",
        title="Retries > Backoff",
        path="docs/retries.mdx",
        url="/docs/retries",
        lines=(10, 14),
        metadata={"anchor": "backoff"},
    )
    one = make_citation(3, record)
    assert (one.number, one.location, one.url) == (3, "docs/retries.mdx:10-14", "/docs/retries#backoff")
    assert str(one) == "[3] Retries > Backoff — docs/retries.mdx:10-14 (/docs/retries#backoff)"
    assert one.to_dict()["id"] == "docs/retries#1"
    plain = make_citation(1, Record(id="note", text="x"))
    assert (plain.location, str(plain)) == ("note", "[1] note")
