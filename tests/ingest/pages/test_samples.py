"""The pages and examples of the sample documentation are parsed as intended."""

from __future__ import annotations

from importlib import resources

import pytest

from sennit.ingest.pages import examples_from_file, examples_from_page, parse_page

FOLDER = resources.files("sennit") / "samples" / "docs"
FILES = {
    f"{folder.name}/{file.name}": file.read_text(encoding="utf-8")
    for folder in FOLDER.iterdir()
    if folder.is_dir()
    for file in folder.iterdir()
}
PAGES = sorted(path for path in FILES if not path.startswith("examples/"))
EXAMPLES = sorted(path for path in FILES if path.startswith("examples/"))


@pytest.mark.parametrize("path", PAGES)
def test_a_sample_page_has_a_summary_and_a_url(path: str) -> None:
    page = parse_page(FILES[path], path=path)
    assert [chunk.kind for chunk in page.chunks].count("PAGE_SUMMARY") == 1
    assert len(page.chunks) > 2
    assert page.url == f"/{path.rpartition('.')[0]}"
    assert page.tags


@pytest.mark.parametrize("path", EXAMPLES)
def test_a_sample_example_is_complete(path: str) -> None:
    (example,) = examples_from_file(FILES[path], path=path)
    assert example.title
    assert example.description
    assert example.language == "python"
    compile(example.code, path, "exec")
    assert example.url == f"/{path.removesuffix('.md')}"


def test_there_are_enough_sample_pages_and_examples() -> None:
    assert len(PAGES) >= 12
    assert len(EXAMPLES) >= 8
    assert sum(len(examples_from_page(parse_page(FILES[path], path=path), path=path)) for path in PAGES) >= 4
