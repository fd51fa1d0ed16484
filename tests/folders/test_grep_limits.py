"""The limits of a search: on time, memory and output, and to its folders. Each omission is reported."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from sennit.errors import InvalidInput
from sennit.folders import Folders, GrepOptions, grep
from sennit.folders.matches import MatchCache, MatchGroup
from sennit.folders.passage_reader import MAX_LINE_CHARACTERS, MAX_PASSAGE_BYTES, PassageReader
from sennit.folders.ripgrep import find_ripgrep, run_ripgrep

UNPRIVILEGED = 65534


def filled(folder: Path, count: int, text: str = "needle\n") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"{number:04}.txt").write_text(text, encoding="utf-8")


def test_file_limit_stops_the_search_and_is_reported(tmp_path: Path) -> None:
    filled(tmp_path, 60)
    answer = grep([tmp_path], ["needle"], GrepOptions(max_files=7))
    assert answer.files == 7
    assert len(answer.passages) == 7
    assert "The search stopped after 7 files with matches" in answer.limits[0]
    assert grep([tmp_path], ["needle"], GrepOptions(max_files=60, max_passages=60)).limits == ()


def test_match_limit_stops_the_search_and_is_reported(tmp_path: Path) -> None:
    filled(tmp_path, 40, "needle needle\n")
    answer = grep([tmp_path], ["needle"], GrepOptions(max_matches=10))
    assert answer.matches == 10
    assert "The search stopped after 10 matches" in answer.limits[0]


def test_byte_limit_cuts_the_result_and_is_reported(tmp_path: Path) -> None:
    filled(tmp_path, 9, "needle and so on\n")
    answer = grep([tmp_path], ["needle"], GrepOptions(max_bytes=50))
    assert [passage.real.name for passage in answer.passages] == ["0000.txt", "0001.txt", "0002.txt"]
    assert answer.limits == ("Only the best 3 passages are in the result: the limit is 50 bytes of text.",)
    assert (answer.files, answer.matches) == (9, 9)


def test_time_limit_stops_the_search_and_is_reported(tmp_path: Path) -> None:
    filled(tmp_path, 300)
    answer = grep([tmp_path], ["needle"], GrepOptions(seconds=1e-6))
    assert answer.passages == ()
    assert "The search stopped after 1e-06 seconds; the result has no files after that" in answer.limits[0]


def test_no_expression_takes_longer_than_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 200_000 + "!\n" + "a" * 30 + "\n", encoding="utf-8")
    answer = grep([tmp_path], [r"(a+)+$", r"(a|aa)+$", r"(.*.*.*)*x"], GrepOptions(regex=True, seconds=60))
    assert [passage.matched for passage in answer.passages] == [(2,)]
    assert answer.passages[0].keywords == (r"(a+)+$", r"(a|aa)+$")
    assert answer.limits == ()


@pytest.mark.parametrize("options", [GrepOptions(), GrepOptions(regex=True)], ids=["literal", "regex"])
def test_long_line_is_shortened_around_its_match(tmp_path: Path, options: GrepOptions) -> None:
    long = "x" * 7_000_000 + "NEEDLE" + "y" * 3_000_000
    (tmp_path / "a.txt").write_text(f"before\n{long}\nafter {'z' * 5000}\n", encoding="utf-8")
    for keywords in (["needle"], ["needle", "absent"]):
        (passage,) = grep([tmp_path], keywords, options).passages
        before, matched, after = passage.text.split("\n")
        assert before == "before"
        assert "NEEDLE" in matched
        assert matched.startswith("…x")
        assert matched.endswith("y… [10,000,006 characters]")
        assert after.startswith("after zzz")
        assert max(len(matched), len(after)) < MAX_LINE_CHARACTERS + 40


def test_a_match_as_long_as_its_line_is_found_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{'x' * 100_000}\n", encoding="utf-8")
    (passage,) = grep([tmp_path], ["x+"], GrepOptions(regex=True)).passages
    assert passage.text.endswith("x… [100,000 characters]")
    (passage,) = grep([tmp_path], ["x" * 900]).passages
    assert passage.matches == 111


def test_very_long_run_of_matches_is_cut(tmp_path: Path) -> None:
    filled(tmp_path, 1, "needle in every line\n" * 5000)
    (passage,) = (answer := grep([tmp_path], ["needle"])).passages
    assert passage.first == 1
    assert passage.last < 5000
    assert len(passage.text.encode()) <= MAX_PASSAGE_BYTES
    assert len(passage.text.split("\n")) == passage.last
    assert passage.matched == tuple(range(1, passage.last + 1))
    assert answer.limits == (f"The passage {passage.citation} is cut: it continues to line 5,000.",)
    assert answer.matches == 5000


def test_expression_with_empty_matches_stays_bounded(tmp_path: Path) -> None:
    filled(tmp_path, 3, "abc\n" * 100)
    answer = grep([tmp_path], ["x*"], GrepOptions(regex=True, max_matches=500))
    assert "The search stopped after" in answer.limits[0]
    assert answer.passages


def test_file_too_large_for_passages_is_reported(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("needle\n" * 1000, encoding="utf-8")
    (tmp_path / "small.txt").write_text("needle\n", encoding="utf-8")
    answer = grep([tmp_path], ["needle"], GrepOptions(max_file_bytes=500))
    assert [passage.real.name for passage in answer.passages] == ["small.txt"]
    (skipped,) = answer.skipped
    assert skipped.startswith(f"{tmp_path.resolve() / 'big.txt'}: [ERROR: TOO_LARGE] it has 7,000 bytes")


def test_invisible_files_are_not_found_or_counted(tmp_path: Path) -> None:
    filled(tmp_path / "open", 5)
    filled(tmp_path / "closed", 500)
    seen = grep(
        [tmp_path],
        ["needle"],
        GrepOptions(max_files=5, max_matches=6),
        is_visible=lambda p: "open" in p.parts,
    )
    assert (seen.files, seen.matches, len(seen.passages)) == (5, 5, 5)
    assert (seen.limits, seen.skipped) == ((), ())
    assert {passage.real.parent.name for passage in seen.passages} == {"open"}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    filled(tmp_path / "outside", 1)
    filled(tmp_path / "root", 1)
    (tmp_path / "root" / "link.txt").symlink_to(tmp_path / "outside" / "0000.txt")
    (tmp_path / "root" / "folder").symlink_to(tmp_path / "outside")
    answer = grep([tmp_path / "root"], ["needle"])
    assert [passage.real.name for passage in answer.passages] == ["0000.txt"]
    assert answer.files == 1


def test_file_replaced_by_a_link_gives_no_access(tmp_path: Path) -> None:
    filled(tmp_path / "root", 1)
    outside = tmp_path / "secret.txt"
    outside.write_text("secret\nneedle\nsecret\n", encoding="utf-8")
    inside, spare = tmp_path / "root" / "0000.txt", tmp_path / "root" / "spare"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            spare.unlink(missing_ok=True)
            spare.symlink_to(outside)
            spare.replace(inside)
            spare.write_text("needle\n", encoding="utf-8")
            spare.replace(inside)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(60):
            for passage in grep([tmp_path / "root"], ["needle"]).passages:
                assert "secret" not in passage.text
    finally:
        stop.set()
        thread.join()


def test_file_changed_after_the_search_is_reported_and_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\nneedle\n", encoding="utf-8")
    options, held = GrepOptions(), MatchCache(["needle"], GrepOptions())
    found: dict[str, bytes] = {}
    run_ripgrep([tmp_path], ["needle"], options, found.__setitem__, deadline=time.monotonic() + 60)
    assert found == {str(path): b"2:needle\n"}
    path.write_text("needle\none\n", encoding="utf-8")
    reader = PassageReader(Folders([tmp_path]), ["needle"], options, held, whole_lines=False)
    reader.read_passages([MatchGroup(str(path), [(2, b"needle")], 1, 1)], float("inf"), has_more=False)
    assert reader.passages == []
    assert reader.skipped == [f"{path}: it changed during the search; search again"]
    path.unlink()
    again = PassageReader(Folders([tmp_path]), ["needle"], options, held, whole_lines=False)
    again.read_passages([MatchGroup(str(path), [(2, b"needle")], 1, 1)], float("inf"), has_more=False)
    assert again.passages == []
    assert "NOT_FOUND" in again.skipped[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process that may not read every file")
def test_unreadable_file_is_reported_unless_it_is_invisible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path / "root", 1)
    locked = tmp_path / "root" / "locked.txt"
    locked.write_text("needle\n", encoding="utf-8")
    locked.chmod(0)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        if os.geteuid() == 0 and not folder.stat().st_mode & 0o005:
            folder.chmod(0o755)
    # If only root can read the virtual environment, the child needs another ripgrep on the PATH.
    (tmp_path / "bin").mkdir()
    shutil.copy(find_ripgrep(), tmp_path / "bin" / "rg")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert grep([tmp_path / "root"], ["needle"]).files
    all_visible, hidden = (
        search_unprivileged(tmp_path / "root", None),
        search_unprivileged(tmp_path / "root", "0000"),
    )
    assert all_visible == (1, [f"{locked.resolve()}: Permission denied"])
    assert hidden == (1, [])


def search_unprivileged(root: Path, visible: str | None) -> tuple[int, list[str]]:
    """Search in a process that is not root; returns the file count and the skipped files."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(UNPRIVILEGED)
                os.setuid(UNPRIVILEGED)
            answer = grep(
                [root], ["needle"], is_visible=None if visible is None else lambda path: visible in path.name
            )
            os.write(write, "\n".join([str(answer.files), *answer.skipped]).encode())
        except BaseException as error:  # noqa: BLE001 - the parent says what went wrong
            os.write(write, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        lines = stream.read().decode().split("\n")
    os.waitpid(child, 0)
    assert lines[0].isdigit(), lines
    return int(lines[0]), lines[1:]


def test_ripgrep_configuration_of_the_user_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path / "root", 2)
    (tmp_path / "rc").write_text("--glob=!*.txt\n", encoding="utf-8")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rc"))
    assert grep([tmp_path / "root"], ["needle"]).files == 2


def test_too_large_expression_is_rejected(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    with pytest.raises(InvalidInput, match="regular expression"):
        grep([tmp_path], [r"((\w{500}){500}){500}"], GrepOptions(regex=True, seconds=120))
