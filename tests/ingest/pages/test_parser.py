"""A page is parsed into a summary, examples and sections, each with its headings and lines."""

from __future__ import annotations

import pytest

from sennit.errors import InvalidInput
from sennit.ingest.pages import DocPage, PageOptions, parse_page


def parsed(text: str, path: str = "docs/page.md", **options: object) -> DocPage:
    return parse_page(text, path=path, options=PageOptions(**options))  # type: ignore[arg-type]


def kinds(page: DocPage) -> list[tuple[str, str]]:
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
    page = parsed(PAGE)
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
def test_the_summary_is_the_section_with_a_summary_title(title: str) -> None:
    page = parsed(f"# T\n\nLead.\n\n## First\n\na\n\n## {title}\n\nb\n")
    assert [chunk.text for chunk in page.chunks if chunk.kind == "PAGE_SUMMARY"] == [f"## {title}\n\nb"]


@pytest.mark.parametrize("title", ["Examples", "Example", "`Examples`", "EXAMPLES", "Examples {#more}"])
def test_the_examples_are_the_section_with_an_examples_title(title: str) -> None:
    page = parsed(f"# T\n\nLead.\n\n## {title}\n\nb\n")
    assert [chunk.text for chunk in page.chunks if chunk.kind == "PAGE_EXAMPLES"] == [f"## {title}\n\nb"]


def test_without_a_summary_section_the_lead_is_the_summary() -> None:
    assert kinds(parsed("# T\n\nLead.\n\n## A\n\na\n")) == [("PAGE_SUMMARY", "T"), ("SECTION", "A")]
    assert kinds(parsed("Lead.\n\n## A\n\na\n")) == [("PAGE_SUMMARY", "Page"), ("SECTION", "A")]


def test_without_a_lead_the_description_is_the_summary() -> None:
    page = parsed("---\ntitle: T\ndescription: What it is.\n---\n## A\n\na\n")
    assert [(chunk.kind, chunk.text, chunk.first_line, chunk.last_line) for chunk in page.chunks] == [
        ("PAGE_SUMMARY", "What it is.", 1, 4),
        ("SECTION", "## A\n\na", 5, 7),
    ]


def test_without_lead_or_description_the_first_section_is_the_summary() -> None:
    page = parsed("# T\n\n## A\n\na\n\n## B\n\nb\n")
    assert [(chunk.kind, chunk.text) for chunk in page.chunks] == [
        ("PAGE_SUMMARY", "# T\n\n## A\n\na"),
        ("SECTION", "## B\n\nb"),
    ]
    assert page.chunks[0].heading_path == ("T", "A")


def test_examples_are_the_summary_only_if_there_is_nothing_else() -> None:
    assert kinds(parsed("# T\n\n## Examples\n\na\n")) == [
        ("PAGE_SUMMARY", "T"),
        ("PAGE_EXAMPLES", "Examples"),
    ]
    assert kinds(parsed("## Examples\n\na\n\n## B\n\nb\n")) == [
        ("PAGE_EXAMPLES", "Examples"),
        ("PAGE_SUMMARY", "B"),
    ]
    assert kinds(parsed("## Examples\n\na\n")) == [("PAGE_SUMMARY", "Examples")]


def test_a_page_without_headings_is_a_summary() -> None:
    page = parsed("Just text.\n\nAnd more.\n", path="docs/getting-started.md")
    assert [(chunk.kind, chunk.title, chunk.heading_path, chunk.text) for chunk in page.chunks] == [
        ("PAGE_SUMMARY", "Getting started", (), "Just text.\n\nAnd more.")
    ]
    assert parsed("").chunks == parsed("\n \n").chunks == ()


def test_subsections_of_the_examples_belong_to_them() -> None:
    text = "# T\n\nLead.\n\n## Examples\n\n### One\n\na\n\n### Two\n\nb\n\n## End\n\nc\n"
    page = parsed(text)
    assert kinds(page) == [("PAGE_SUMMARY", "T"), ("PAGE_EXAMPLES", "Examples"), ("SECTION", "End")]
    assert "### Two\n\nb" in page.chunks[1].text
    small = parsed(text, max_chars=30, target_chars=20, min_chars=5)
    assert kinds(small)[1:3] == [("PAGE_EXAMPLES", "Examples"), ("SECTION", "Two")]


def test_examples_of_several_sections_are_not_the_examples_of_the_page() -> None:
    page = parsed("# API\n\nLead.\n\n## a()\n\n### Examples\n\n1\n\n## b()\n\n### Examples\n\n2\n")
    assert "PAGE_EXAMPLES" not in dict(kinds(page))
    assert [chunk.anchor for chunk in page.chunks if chunk.title == "Examples"] == ["examples", "examples-1"]


def test_an_empty_section_joins_its_first_subsection() -> None:
    page = parsed("# T\n\nLead.\n\n## API\n\n### a()\n\nx\n\n## Empty\n\n## End\n\ny\n")
    assert [chunk.text for chunk in page.chunks[1:]] == ["## API\n\n### a()\n\nx", "## Empty", "## End\n\ny"]


def test_underlined_headings_are_headings() -> None:
    page = parsed("Title\n=====\n\nLead.\n\nPart one\nand two\n---\n\na\n")
    assert [(chunk.title, chunk.first_line, chunk.last_line) for chunk in page.chunks] == [
        ("Title", 1, 4),
        ("Part one and two", 6, 10),
    ]


def test_a_hash_in_code_is_not_a_heading() -> None:
    text = "# T\n\nLead.\n\n```sh\n# one\n```\n\n~~~\n## two\n```\n## three\n~~~\n\n    # four\n\n- x\n\n  ```\n  # five\n  ```\n"
    assert kinds(parsed(text)) == [("PAGE_SUMMARY", "T")]


def test_headings_in_lists_quotes_and_admonitions_are_not_sections() -> None:
    text = (
        "# T\n\nLead.\n\n> ## a\n\n- ## b\n\n:::note\n## c\n:::\n\n!!! tip\n    ## d\n\n> [!NOTE]\n> ## e\n"
    )
    assert kinds(parsed(text)) == [("PAGE_SUMMARY", "T")]


def test_an_unclosed_admonition_hides_no_heading() -> None:
    assert kinds(parsed("# T\n\nLead.\n\n:::note\n\n## A\n\na\n")) == [
        ("PAGE_SUMMARY", "T"),
        ("SECTION", "A"),
    ]


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
def test_titles_have_no_markup_and_have_anchors(heading: str, title: str, anchor: str) -> None:
    chunk = parsed(f"# T\n\nLead.\n\n## {heading}\n\nx\n").chunks[1]
    assert (chunk.title, chunk.anchor) == (title, anchor)


def test_windows_line_ends_and_a_byte_order_mark_change_nothing() -> None:
    plain = parsed(PAGE)
    assert parsed("\ufeff" + PAGE.replace("\n", "\r\n")) == plain


def test_sizes_are_checked() -> None:
    with pytest.raises(InvalidInput, match="min_chars <= target_chars <= max_chars"):
        PageOptions(max_chars=100, target_chars=200)
