"""MDX: imports are metadata, code in components stays unchanged, and the text between tags is Markdown."""

from __future__ import annotations

from sennit.ingest.pages import parse_page

PAGE = """\
---
title: Tempo
---
import { MiniRepl } from '../components/MiniRepl';
import {
  Box,
  Tabs,
} from "../components";

export const meta = {
  level: 2,

  # : 'not a heading'
};

Lead text.

<MiniRepl client:idle tune={`
# not a heading

s("bd*2 <sd hh>")
// ## nor this
`} punchcard />

<Tabs items={["a", "b"]}>
  <Box title="x > y">

## Inside a tab

    ```js
    # code, however it is indented
    ```

  </Box>
</Tabs>

{/* ## a comment

## of several lines */}

Text with a lonely { brace and <angle.

## Examples

<MiniRepl tune={`note("c3 e3")`} />
"""


def test_code_and_comments_have_no_headings() -> None:
    page = parse_page(PAGE, path="docs/tempo.mdx")
    assert [(chunk.kind, chunk.title, chunk.first_line, chunk.last_line) for chunk in page.chunks] == [
        ("PAGE_SUMMARY", "Tempo", 10, 26),
        ("SECTION", "Inside a tab", 28, 41),
        ("PAGE_EXAMPLES", "Examples", 43, 45),
    ]


def test_imports_and_front_matter_are_metadata() -> None:
    page = parse_page(PAGE, path="docs/tempo.mdx")
    assert page.metadata_lines == ((1, 3), (4, 4), (5, 8))
    assert not any("import" in chunk.text for chunk in page.chunks)


def test_code_in_a_prop_is_unchanged() -> None:
    page = parse_page(PAGE, path="docs/tempo.mdx")
    assert (
        'tune={`\n# not a heading\n\ns("bd*2 <sd hh>")\n// ## nor this\n`} punchcard />'
        in page.chunks[0].text
    )


def test_markdown_with_an_import_at_the_top_is_mdx() -> None:
    text = "import A from './a'\n\n<A b={`\n# x\n`} />\n"
    assert [chunk.title for chunk in parse_page(text, path="a.md").chunks] == ["A"]
    assert len(parse_page(text.split("\n\n", 1)[1], path="a.md").chunks) == 1
    assert parse_page("import this\n\n# T\n", path="a.md").chunks[0].text == "import this\n\n# T"


def test_an_import_in_a_fence_does_not_make_a_page_mdx() -> None:
    text = "# T\n\n```js\nimport a from 'a';\n```\n\n<table>\n<tr>\n\n# In\n"
    assert parse_page(text, path="a.md").metadata_lines == ()


def test_a_component_in_a_list_does_not_end_the_list() -> None:
    text = "# T\n\n1. one\n\n   <A b={`\n   # x\n   `} />\n\n2. two\n"
    (chunk,) = parse_page(text, path="a.mdx").chunks
    assert chunk.last_line == 9


def test_an_unclosed_tag_hides_no_heading() -> None:
    text = "# T\n\nLead.\n\n<Broken attr={`\n\n## A\n\na\n"
    assert [chunk.title for chunk in parse_page(text, path="a.mdx").chunks] == ["T", "A"]


def test_braces_in_strings_templates_and_comments_are_ignored() -> None:
    text = "<A b={{ c: \"}\", d: '}', e: `} ${f({g: 1})} }`, /* } */ h: 1 // }\n}}>\n\n## In\n\n</A>\n"
    assert [chunk.title for chunk in parse_page(text, path="a.mdx").chunks] == ["A", "In"]
