"""The name and the URL of a page."""

from __future__ import annotations

import pytest

from sennit.ingest.pages import PageOptions, parse_page

URLS = {
    "docs/": "https://example.org/docs/",
    "docs/api": "https://api.example.org/",
    "/srv/site/": "https://example.org",
}


@pytest.mark.parametrize(
    ("text", "path", "name"),
    [
        ("---\ntitle: Front\n---\n# Heading\n", "a.md", "Front"),
        ("# Heading\n", "a.md", "Heading"),
        ("## Only a section\n", "docs/getting-started.md", "Getting started"),
        ("text", "docs/02-first_steps.mdx", "First steps"),
        ("text", "docs/queues/index.md", "Queues"),
        ("text", "docs/README.md", "Docs"),
        ('<h1 align="center">Logo <b>name</b></h1>\n\ntext', "README.md", "Logo name"),
        ("---\ntitle: 2024\n---\ntext", "a.md", "2024"),
    ],
)
def test_the_name_is_the_title_or_comes_from_the_path(text: str, path: str, name: str) -> None:
    assert parse_page(text, path=path).name == name


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("docs/intro.md", "/docs/intro"),
        ("concepts/leases.mdx", "/concepts/leases"),
        ("./docs/a b.md", "/docs/a%20b"),
        ("docs/queues/index.md", "/docs/queues"),
        ("index.md", "/"),
        ("/somewhere/docs/intro.md", None),
        ("../docs/intro.md", None),
    ],
)
def test_without_a_mapping_the_url_is_the_path(path: str, url: str | None) -> None:
    assert parse_page("text", path=path).url == url


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("docs/intro.md", "https://example.org/docs/intro"),
        ("docs/index.md", "https://example.org/docs"),
        ("docs/api/run.md", "https://api.example.org/run"),
        ("/srv/site/concepts/leases.md", "https://example.org/concepts/leases"),
        ("docs2/intro.md", "/docs2/intro"),
    ],
)
def test_the_longest_matching_prefix_gives_the_base_url(path: str, url: str) -> None:
    assert parse_page("text", path=path, options=PageOptions(urls=URLS)).url == url


@pytest.mark.parametrize(
    ("front", "url"),
    [
        ("slug: /start", "https://example.org/start"),
        ("slug: start", "https://example.org/docs/guide/start"),
        ("permalink: /p/", "https://example.org/p/"),
        ("url: https://other.example/x", "https://other.example/x"),
        ("url: ''\nslug: s", "https://example.org/docs/guide/s"),
    ],
)
def test_the_front_matter_may_set_the_url(front: str, url: str) -> None:
    text = f"---\n{front}\n---\ntext"
    assert parse_page(text, path="docs/guide/a.md", options=PageOptions(urls=URLS)).url == url


def test_the_url_argument_takes_precedence() -> None:
    page = parse_page("---\nslug: /x\n---\ntext", path="a.md", url="https://example.org/given")
    assert page.url == "https://example.org/given"
