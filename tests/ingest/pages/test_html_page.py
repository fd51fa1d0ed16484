"""HTML pages are parsed into the same kinds of chunks as Markdown pages."""

from __future__ import annotations

import pytest

from sennit.ingest.pages import PageOptions, parse_page

PAGE = """\
<!doctype html>
<html><head>
<title>Queues - Ferry</title>
<link href="https://example.org/docs/queues" rel="canonical">
<meta name="description" content="Where jobs &amp; such wait">
</head><body>
<h1>Queues</h1>
<p>A queue holds jobs.</p>
<h2>Overview</h2>
<p>Jobs wait
here.</p>
<h2>Names</h2>
<h3>Reserved</h3>
<p>Dots.</p>
<h2>Examples</h2>
<pre>
q = Queue()
# one
</pre>
</body></html>
"""


def test_an_html_page_has_a_summary_examples_and_sections() -> None:
    page = parse_page(PAGE, path="site/queues.html")
    assert (page.name, page.url, page.description) == (
        "Queues",
        "https://example.org/docs/queues",
        "Where jobs & such wait",
    )
    assert [(chunk.kind, chunk.title, chunk.first_line, chunk.last_line) for chunk in page.chunks] == [
        ("SECTION", "Queues", 3, 8),
        ("PAGE_SUMMARY", "Overview", 9, 11),
        ("SECTION", "Reserved", 12, 14),
        ("PAGE_EXAMPLES", "Examples", 15, 18),
    ]
    assert page.chunks[2].heading_path == ("Queues - Ferry", "Queues", "Names", "Reserved")
    assert page.chunks[3].text == "Examples\n\nq = Queue()\n# one"


def test_a_long_html_section_is_cut_between_paragraphs() -> None:
    paragraph = "<p>" + "Some words in a paragraph. " * 10 + "</p>\n"
    page = parse_page("<h1>T</h1>\n" + paragraph * 20, path="a.html")
    assert len(page.chunks) > 3
    assert all(chunk.text.endswith("paragraph.") for chunk in page.chunks)
    assert page.chunks[-1].last_line == 21


@pytest.mark.parametrize(
    "code",
    [
        [f"call({number})  # Says something. Then more." for number in range(6)],
        ["first()", "", "second()", "", "third()  # " + "word " * 30],
        ["One line of output. " * 12],
    ],
    ids=["lines", "blank lines", "a long line"],
)
def test_a_pre_that_fits_into_a_chunk_is_not_split(code: list[str]) -> None:
    sizes = PageOptions(max_chars=300, target_chars=100, min_chars=40)
    words = "<p>" + "Some words about it. " * 9 + "</p>\n"
    source = f"<h1>T</h1>\n{words}<pre><code>" + "\n".join(code) + f"</code></pre>\n{words}{words}"
    page = parse_page(source, path="a.html", options=sizes)
    assert len(page.chunks) > 2
    shown = "\n".join(code).rstrip()
    assert len(shown) < sizes.max_chars
    lines = [line.strip() for line in code if line]
    assert [shown in chunk.text for chunk in page.chunks if any(line in chunk.text for line in lines)] == [
        True
    ]


def test_the_lines_of_a_pre_are_unchanged() -> None:
    code = "if a:\n\tb()  \n\n\n    c()"
    source = f"<h1>T</h1>\n<p>Before.</p><pre>\n{code}\n    </pre><p>After.</p>"
    (chunk,) = parse_page(source, path="a.html").chunks
    assert chunk.text == f"T\n\nBefore.\n\n{code}\n    \nAfter."
    assert (chunk.first_line, chunk.last_line) == (1, 8)


def test_a_long_pre_is_cut_between_lines() -> None:
    code = [f"call({number}, 'a value. Another value.')" for number in range(40)]
    sizes = PageOptions(max_chars=300, target_chars=200, min_chars=80)
    page = parse_page("<pre>\n" + "\n".join(code) + "\n</pre>", path="a.html", options=sizes)
    assert len(page.chunks) > 3
    assert [line for chunk in page.chunks for line in chunk.text.split("\n")] == code


def test_an_unclosed_pre_hides_no_paragraph() -> None:
    page = parse_page("<p>Before.</p><pre>code\n<p>After.</p>", path="a.html")
    assert [chunk.text for chunk in page.chunks] == ["Before.\n\ncode\n\nAfter."]
