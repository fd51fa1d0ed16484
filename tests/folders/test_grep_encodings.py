"""Exact text search in files with various encodings, line endings, zero bytes and names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sennit.folders import GrepOptions, Passage, grep


def passages(folder: Path, *keywords: str, regex: bool = False) -> tuple[Passage, ...]:
    answer = grep([folder], keywords, GrepOptions(regex=regex))
    assert answer.skipped == ()
    return answer.passages


@pytest.mark.parametrize(
    "data",
    [
        "Häuser\nübers needle\nÉnde\n".encode(),
        "Häuser\nübers needle\nÉnde\n".encode("utf-8-sig"),
        "Häuser\r\nübers needle\r\nÉnde\r\n".encode(),
        "Häuser\nübers needle\nÉnde".encode(),
        "Häuser\nübers needle\nÉnde\n".encode("latin-1"),
        "\ufeffHäuser\nübers needle\nÉnde\n".encode("utf-16-le"),
        "\ufeffHäuser\r\nübers needle\r\nÉnde\r\n".encode("utf-16-be"),
    ],
    ids=["utf-8", "mark", "crlf", "no end", "latin-1", "utf-16-le", "utf-16-be crlf"],
)
@pytest.mark.parametrize("keywords", [["needle"], ["needle", "absent"]], ids=["one", "several"])
@pytest.mark.parametrize("regex", [False, True], ids=["literal", "regex"])
def test_passage_is_the_same_in_every_encoding(
    tmp_path: Path, data: bytes, keywords: list[str], regex: bool
) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    (passage,) = passages(tmp_path, *keywords, regex=regex)
    assert passage.text == "Häuser\nübers needle\nÉnde"
    assert (passage.first, passage.last, passage.matched) == (1, 3, (2,))
    assert passage.keywords == ("needle",)


def test_declared_encoding_is_used(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes("# -*- coding: koi8-r -*-\n# дом needle\n".encode("koi8-r"))
    (passage,) = passages(tmp_path, "needle")
    assert passage.text.endswith("# дом needle")


def test_a_match_on_the_first_line_after_a_mark_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffneedle\nb\n".encode())
    (passage,) = passages(tmp_path, "^needle$", regex=True)
    assert passage.text == "needle\nb"


def test_carriage_returns_do_not_change_matches(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a needle\r\nneedle b\r\n")
    (passage,) = passages(tmp_path, "needle$", regex=True)
    assert passage.matched == (1,)
    assert "\r" not in passage.text


def test_file_with_zero_bytes_is_binary_and_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\x7fELF\0\0needle\n\0")
    (tmp_path / "a.txt").write_bytes(b"needle\n")
    assert [passage.real.name for passage in passages(tmp_path, "needle")] == ["a.txt"]


def test_zero_bytes_late_in_a_file_do_not_hide_other_files(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"needle\n" * 40_000 + b"\0" + b"needle\n" * 10)
    (tmp_path / "b.txt").write_bytes(b"needle\n")
    for keywords in (["needle"], ["needle", "absent"]):
        answer = grep([tmp_path], keywords)
        assert answer.skipped == ()
        assert "b.txt" in {passage.real.name for passage in answer.passages}
        assert all("\0" not in passage.text for passage in answer.passages)


def test_binary_file_as_root_does_not_hide_other_roots(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"needle\n\0needle\n")
    (tmp_path / "b.txt").write_bytes(b"needle\n")
    answer = grep([tmp_path / "a.bin", tmp_path / "b.txt"], ["needle"])
    assert [passage.real.name for passage in answer.passages] == ["b.txt"]


def test_unusual_file_names_are_found(tmp_path: Path) -> None:
    names = [
        b"new\nline",
        b"two\n\nlines",
        b"1:needle",
        b"sp ace",
        b"-v",
        "größe".encode(),
        b"bad\xff",
        b"colon:1",
    ]
    for name in names:
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_bytes(b"needle\n")
    found = passages(tmp_path, "needle")
    assert {os.fsencode(passage.real.name) for passage in found} == set(names)
    for passage in found:
        assert passage.real.read_text(encoding="utf-8") == "needle\n"
        assert json.loads(json.dumps(passage.to_dict()))["path"] == passage.path
        passage.path.encode()
    assert any(passage.path.endswith("bad\\xff") for passage in found)
