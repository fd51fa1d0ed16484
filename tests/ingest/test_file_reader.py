"""Decoding bytes to text, or reporting why they are not text."""

from __future__ import annotations

import codecs
import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ingest.file_reader import UnreadableFile, decode, read_regular_file

GERMAN = "Größe und Maß: über die Straße\n" * 20


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        (GERMAN.encode(), GERMAN, "utf-8"),
        (codecs.BOM_UTF8 + GERMAN.encode(), GERMAN, "utf-8"),
        (codecs.BOM_UTF16_LE + GERMAN.encode("utf-16-le"), GERMAN, "utf-16-le"),
        (codecs.BOM_UTF16_BE + GERMAN.encode("utf-16-be"), GERMAN, "utf-16-be"),
        (codecs.BOM_UTF32_LE + GERMAN.encode("utf-32-le"), GERMAN, "utf-32-le"),
        (GERMAN.encode("cp1252"), GERMAN, "cp1252"),
        ("“quoted” – déjà vu".encode("cp1252"), "“quoted” – déjà vu", "cp1252"),
        (b"caf\xe9 \x81", "caf\xe9 \x81", "latin-1"),
        ("# -*- coding: koi8-r -*-\nпривет".encode("koi8-r"), "# -*- coding: koi8-r -*-\nпривет", "koi8-r"),
        (
            '<meta charset="shift_jis">日本語'.encode("shift_jis"),
            '<meta charset="shift_jis">日本語',
            "shift_jis",
        ),
    ],
)
def test_text_is_decoded_with_its_encoding(data: bytes, text: str, encoding: str) -> None:
    decoded = decode(data)
    assert (decoded.text, decoded.encoding, decoded.replaced) == (text, encoding, 0)


def test_invalid_utf_8_is_replaced_and_counted() -> None:
    data = ("日本語のテキスト。" * 100).encode()
    decoded = decode(data[:50] + b"\xff" + data[51:])
    assert decoded.encoding == "utf-8"
    assert decoded.replaced == decoded.text.count("\ufffd") > 0
    assert len(decoded.text) > 890


@pytest.mark.parametrize(
    "name", ["rot13", "zlib", "idna", "punycode", "unicode_escape", "utf-7", "nonsense", "hex"]
)
def test_declared_codec_must_be_a_text_encoding(name: str) -> None:
    assert decode(f"# coding: {name}\n".encode() + b"caf\xe9").encoding == "cp1252"


def archives() -> dict[str, bytes]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("a", "text")
    tarred = io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w") as bundle:
        bundle.addfile(tarfile.TarInfo("a"))
    return {"zip": packed.getvalue(), "gzip": gzip.compress(b"hello"), "tar": tarred.getvalue()}


@pytest.mark.parametrize("kind", ["zip", "gzip", "tar"])
def test_archive_is_binary_whatever_its_name(kind: str) -> None:
    with pytest.raises(UnreadableFile, match="binary"):
        decode(archives()[kind])


@pytest.mark.parametrize(
    "data", [b"abc\0def", bytes(range(256)) * 4, b"\xff\xfe" + Random(1).randbytes(4000), b"\x01\x02" * 50]
)
def test_binary_data_is_rejected(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match="binary"):
        decode(data)


@given(st.binary(max_size=400))
def test_any_bytes_decode_to_valid_text_or_are_rejected(data: bytes) -> None:
    try:
        decoded = decode(data)
    except UnreadableFile:
        return
    decoded.text.encode()
    assert "\0" not in decoded.text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=300))
def test_utf_8_round_trips(text: str) -> None:
    if text.startswith(("\ufeff", "PK", "%PDF-", "%!PS", "GIF8", "wOF2", "BZh")):
        return
    assert decode(text.encode()).text == text


def test_file_that_grows_past_the_limit_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 100)
    with pytest.raises(UnreadableFile, match="the limit is 99"):
        read_regular_file(str(path), 99)
    assert read_regular_file(str(path), 100).data == b"x" * 100


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_an_endless_device_is_not_read() -> None:
    with pytest.raises(UnreadableFile, match="not a regular file"):
        read_regular_file("/dev/zero", 1 << 30)
