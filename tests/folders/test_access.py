"""Reading files for a caller who may read some folders: the text, and the errors."""

from __future__ import annotations

import os
import re
import socket
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folders.conftest import SECRET, code, code_of
from ingest.conftest import locked
from sennit.errors import InvalidInput, SennitError
from sennit.folders import FileText, Folders, ReadError, access
from sennit.ingest.chunk import split_lines

pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture
def folders(root: Path) -> Folders:
    return Folders([root])


# Text


def test_read_returns_the_text_and_the_real_path(folders: Folders, root: Path) -> None:
    real = os.path.realpath(root)
    assert folders.read("a.md") == FileText(f"{real}/a.md", "one\ntwo\nthree\n", 1, 3, 3)
    assert folders.read(f"{real}/sub/b.md").text == "below"
    assert folders.read("./sub//deep/../b.md").path == f"{real}/sub/b.md"


def test_a_link_that_stays_inside_is_followed(folders: Folders, root: Path) -> None:
    for name in ("within", "within-absolute", "sub/up/within", "sub/up/sub/up/within-absolute"):
        assert folders.read(name).path == f"{os.path.realpath(root)}/sub/b.md"


def test_a_link_may_lead_from_one_allowed_folder_to_another(root: Path) -> None:
    (root / "across").symlink_to("../root-too/d.md")
    assert code(Folders([root]), "across") == "ACCESS_DENIED"
    assert Folders([root, root.parent / "root-too"]).read("across").text == SECRET


def test_a_folder_may_be_named_by_a_link_to_it(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    folders = Folders([tmp_path / "alias"])
    assert folders.roots == (Path(os.path.realpath(root)),)
    for path in ("a.md", str(tmp_path / "alias" / "a.md"), str(root / "a.md")):
        assert folders.read(path).path == f"{os.path.realpath(root)}/a.md"
    (root / "by-alias").symlink_to(tmp_path / "alias" / "a.md")
    if access.HAS_DIR_FD:
        assert folders.read("by-alias").lines == 3


def test_a_relative_path_is_looked_for_in_each_folder_in_order(root: Path) -> None:
    (root / "sub" / "a.md").write_text("another")
    assert Folders([root, root / "sub"]).read("a.md").lines == 3
    assert Folders([root / "sub", root]).read("a.md").text == "another"
    assert Folders([root / "sub", root]).read("sub/b.md").text == "below"
    assert code(Folders([root / "sub", root]), "nothing.md") == "NOT_FOUND"


def test_a_single_file_may_be_allowed(root: Path) -> None:
    folders = Folders([root / "a.md"])
    assert folders.read("a.md") == folders.read(str(root / "a.md"))
    assert code(folders, "sub/b.md") == "ACCESS_DENIED"
    assert code(folders, str(root)) == "ACCESS_DENIED"


def test_paths_are_not_expanded_or_decoded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root))
    folders = Folders([root])
    names = [
        "~",
        "$HOME",
        "%2e%2e%2fsecret.txt",
        "..\\secret.txt",
        "．．",
        "..%c0%afx",
        "a\nb",
        "-",
        "é",
        "…",
        "*",
    ]
    for name in names:
        assert code(folders, name) == "NOT_FOUND"
        (root / name).write_text(name)
        assert folders.read(name).text == name


def test_another_case_is_another_name_unless_the_file_system_says_otherwise(root: Path) -> None:
    folders = Folders([root], is_hidden=lambda path: path.name == "a.md")
    for name in ("A.md", "a.MD", "SUB/../a.md", str(root).upper() + "/a.md"):
        assert code(folders, name) in ("NOT_FOUND", "ACCESS_DENIED")


