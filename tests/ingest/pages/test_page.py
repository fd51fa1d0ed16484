"""A page becomes a summary, its examples and its sections, each with its headings and lines."""

from __future__ import annotations

import pytest

from sennit.errors import InvalidInput
from sennit.ingest.pages import Page, PageOptions, page_chunks


def made(text: str, path: str = "docs/page.md", **options: object) -> Page:
    return page_chunks(text, path=path, options=PageOptions(**options))  # type: ignore[arg-type]


def kinds(page: Page) -> list[tuple[str, str]]:
    return [(chunk.kind, chunk.title) for chunk in page.chunks]


PAGE = """\
# Queues

A queue holds jobs.

## Overview

Jobs wait here.

## Names

Letters and digits.

### Reserved names

Those with a dot.

## Examples

```python
queue = Queue("mail")  # one queue
```
"""


def test_a_page_has_a_summary_examples_and_its_other_sections() -> None:
    page = made(PAGE)
    assert kinds(page) == [
        ("SECTION", "Queues"),
        ("PAGE_SUMMARY", "Overview"),
        ("SECTION", "Names"),
        ("SECTION", "Reserved names"),
        ("PAGE_EXAMPLES", "Examples"),
    ]
    assert page.name == page.title == "Queues"
    reserved = page.chunks[3]
    assert reserved.heading_path == ("Queues", "Names", "Reserved names")
    assert (reserved.first_line, reserved.last_line) == (13, 15)
    assert reserved.text == "### Reserved names\n\nThose with a dot."
    assert reserved.anchor == "reserved-names"


@pytest.mark.parametrize(
    "title", ["Summary", "Overview", "summary", "1. Overview", "**Summary**", "Overview:", "2.1 Summary"]
)
def test_the_summary_is_the_section_of_that_name(title: str) -> None:
    page = made(f"# T\n\nLead.\n\n## First\n\na\n\n## {title}\n\nb\n")
    assert [chunk.text for chunk in page.chunks if chunk.kind == "PAGE_SUMMARY"] == [f"## {title}\n\nb"]


@pytest.mark.parametrize("title", ["Examples", "Example", "`Examples`", "EXAMPLES", "Examples {#more}"])
def test_the_examples_are_the_section_of_that_name(title: str) -> None:
    page = made(f"# T\n\nLead.\n\n## {title}\n\nb\n")
    assert [chunk.text for chunk in page.chunks if chunk.kind == "PAGE_EXAMPLES"] == [f"## {title}\n\nb"]


def test_without_such_a_section_the_lead_is_the_summary() -> None:
    assert kinds(made("# T\n\nLead.\n\n## A\n\na\n")) == [("PAGE_SUMMARY", "T"), ("SECTION", "A")]
    assert kinds(made("Lead.\n\n## A\n\na\n")) == [("PAGE_SUMMARY", "Page"), ("SECTION", "A")]


def test_without_a_lead_the_description_is_the_summary() -> None:
    page = made("---\ntitle: T\ndescription: What it is.\n---\n## A\n\na\n")
    assert [(chunk.kind, chunk.text, chunk.first_line, chunk.last_line) for chunk in page.chunks] == [
        ("PAGE_SUMMARY", "What it is.", 1, 4),
        ("SECTION", "## A\n\na", 5, 7),
    ]


def test_without_either_the_first_section_is_the_summary() -> None:
    page = made("# T\n\n## A\n\na\n\n## B\n\nb\n")
    assert [(chunk.kind, chunk.text) for chunk in page.chunks] == [
        ("PAGE_SUMMARY", "# T\n\n## A\n\na"),
        ("SECTION", "## B\n\nb"),
    ]
    assert page.chunks[0].heading_path == ("T", "A")


def test_examples_are_not_the_summary_while_there_is_anything_else() -> None:
    assert kinds(made("# T\n\n## Examples\n\na\n")) == [("PAGE_SUMMARY", "T"), ("PAGE_EXAMPLES", "Examples")]
    assert kinds(made("## Examples\n\na\n\n## B\n\nb\n")) == [
        ("PAGE_EXAMPLES", "Examples"),
        ("PAGE_SUMMARY", "B"),
    ]
    assert kinds(made("## Examples\n\na\n")) == [("PAGE_SUMMARY", "Examples")]


