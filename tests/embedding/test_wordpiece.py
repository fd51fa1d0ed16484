from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

import sennit.embedding.static
from sennit.embedding import wordpiece
from sennit.embedding.wordpiece import WordPieceTokenizer

MODEL = Path(sennit.embedding.static.__file__).parent / "data" / "sennit-static-256"
LIMIT = 2048


@cache
def vocabulary() -> list[str]:
    return (MODEL / "vocabulary.txt").read_text(encoding="utf-8").splitlines()


@cache
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(vocabulary())


@cache
def library() -> Tokenizer:
    """The reference tokenizer, as the model's release describes it."""
    described = {
        "version": "1.0",
        "added_tokens": [
            {"id": number, "content": name, "special": True}
            | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
            for number, name in (
                (0, "[PAD]"),
                (100, "[UNK]"),
                (101, "[CLS]"),
                (102, "[SEP]"),
                (103, "[MASK]"),
            )
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: number for number, word in enumerate(vocabulary())},
        },
    }
    return Tokenizer.from_str(json.dumps(described))


def reference_pieces(text: str) -> list[int]:
    return library().encode(text, add_special_tokens=False).ids[:LIMIT]


AWKWARD = (
    *("[CLS]", "[cls]", "[PAD", "##ing", "x" * 100, "x" * 101, "unbelievably", "HTTPServer", "-", "_", "#"),
    *(" ", "\n", "a\x00b", "\x0b", "\x1c", "\x85", "\xa0", "\u200b", "\u2028", "\u3000", "\ufffd"),
    *(
        "é",
        "e\u0301",
        "\u0301",
        "=\u0338",
        "ß",
        "İ",
        "ΣΑΣ",
        "ﬁ",
        "½",
        "Ａ",
        "猫",
        "한국",
        "🙂",
        "’",
        "—",
        "…",
    ),
)


@given(st.text() | st.lists(st.sampled_from(AWKWARD) | st.text(max_size=4)).map("".join))
@example("\u2010\u2015\u2016\u2017\u2018\u201f\u2020\u2027 \u200f\u2028")
@example("[MASK]é[UNK]")
def test_pieces_equal_the_librarys_for_every_text(text: str) -> None:
    assert tokenizer().encode(text, LIMIT).tolist() == reference_pieces(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_pieces_equal_the_librarys_for_ascii(text: str) -> None:
    assert tokenizer().encode(text, LIMIT).tolist() == reference_pieces(text)


@pytest.mark.parametrize(
    "first", [*range(0, 0x3400, 0x400), *range(0xF800, 0x10000, 0x400), 0x1D400, 0x1F400]
)
def test_pieces_equal_the_librarys_for_every_character_of_a_block(first: int) -> None:
    for start in range(first, first + 0x400, 0x200):
        text = " ".join(f"a{chr(c)}b" for c in range(start, start + 0x200))
        assert (
            tokenizer().encode(text, 10_000).tolist() == library().encode(text, add_special_tokens=False).ids
        )


def test_an_evicted_run_is_tokenized_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordpiece, "MAX_CACHED_RUNS", 3)
    fresh = WordPieceTokenizer(vocabulary())
    text = "one two three four five six seven one two unbelievably two one"
    assert fresh.encode(text, LIMIT).tolist() == reference_pieces(text)


@cache
def tokenizer_with_prefix_table() -> WordPieceTokenizer:
    tokenizer = WordPieceTokenizer(vocabulary())
    tokenizer.build_prefix_table()
    return tokenizer


@given(st.lists(st.sampled_from(vocabulary()) | st.text("abcdefghistu019", max_size=9)).map("".join))
def test_the_prefix_table_does_not_change_the_pieces(text: str) -> None:
    assert tokenizer_with_prefix_table().encode(text, LIMIT).tolist() == reference_pieces(text)


def test_a_lone_surrogate_is_read_as_a_question_mark() -> None:
    assert tokenizer().encode("a \ud800 b", LIMIT).tolist() == reference_pieces("a ? b")


def test_only_the_beginning_of_a_huge_text_is_read() -> None:
    text = "the cat sat on the mat. " * 100_000
    assert tokenizer().encode(text, LIMIT).tolist() == reference_pieces(text[:100_000])
    assert tokenizer().encode("猫" * 2_000_000, LIMIT).tolist() == reference_pieces("猫" * LIMIT)
