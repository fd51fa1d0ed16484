"""What a search prints of a result: code as numbered lines, prose as sentences, and nothing else with --files."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit import Record
from sennit.apps.cli import output
from sennit.apps.excerpts import (
    ExcerptOptions,
    best_passages,
    best_sentence_line,
    excerpt_lines,
    find_matches,
    highlight_spans,
    is_code,
)
from sennit.apps.locations import display_citation, record_link, short_id
from sennit.places import shown_path

from .conftest import Cli

CODE = '''import time


def retry(operation, attempts=3):
    """Call an operation again when it fails."""
    for attempt in range(attempts):
        try:
            return operation()
        except OSError:
            time.sleep(2 ** attempt)
    raise RuntimeError("gave up")
'''
SOURCE = Record(id="a", text=CODE.rstrip("\n"), path="a.py", lines=(10, 20), metadata={"language": "python"})


def shown(options: ExcerptOptions, query: str = "retry operation fails") -> list[tuple[int | None, str]]:
    return [(line.number, line.text) for line in excerpt_lines(SOURCE, SOURCE.text, query, options)]


def test_code_is_shown_as_numbered_lines_with_indentation() -> None:
    assert is_code(SOURCE)
    assert shown(ExcerptOptions())[:3] == [
        (13, "def retry(operation, attempts=3):"),
        (14, '    """Call an operation again when it fails."""'),
        (15, "    for attempt in range(attempts):"),
    ]


def test_context_shows_lines_around_the_best_one() -> None:
    assert [number for number, _ in shown(ExcerptOptions(context=1), "gave up")] == [19, 20]
    assert [number for number, _ in shown(ExcerptOptions(context=0), "sleep")] == [19]


def test_full_shows_the_whole_text() -> None:
    assert "\n".join(text for _, text in shown(ExcerptOptions(full=True))) == SOURCE.text


def test_lines_have_no_numbers_if_the_text_is_not_that_of_the_file() -> None:
    record = Record(id="a", text=CODE, path="a.py", lines=(1, 2), metadata={"language": "python"})
    assert {line.number for line in excerpt_lines(record, CODE, "retry", ExcerptOptions())} == {None}


@given(st.text(), st.text(max_size=20), st.integers(0, 5))
def test_any_text_has_an_excerpt(text: str, query: str, context: int) -> None:
    record = Record(id="a", text=text)
    for options in (ExcerptOptions(), ExcerptOptions(context), ExcerptOptions(full=True)):
        for line in excerpt_lines(record, text, query, options):
            assert "\n" not in line.text
            assert all(0 <= a < b <= len(line.text) for a, b in line.spans)
    sentences = best_sentence_line(text, query, 80)
    assert "\n" not in sentences
    assert len(sentences) <= 90


def test_prose_is_shown_as_its_best_sentences_in_order() -> None:
    text = (
        "# Backups\n\nBackups run at two. They take an hour.\nNobody notices them.\n\n"
        "## Restore\n\nStop the server. Then restore the backup with one command.\n"
    )
    assert best_sentence_line(text, "restore the backup", 80) == (
        "Backups run at two. … Then restore the backup with one command."
    )
    assert best_sentence_line(text, "unrelated", 40).startswith("Backups run at two. They take an hour.")
    assert best_sentence_line("# Only a heading", "x", 80) == "Only a heading"


def marked(text: str, query: str, width: int = 200) -> str:
    line = best_sentence_line(text, query, width)
    return highlight_spans(line, find_matches(line, query), lambda word: f"[{word}]")


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("We run; she was running.", "runs", "We [run]; she was [running]."),
        ("Straße und GRÖSSE", "größe", "Straße und [GRÖSSE]"),
        ("call parseHttpRequest now", "http", "call [parseHttpRequest] now"),
        ("全文检索引擎很快", "检索", "全文[检索]引擎很快"),
        ("味噌ラーメンのスープ", "ラーメン", "味噌[ラーメン]のスープ"),
        ("도서관에서는 책을", "도서관", "[도서관]에서는 책을"),
        ("two\n\tlines", "lines", "two [lines]"),
        ("nothing here", "absent", "nothing here"),
        ("", "x", ""),
    ],
)
def test_query_words_are_highlighted(text: str, query: str, shown: str) -> None:
    assert marked(text, query) == shown


def test_a_long_sentence_is_cropped_around_query_words() -> None:
    text = "word " * 200 + "needle in the hay " + "word " * 200
    shown = marked(text, "needle", 60)
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert "[needle] in the hay" in shown
    assert len(shown) <= 60 + len("……[]")
    assert set(shown.strip("…").split()) == {"word", "[needle]", "in", "the", "hay"}
    assert marked("全" * 200 + "针" + "文" * 200, "针", 60).count("[针]") == 1


def test_a_cropped_sentence_that_is_not_the_last_ends_with_one_ellipsis() -> None:
    text = f"A needle {'in the hay ' * 20}. Another sentence."
    assert best_sentence_line(text, "needle", 40) == "A needle in the hay in the hay in the…"


def test_matches_are_ordered_and_do_not_overlap() -> None:
    spans = find_matches("naïve needle, NEEDLE's eye; 针尖针尖", "needle naive 针尖")
    assert spans == sorted(spans)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))


PAGE = """# Retries