def test_a_page_without_headings_is_a_summary() -> None:
    page = made("Just text.\n\nAnd more.\n", path="docs/getting-started.md")
    assert [(chunk.kind, chunk.title, chunk.heading_path, chunk.text) for chunk in page.chunks] == [
        ("PAGE_SUMMARY", "Getting started", (), "Just text.\n\nAnd more.")
    ]
    assert made("").chunks == made("\n \n").chunks == ()


def test_what_is_below_the_examples_belongs_to_them() -> None:
    text = "# T\n\nLead.\n\n## Examples\n\n### One\n\na\n\n### Two\n\nb\n\n## End\n\nc\n"
    page = made(text)
    assert kinds(page) == [("PAGE_SUMMARY", "T"), ("PAGE_EXAMPLES", "Examples"), ("SECTION", "End")]
    assert "### Two\n\nb" in page.chunks[1].text
    small = made(text, most=30, target=20, least=5)
    assert kinds(small)[1:3] == [("PAGE_EXAMPLES", "Examples"), ("SECTION", "Two")]


def test_examples_of_several_sections_are_theirs_and_not_the_pages() -> None:
    page = made("# API\n\nLead.\n\n## a()\n\n### Examples\n\n1\n\n## b()\n\n### Examples\n\n2\n")
    assert "PAGE_EXAMPLES" not in dict(kinds(page))
    assert [chunk.anchor for chunk in page.chunks if chunk.title == "Examples"] == ["examples", "examples-1"]


def test_a_heading_with_nothing_under_it_stands_above_what_it_is_about() -> None:
    page = made("# T\n\nLead.\n\n## API\n\n### a()\n\nx\n\n## Empty\n\n## End\n\ny\n")
    assert [chunk.text for chunk in page.chunks[1:]] == ["## API\n\n### a()\n\nx", "## Empty", "## End\n\ny"]


def test_atx_and_underlined_headings_are_the_same() -> None:
    page = made("Title\n=====\n\nLead.\n\nPart one\nand two\n---\n\na\n")
    assert [(chunk.title, chunk.first_line, chunk.last_line) for chunk in page.chunks] == [
        ("Title", 1, 4),
        ("Part one and two", 6, 10),
    ]


def test_a_hash_in_code_is_no_heading() -> None:
    text = "# T\n\nLead.\n\n```sh\n# one\n```\n\n~~~\n## two\n```\n## three\n~~~\n\n    # four\n\n- x\n\n  ```\n  # five\n  ```\n"
    assert kinds(made(text)) == [("PAGE_SUMMARY", "T")]


def test_headings_in_lists_quotes_and_asides_are_no_sections() -> None:
    text = (
        "# T\n\nLead.\n\n> ## a\n\n- ## b\n\n:::note\n## c\n:::\n\n!!! tip\n    ## d\n\n> [!NOTE]\n> ## e\n"
    )
    assert kinds(made(text)) == [("PAGE_SUMMARY", "T")]


def test_an_aside_that_is_never_closed_hides_nothing() -> None:
    assert kinds(made("# T\n\nLead.\n\n:::note\n\n## A\n\na\n")) == [("PAGE_SUMMARY", "T"), ("SECTION", "A")]


@pytest.mark.parametrize(
    ("heading", "title", "anchor"),
    [
        ("The `run()` call", "The run() call", "the-run-call"),
        ("**Bold** and _it_", "Bold and it", "bold-and-it"),
        ("[Link](a.md) to ![icon](i.png)", "Link to icon", "link-to-icon"),
        ("snake_case_name", "snake_case_name", "snake_case_name"),
        ("Named {#my-id}", "Named", "my-id"),
        ("A <small>tag</small> &amp; more", "A tag & more", "a-tag--more"),
        ("Closed ##", "Closed", "closed"),
        ("\\*plain\\*", "*plain*", "plain"),
        ("über 日本", "über 日本", "über-日本"),
    ],
)
def test_a_title_is_what_a_reader_sees(heading: str, title: str, anchor: str) -> None:
    chunk = made(f"# T\n\nLead.\n\n## {heading}\n\nx\n").chunks[1]
    assert (chunk.title, chunk.anchor) == (title, anchor)


def test_windows_lines_and_a_mark_of_order_change_nothing() -> None:
    plain = made(PAGE)
    assert made("\ufeff" + PAGE.replace("\n", "\r\n")) == plain


def test_sizes_are_checked() -> None:
    with pytest.raises(InvalidInput, match="least <= target <= most"):
        PageOptions(most=100, target=200)
