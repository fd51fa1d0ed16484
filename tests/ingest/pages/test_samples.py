"""The sample documentation: every page and example of it reads as it is meant to."""

from __future__ import annotations

from importlib import resources

import pytest

from sennit.ingest.pages import examples_from_file, examples_from_page, page_chunks

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
def test_a_sample_page_has_a_summary_and_an_address(path: str) -> None:
    page = page_chunks(FILES[path], path=path)
    assert [chunk.kind for chunk in page.chunks].count("PAGE_SUMMARY") == 1
    assert len(page.chunks) > 2
    assert page.url == f"/{path.rpartition('.')[0]}"
    assert page.tags


@pytest.mark.parametrize("path", EXAMPLES)
def test_a_sample_example_is_whole(path: str) -> None:
    (example,) = examples_from_file(FILES[path], path=path)
    assert example.title
    assert example.description
    assert example.language == "python"
    compile(example.code, path, "exec")
    assert example.url == f"/{path.removesuffix('.md')}"


def test_there_are_enough_of_both() -> None:
    assert len(PAGES) >= 12
    assert len(EXAMPLES) >= 8
    assert sum(len(examples_from_page(page_chunks(FILES[path], path=path), path=path)) for path in PAGES) >= 4