A call is repeated when it fails. Nothing else changes.

```python
from service import retry

def load():
    return retry(fetch, attempts=3)
```

| status | repeated |
|---|---|
| 404 | no |
| 503 | yes, three attempts |
"""


def passages(query: str, characters: int = 200) -> list[tuple[str, bool]]:
    return [(line.text, line.is_verbatim) for line in best_passages(PAGE, query, characters)]


def test_code_inside_prose_keeps_its_lines() -> None:
    assert passages("retry attempts", 160) == [
        ("from service import retry", True),
        ("", True),
        ("def load():", True),
        ("    return retry(fetch, attempts=3)", True),
    ]


def test_rows_of_a_table_come_with_its_heading() -> None:
    assert passages("what happens with status 503", 120) == [
        ("| status | repeated |", True),
        ("| 404 | no |", True),
        ("| 503 | yes, three attempts |", True),
    ]


def test_sentences_and_code_stand_in_the_order_of_the_text() -> None:
    shown = passages("is a call of fetch repeated?", 300)
    assert shown[0] == ("A call is repeated when it fails. Nothing else changes.", False)
    assert ("    return retry(fetch, attempts=3)", True) in shown


def test_short_lines_do_not_fill_the_screen() -> None:
    text = "".join(f"Needle {number}.\n```\nneedle\nb\n```\n" for number in range(50))
    assert len(best_passages(text, "needle", 200)) < 10
    assert len(best_passages(text, "needle", 160, 80)) < 5


def test_room_that_is_left_shows_what_follows_the_best_sentence() -> None:
    text = "First. The needle is here. It is sharp. Second."
    assert best_sentence_line(text, "needle", 40) == "The needle is here. It is sharp. …"


def test_any_number_of_matches_in_one_line_is_cropped() -> None:
    shown = best_sentence_line("needle " * 100_000, "needle", 80)
    assert len(shown) <= 82


@pytest.mark.parametrize("query", ["", " ", '" ( ) OR -', "***"])
def test_a_query_without_words_shows_how_the_text_begins(query: str) -> None:
    assert best_sentence_line("# Cellar\n\nIt is cool. It is dark.", query, 60) == "It is cool. It is dark."
    assert find_matches("It is cool.", query) == []


def test_hostile_text_is_cleaned_in_code_and_sentences() -> None:
    text = "A \x1b[31mred\u202e needle.\n```\n\x1b]8;;x\x07needle\u0000\n```\n| a\x9b | needle |\n"
    shown = "".join(line.text for line in best_passages(text, "needle", 400))
    assert shown.isprintable()
    assert shown.count("needle") == 3


def test_rows_of_a_terminal_are_measured_in_cells() -> None:
    assert output.wrap_rows("全文检索引擎很快", 6, 2) == ["全文检", "索引 …"]
    assert output.wrap_rows("one two three four", 8, 5) == ["one two", "three", "four"]
    assert output.wrap_rows("one two three four", 8, 1) == ["one …"]
    assert output.wrap_rows("x" * 10, 4, 9) == ["xxxx", "xxxx", "xx"]
    assert output.wrap_rows("", 8, 1) == []
    assert output.truncate("全文检索", 6) == "全文…"
    assert output.truncate("abc", 3) == "abc"
    assert output.visible_width("\x1b[1m全文\x1b[0m") == 4


@given(st.text(st.sampled_from("ab 全文é\u0301"), max_size=60), st.integers(6, 20), st.integers(1, 4))
def test_no_row_is_wider_than_the_terminal(text: str, width: int, rows: int) -> None:
    drawn = output.wrap_rows(text, width, rows)
    assert len(drawn) <= rows
    assert all(output.visible_width(row) <= width for row in drawn)
    assert output.visible_width(output.truncate(text, width)) <= width


def test_targets_of_links_and_signs_of_strong_text_are_not_shown() -> None:
    text = '**Four sources**: see [`builtin.py`](../a/builtin.py) and ![a picture](x.png "Title"). Then 2 ** 3 ** 4.'
    assert best_sentence_line(text, "sources", 200) == (
        "Four sources: see `builtin.py` and a picture. Then 2 ** 3 ** 4."
    )


def test_code_that_no_fence_ends_is_shown() -> None:
    lines = best_passages("```\nopen\n  the gate", "gate", 80)
    assert [(line.text, line.is_verbatim) for line in lines] == [("open", True), ("  the gate", True)]


MARKDOWN = st.lists(
    st.sampled_from(
        ["```", "~~~~", "| a | b |", "|---|---|", "# H", "word one.", "two. three", "", "    x = 1", "- item"]
    )
).map("\n".join)


@given(MARKDOWN, st.sampled_from(["one", "item x", "", "zzz"]), st.integers(1, 200))
def test_passages_are_lines_of_the_text_with_spans_inside(text: str, query: str, characters: int) -> None:
    for line in best_passages(text, query, characters):
        assert "\n" not in line.text
        assert all(0 <= a < b <= len(line.text) for a, b in line.spans)
        if line.is_verbatim:
            assert line.text.strip("…").strip() in text


def test_several_words_are_one_query(filled_cli: Cli) -> None:
    assert (
        filled_cli("search", "ferry", "leaves", "-n", "1").stdout
        == filled_cli("search", "ferry leaves", "-n", "1").stdout
    )
    assert filled_cli("why", "ferry", "leaves", "at", "noon", "boat").stdout.startswith(
        "boat is in the answer"
    )


def test_files_prints_each_path_once(cli: Cli, home: Path) -> None:
    (home / "docs").mkdir()
    (home / "docs" / "a.md").write_text("# A\n\n## One\n\nA ferry.\n\n## Two\n\nAnother ferry.\n")
    (home / "docs" / "b.md").write_text("# B\n\nA ferry, too.\n")
    cli("index", "docs", "--recipe", "docs")
    assert sorted(cli("search", "ferry", "--files").stdout.splitlines()) == ["docs/a.md", "docs/b.md"]
    (home / "list.txt").write_text("docs/b.md\n\n")
    found = cli("search", "ferry", "--files", "--paths-from", "list.txt")
    assert found.stdout == "docs/b.md\n"
    piped = cli("search", "ferry", "--files", "--paths-from", "-", input="docs/b.md\nno/such.md\n")
    assert piped.stdout == "docs/b.md\n"


def test_a_citation_is_relative_to_the_current_folder(home: Path) -> None:
    record = Record(id="x", text="", path=str(home / "docs" / "a.md"), lines=(3, 9))
    assert display_citation(record, "docs/a.md") == "docs/a.md:3-9"
    assert shown_path("/") == "/"
    assert record_link(record, "docs/a.md") == f"file://{home}/docs/a.md#L3"
    assert record_link(Record(id="x", text="", url="javascript:alert(1)"), None) is None


def test_a_short_id_has_eight_digits_of_the_hash() -> None:
    assert short_id("memory-1d8be24c9fa44a3984cfdc15b0520b40") == "memory-1d8be24c"
    assert short_id("turn:4c03063c525c71e221f4964a") == "turn:4c03063c"
    assert short_id("note-17") == "note-17"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_links_and_bars_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert output.link("a.md", "file:///a.md") == "a.md"
    monkeypatch.setattr("sys.stdout", Screen())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert output.link("a.md", "file:///a.md") == "\x1b]8;;file:///a.md\x1b\\a.md\x1b]8;;\x1b\\"
    assert output.link("a.md", "file:///a\x1b.md") == "a.md"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.link("a.md", "file:///a.md") == "a.md"


def test_help_has_an_example_for_each_purpose(cli: Cli) -> None:
    shown = cli("--help").stdout
    assert shown.count("\n  $ sennit ") == 7
    for line in shown.splitlines():
        assert len(line) <= 80, line
    alone = cli()
    assert (alone.exit_code, alone.stdout) == (0, shown)