def test_byte_order_mark_is_removed_and_line_endings_stay(root: Path) -> None:
    (root / "mark.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    found = Folders([root]).read("mark.txt")
    assert (found.text, found.lines) == ("one\r\ntwo\rthree\n", 2)
    assert Folders([root]).read("mark.txt", (2, 2)).text == "two\rthree\n"


def test_an_empty_file_has_no_lines(root: Path) -> None:
    (root / "empty").touch()
    found = Folders([root]).read("empty")
    assert (found.text, found.first, found.last, found.lines) == ("", 0, 0, 0)
    assert code(Folders([root]), "empty", (1, 1)) == "BAD_RANGE"


# Lines


def test_a_range_ends_where_the_file_does(folders: Folders) -> None:
    found = folders.read("a.md", (2, 99))
    assert (found.text, found.first, found.last, found.lines) == ("two\nthree\n", 2, 3, 3)


@pytest.mark.parametrize("lines", [(0, 1), (2, 1), (-1, 1), (4, 4), (1,), ("1", "2"), (True, 2), 7, "ab"])
def test_invalid_range_is_rejected(folders: Folders, lines: tuple[int, int]) -> None:
    assert code(folders, "a.md", lines) == "BAD_RANGE"


TEXTS = st.text(st.sampled_from("ab\r\n\ufeffé日"), max_size=60)


@given(text=TEXTS, first=st.integers(1, 12), more=st.integers(0, 12), piece=st.integers(1, 9))
def test_lines_match_the_index_for_any_chunk_size(
    tmp_path_factory: pytest.TempPathFactory, text: str, first: int, more: int, piece: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / "lines"
    folder.mkdir(exist_ok=True)
    (folder / "x").write_bytes(text.encode())
    ending = "\n" if "\n" in text else "\r"
    lines = re.findall(f"[^{ending}]*{ending}|[^{ending}]+$", text)
    # The index has no blank line at the end, not even a lone \\r.
    assert len(lines) - text.endswith("\n\r") == len(split_lines(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access, "_CHUNK_BYTES", piece)
        folders = Folders([folder])
        whole = folders.read("x")
        assert (whole.text, whole.lines) == (text.removeprefix("\ufeff"), len(lines))
        if first > whole.lines:
            assert code(folders, "x", (first, first + more)) == "BAD_RANGE"
            return
        part = folders.read("x", (first, first + more))
    wanted = "".join(lines[first - 1 : first + more])
    assert part.text == (wanted.removeprefix("\ufeff") if first == 1 else wanted)
    assert (part.first, part.last) == (first, min(first + more, len(lines)))


# Errors


def test_what_is_outside_is_denied_whether_it_exists_or_not(folders: Folders, root: Path) -> None:
    top = root.parent
    for path in (
        "../secret.txt", "../not-there", "../root-too/d.md", "sub/../../secret.txt", "..", "/", "/etc/passwd",
        f"{top}/secret.txt", f"{top}/not-there", f"{top}", f"{root}/../secret.txt", f"{root}-too/d.md",
        "out", "out-folder/secret.txt", "out-absolute", "sub/up/out", "/not-there/at/all",
    ):  # fmt: skip
        with pytest.raises(ReadError) as caught:
            folders.read(path)
        assert caught.value.code == "ACCESS_DENIED", path
        assert str(caught.value) == (
            f"[ERROR: ACCESS_DENIED] {path!r} may not be read. Allowed folders: {os.path.realpath(root)!r}."
        )


def test_without_folders_nothing_may_be_read(root: Path) -> None:
    assert code(Folders([]), str(root / "a.md")) == code(Folders([]), "a.md") == "ACCESS_DENIED"


@pytest.mark.parametrize("path", ["missing.md", "sub/missing/x.md", "a.md/x", "nowhere"])
def test_missing_file_inside_is_not_found(folders: Folders, path: str) -> None:
    with pytest.raises(ReadError, match=r"^\[ERROR: NOT_FOUND\] There is no file '") as caught:
        folders.read(path)
    assert isinstance(caught.value, SennitError)


def test_deleted_root_has_no_files(tmp_path: Path) -> None:
    assert code(Folders([tmp_path / "gone"]), "a.md") == "NOT_FOUND"


@pytest.mark.parametrize("path", [".", "sub", "sub/", "sub/up"])
def test_folder_is_not_a_file(folders: Folders, path: str) -> None:
    assert code(folders, path) == "IS_DIRECTORY"


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", "x" * 5000, "n" * 256])
def test_invalid_paths_are_rejected(folders: Folders, path: str) -> None:
    with pytest.raises(ReadError, match=r"^\[ERROR: BAD_PATH\]") as caught:
        folders.read(path)
    assert len(str(caught.value)) < 300


def test_path_must_be_a_string(folders: Folders) -> None:
    for path in (None, 7, b"a.md", Path("a.md")):
        assert code_of(lambda path=path: folders.read(path)) == "BAD_PATH"  # type: ignore[misc]


def test_pipes_sockets_and_devices_are_never_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "socket"))
    folders = Folders([root])
    assert code(folders, "pipe") == code(folders, "socket") == "NOT_A_FILE"
    assert code(Folders(["/dev"]), "null") == "NOT_A_FILE"


@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/self/status", "/sys/kernel/notes"])
def test_system_files_are_not_read(path: str, root: Path) -> None:
    assert code(Folders(["/"]), path) == "ACCESS_DENIED"
    (root / "link").symlink_to(path)
    assert code(Folders(["/proc", "/sys", root]), str(root / "link")) == "ACCESS_DENIED"


@pytest.mark.parametrize(
    ("data", "byte", "offset"),
    [(b"abc\0", "00", 3), (b"caf\xe9 noir", "e9", 3), (b"\xff\xfea\0", "00", 3), (b"ok\n\xc0\xaf", "c0", 3)],
)
def test_invalid_utf_8_is_not_text(root: Path, data: bytes, byte: str, offset: int) -> None:
    (root / "data").write_bytes(data)
    with pytest.raises(ReadError, match=rf"^\[ERROR: NOT_TEXT\] .* byte 0x{byte} at offset {offset}\.$"):
        Folders([root]).read("data")


def test_invalid_byte_is_reported_with_its_offset(root: Path) -> None:
    (root / "data").write_bytes(b"fine\nfine\nnot \xff fine\nfine\n")
    folders = Folders([root])
    assert folders.read("data", (1, 2)).text == "fine\nfine\n"
    with pytest.raises(ReadError, match="byte 0xff at offset 14"):
        folders.read("data", (3, 4))


def test_a_large_file_is_read_by_lines(root: Path) -> None:
    lines = [f"line {number} {'x' * 200}\n" for number in range(60_000)]
    (root / "large.txt").write_text("".join(lines))
    folders = Folders([root], max_bytes=1000)
    with pytest.raises(ReadError, match=r"TOO_LARGE.* has 12,\d+,\d+ bytes; .* 1,000\. Ask for a range"):
        folders.read("large.txt")
    tracemalloc.start()
    found = folders.read("large.txt", (50_000, 50_002))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.text, found.lines) == ("".join(lines[49_999:50_002]), 60_000)
    assert peak < 5_000_000
    with pytest.raises(ReadError, match=r"TOO_LARGE.* Ask for fewer lines\."):
        folders.read("large.txt", (1, 10))


