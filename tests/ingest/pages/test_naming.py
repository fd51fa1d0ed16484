"""The name and the address of a page."""

from __future__ import annotations

import pytest

from sennit.ingest.pages import PageOptions, page_chunks

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
def test_the_front_matter_the_title_or_the_path_names_a_page(text: str, path: str, name: str) -> None:
    assert page_chunks(text, path=path).name == name


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
def test_without_a_mapping_the_path_is_the_address(path: str, url: str | None) -> None:
    assert page_chunks("text", path=path).url == url


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
def test_the_longest_prefix_of_the_mapping_is_the_base(path: str, url: str) -> None:
    assert page_chunks("text", path=path, options=PageOptions(urls=URLS)).url == url


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
def test_the_front_matter_may_say_the_address(front: str, url: str) -> None:
    text = f"---\n{front}\n---\ntext"
    assert page_chunks(text, path="docs/guide/a.md", options=PageOptions(urls=URLS)).url == url


def test_an_address_given_by_the_caller_is_the_address() -> None:
    page = page_chunks("---\nslug: /x\n---\ntext", path="a.md", url="https://example.org/given")
    assert page.url == "https://example.org/given"
