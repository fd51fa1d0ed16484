"""Examples from example files, from the examples of a page, and from JSON lines."""

from __future__ import annotations

import pytest

import sennit
from sennit.errors import InvalidInput
from sennit.ingest.pages import (
    Example,
    example_records,
    examples_from_file,
    examples_from_jsonl,
    examples_from_page,
    page_records,
    parse_page,
)

FILE = """\
---
title: Nightly report
description: Sends a report every night.
tags: [schedule, mail]
url: /examples/nightly
---

Anything else.

```python
@every("1d")
def report(): ...
```
"""


def test_a_file_with_front_matter_and_code_is_an_example() -> None:
    assert examples_from_file(FILE, path="examples/nightly.md") == [
        Example(
            "examples/nightly.md#example",
            "Nightly report",
            "Sends a report every night.",
            '@every("1d")\ndef report(): ...',
            "/examples/nightly",
            ("schedule", "mail"),
            "python",
            (10, 13),
        )
    ]


def test_without_a_description_the_text_before_the_code_describes_it() -> None:
    text = FILE.replace("description: Sends a report every night.\n", "")
    assert examples_from_file(text, path="a.md")[0].description == "Anything else."


def test_a_file_without_code_gives_no_example() -> None:
    assert examples_from_file("---\ntitle: x\n---\ntext\n", path="a.md") == []


PAGE = """\
# Retries

Lead.

## Examples

Wait longer each time:

```python
retry(delay=2)
```

### By hand

- Give up

  ```python
  raise GiveUp
  ```

<Repl tune={`s("bd")
.fast(2)`} />

## Other

```python
not_an_example()
```
"""


def test_each_code_block_in_the_examples_of_a_page_is_an_example() -> None:
    page = parse_page(PAGE, path="docs/retries.mdx")
    found = examples_from_page(page, path="docs/retries.mdx")
    assert [(e.title, e.description, e.code, e.language, e.lines) for e in found] == [
        ("Retries", "Wait longer each time:", "retry(delay=2)", "python", (9, 11)),
        ("Retries: By hand", "", "raise GiveUp", "python", (17, 19)),
        ("Retries: By hand", "", 's("bd")\n.fast(2)', "strudel", (21, 22)),
    ]
    assert {e.url for e in found} == {"/docs/retries"}
    assert len({e.id for e in found}) == 3


def test_each_json_line_is_an_example() -> None:
    text = '{"title": "A", "code": "a()", "tags": ["x"]}\n\n{"id": "own", "title": "B", "code": "b()", "url": "/b"}\n'
    first, second = examples_from_jsonl(text, path="examples.jsonl")
    assert (first.id, first.tags, first.lines) == ("examples.jsonl#example-1", ("x",), (1, 1))
    assert (second.id, second.url, second.lines) == ("own", "/b", (3, 3))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: an example is an object, not list"),
        ('{"title": "A"}', "line 2: an example needs the field 'code'"),
        ('{"title": "A", "code": "a", "extra": 1}', "line 2: an example has no field 'extra'"),
        ('{"title": "A", "code": 1}', "line 2: code must be a string"),
        ('{"title": "A", "code": "a", "tags": "x"}', "line 2: tags must be a list of strings"),
    ],
)
def test_the_error_about_an_invalid_line_names_the_line(line: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        examples_from_jsonl('{"title": "A", "code": "a"}\n' + line, path="e.jsonl")


def test_pages_and_examples_are_stored_in_separate_collections() -> None:
    page = parse_page(PAGE, path="docs/retries.mdx")
    with sennit.open(":memory:") as db:
        db.add(page_records(page, path="docs/retries.mdx"))
        db.add(example_records(examples_from_page(page, path="docs/retries.mdx"), path="docs/retries.mdx"))
        records = {record.id: record for record in db}
    docs = sorted((r for r in records.values() if r.collection == "docs"), key=lambda r: r.position or 0)
    assert [record.kind for record in docs] == ["PAGE_SUMMARY", "PAGE_EXAMPLES", "SECTION"]
    assert docs[2].title == "Retries > Other"
    assert docs[2].metadata["page_name"] == "Retries"
    assert docs[2].metadata["page_url"] == docs[2].url == "/docs/retries"
    assert docs[2].metadata["section_title"] == "Other"
    assert docs[2].metadata["heading_path"] == ["Retries", "Other"]
    assert docs[2].lines == (24, 28)
    examples = [record for record in records.values() if record.collection == "examples"]
    assert len(examples) == 3
    assert all(str(record.metadata["code"]) in record.text for record in examples)


def test_the_id_of_a_chunk_does_not_depend_on_other_chunks() -> None:
    def ids(text: str) -> dict[str, str]:
        page = parse_page(text, path="a.md")
        return {r.text: r.id for r in page_records(page, path="a.md")}

    before, after = ids(PAGE), ids(PAGE.replace("Lead.", "Another lead."))
    assert {text: before[text] for text in before if text in after} == {
        text: after[text] for text in after if text in before
    }
    assert len(set(before) & set(after)) == 2
    assert len(set(ids("# T\n\nx\n\n## A\n\n## A\n").values())) == 2
