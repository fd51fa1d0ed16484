"""Long sections are cut between blocks, and continuations repeat the head of a table or fence."""

from __future__ import annotations

from sennit.ingest.pages import PageChunk, PageOptions, parse_page

SIZES = PageOptions(max_chars=300, target_chars=200, min_chars=80)


def parts(text: str, path: str = "a.md") -> list[PageChunk]:
    return list(parse_page(text, path=path, options=SIZES).chunks)


def test_a_section_that_fits_is_one_chunk() -> None:
    text = "## A\n\n" + "word " * 50
    assert len(parts(text)) == 1


def test_paragraphs_are_not_split() -> None:
    paragraphs = [
        f"Paragraph {number} has a few words, and then some more to be longer." for number in range(12)
    ]
    found = parts("## A\n\n" + "\n\n".join(paragraphs))
    assert len(found) > 2
    assert [line for chunk in found for line in chunk.text.split("\n\n")][1:] == paragraphs
    assert [(chunk.part, chunk.parts) for chunk in found] == [(n + 1, len(found)) for n in range(len(found))]
    assert {chunk.title for chunk in found} == {"A"}


def test_only_the_first_part_is_the_summary() -> None:
    found = parts("## Overview\n\n" + "A sentence of some words.\n\n" * 30)
    assert [chunk.kind for chunk in found] == ["PAGE_SUMMARY"] + ["SECTION"] * (len(found) - 1)


def test_a_fence_that_fits_into_a_chunk_is_not_split() -> None:
    fence = "```js\n" + "\n\n".join(f"call({number})" for number in range(18)) + "\n```"
    assert len(fence) < SIZES.max_chars
    found = parts("## A\n\n" + "Some words before it. " * 8 + "\n\n" + fence + "\n\n" + "And after. " * 20)
    assert [fence in chunk.text for chunk in found].count(True) == 1


def test_a_long_fence_is_cut_at_blank_lines_and_repeats_its_opening_line() -> None:
    stanza = "let a = 1\nlet b = 2\nlet c = a + b\n"
    found = parts("## A\n\nText.\n\n```js\n" + "\n".join([stanza] * 40) + "```\n")
    later = [chunk for chunk in found if chunk.repeated_lines]
    assert len(later) > 2
    for chunk in later:
        assert chunk.text.startswith("```js\nlet a = 1\n")
        assert chunk.repeated_lines == 1
        assert chunk.text.rstrip("`\n").endswith("let c = a + b")
    assert found[-1].text.endswith("```")


def test_a_long_table_is_cut_between_rows_and_repeats_its_head() -> None:
    head = "| name | what |\n|---|---|"
    rows = [f"| row{number} | does something useful |" for number in range(30)]
    found = parts("## A\n\n" + head + "\n" + "\n".join(rows))
    assert len(found) > 2
    seen = []
    for chunk in found[1:]:
        assert chunk.text.startswith(head)
        assert chunk.repeated_lines == 2
        seen += chunk.text.split("\n")[2:]
        assert len(chunk.text.split("\n")) - 2 == chunk.last_line - chunk.first_line + 1
    assert rows[-len(seen) :] == seen


def test_a_list_is_cut_between_items_of_the_outer_list() -> None:
    item = "- an item with a few words\n  that go on\n  - with an inner one\n"
    found = parts("## A\n\n" + item * 12)
    assert len(found) > 2
    assert all(chunk.text.startswith("- an item") for chunk in found[1:])


def test_a_paragraph_stays_with_what_it_introduces() -> None:
    filler = "Some words to fill the page with. " * 5
    found = parts(
        f"## A\n\n{filler}\n\nIt takes three values:\n\n- one\n- two\n- three\n\n{filler}\n\n{filler}"
    )
    introduced = next(chunk for chunk in found if "- one" in chunk.text)
    assert "It takes three values:" in introduced.text


def test_a_long_line_is_cut_between_sentences() -> None:
    sentence = "This is a sentence about nothing at all. "
    found = parts("## A\n\n" + sentence * 30)
    assert len(found) > 3
    assert all(chunk.text.endswith("all.") for chunk in found)
    assert {(chunk.first_line, chunk.last_line) for chunk in found[1:]} == {(3, 3)}


def test_text_without_cut_points_is_cut_at_the_maximum_length() -> None:
    found = parts("x" * 2000)
    assert "".join(chunk.text for chunk in found) == "x" * 2000
    assert all(len(chunk.text) <= SIZES.max_chars for chunk in found)


def test_a_section_is_cut_where_the_topic_changes() -> None:
    harbour = "The harbour master counts ships while the harbour pilots guide ships into the harbour basin. "
    bread = "The baker kneads dough before dawn and the bread oven bakes dough into crusty loaves daily. "
    found = parts("## A\n\n" + harbour * 2 + bread * 2)
    assert not any("harbour" in chunk.text and "baker" in chunk.text for chunk in found)
    assert len(found) == 2


def test_no_part_ends_with_a_heading() -> None:
    text = "# T\n\nLead.\n\n## Examples\n\n" + "".join(
        f"### Number {n}\n\n{'words ' * 12}\n\n" for n in range(3)
    )
    for chunk in parts(text):
        assert not chunk.text.split("\n")[-1].startswith("#")