def test_file_too_large_to_scan_is_rejected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_SCANNED_BYTES", 5)
    monkeypatch.setattr(access, "_CHUNK_BYTES", 2)
    with pytest.raises(ReadError, match=r"TOO_LARGE.* up to 5 bytes"):
        Folders([root]).read("a.md", (1, 1))


def test_file_without_permission_is_unreadable(root: Path) -> None:
    folders = Folders([root])
    with locked(root / "a.md"):
        assert code(folders, "a.md") == "UNREADABLE"
    with locked(root / "sub"):
        assert code(folders, "sub/b.md") == "UNREADABLE"


def test_circular_links_are_unreadable(folders: Folders, root: Path) -> None:
    (root / "tick").symlink_to("tock")
    (root / "tock").symlink_to("tick")
    assert code(folders, "loop") == code(folders, "tick") == "UNREADABLE"


# Hidden files


def test_hidden_file_is_reported_like_a_missing_one(root: Path) -> None:
    (root / "big").write_text("x" * 100)
    (root / "binary").write_bytes(b"\0")
    (root / "link-to-hidden").symlink_to("big")
    names = ["a.md", "sub", "sub/b.md", "big", "binary", "within", "link-to-hidden"]
    if access.HAS_DIR_FD:
        names += ["out", "loop", "sub/up"]
    everything = Folders([root], max_bytes=10, is_hidden=lambda path: path != Path(os.path.realpath(root)))
    for name in names:
        with pytest.raises(ReadError) as caught:
            everything.read(name)
        assert str(caught.value) == f"[ERROR: NOT_FOUND] There is no file {name!r} in the allowed folders."


def test_is_hidden_gets_real_paths(root: Path) -> None:
    hidden = Path(os.path.realpath(root)) / "sub" / "b.md"
    folders = Folders([root], is_hidden=lambda path: path == hidden)
    for name in ("within", "within-absolute", "sub/up/sub/b.md", str(root / "sub" / "b.md")):
        assert code(folders, name) == "NOT_FOUND"
    assert folders.read("a.md").lines == 3


# Other


def test_no_descriptor_is_left_open(root: Path) -> None:
    folders = Folders([root])
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("a.md", "sub/deep/c.md", "out", "loop", "missing", "sub/deep", "sub/up/within", "../x"):
        try:
            folders.read(path)
        except ReadError:
            continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("roots", ["folder", Path("folder"), [""], ["a\0"], [7]])
def test_folders_are_a_list_of_paths(roots: list[str]) -> None:
    with pytest.raises(InvalidInput, match="Folders takes"):
        Folders(roots)


@pytest.mark.parametrize("most", [0, -1, 1.5, True])
def test_a_limit_is_a_number_of_bytes(most: int) -> None:
    with pytest.raises(InvalidInput, match="max_bytes"):
        Folders([], max_bytes=most)
