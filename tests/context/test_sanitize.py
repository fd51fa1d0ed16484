"""What sanitizing removes, what it keeps, and that the JSON and terminal forms follow the same rules."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.context.sanitize import (
    REPLACEMENT,
    escape_json,
    escape_markup,
    one_line,
    sanitize,
    sanitize_for_terminal,
    sanitize_json,
    truncate,
)
from sennit.records import Json

from .invisible import BIDI, DEFAULT_IGNORABLE, INVISIBLE

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize("clean", [sanitize, sanitize_for_terminal])
def test_no_default_ignorable_code_point_is_left_between_latin_letters(clean) -> None:  # type: ignore[no-untyped-def]
    for character in (*DEFAULT_IGNORABLE, *INVISIBLE):
        assert character not in clean(f"pay{character}load"), f"U+{ord(character):04X}"


def test_control_characters_are_removed_and_newline_and_tab_stay() -> None:
    assert sanitize("a\x00b\x1b[31mc\td\ne\x0b\x0cf\x7f\x9b") == "ab[31mc\td\nef"


def test_every_line_ending_becomes_a_newline() -> None:
    assert sanitize("one\r\ntwo\rthree\x85four\u2028five\u2029six") == "one\ntwo\nthree\nfour\nfive\nsix"


def test_a_sentence_in_tag_characters_is_removed() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    assert sanitize(f"fine{hidden}.") == "fine."


def test_bytes_in_variation_selectors_are_removed() -> None:
    hidden = "".join(chr(0xFE00 + byte) if byte < 16 else chr(0xE0100 + byte - 16) for byte in b"obey")
    assert sanitize(f"\N{GRINNING FACE}{hidden}") == "\N{GRINNING FACE}"


def test_lone_surrogates_and_noncharacters_are_removed() -> None:
    assert sanitize("a\ud800b\udfffc\ufffed\U0010ffff\ufdd0e") == "abcde"


@pytest.mark.parametrize(
    "word",
    [
        "می\u200cخواهم",  # Persian, non-joiner between letters
        "क्\u200dष",  # Devanagari, joiner after a virama
        "ශ්\u200dරී",  # Sinhala
        "র\u200d্য",  # Bengali, joiner before a virama
    ],
)
def test_a_joiner_stays_between_letters_of_a_script_that_needs_it(word: str) -> None:
    assert sanitize(word) == word
    assert sanitize(word.replace("\u200c", "\u200c" * 9).replace("\u200d", "\u200d" * 9)) == word


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\u200db\u200cc", "abc"),
        ("\u200dмир\u200c", "мир"),
        ("می\u200c خواهم\u200d", "می خواهم"),
        ("م\u200ca", "مa"),
        ("٣\u200d٤", "٣٤"),
        ("\N{WOMAN}\u200d\N{ROCKET}", "\N{WOMAN}\N{ROCKET}"),
        ("\N{HEAVY BLACK HEART}\ufe0f", "\N{HEAVY BLACK HEART}"),
    ],
)
def test_other_joiners_and_the_selectors_of_emoji_are_removed(text: str, left: str) -> None:
    assert sanitize(text) == left


@pytest.mark.parametrize(
    "text", ["\ue000\uf8ff\U000f0000", "e\u0301", "漢字", "\u06dd", "\u00a0\u3000", "\U0001fae8"]
)
def test_visible_text_blanks_and_private_use_stay(text: str) -> None:
    assert sanitize(text) == text
    assert sanitize_for_terminal(text) == text


@given(ANY_TEXT)
def test_sanitizing_twice_changes_nothing(text: str) -> None:
    for clean in (sanitize, sanitize_for_terminal):
        assert clean(clean(text)) == clean(text)


@given(ANY_TEXT)
def test_what_is_left_is_valid_unicode_without_controls(text: str) -> None:
    left = sanitize(text)
    left.encode()
    assert {unicodedata.category(character) for character in left if character not in "\n\t"}.isdisjoint(
        {"Cc", "Cs", "Zl", "Zp"}
    )


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_printable_ascii_is_untouched(text: str) -> None:
    assert sanitize(text) == sanitize_for_terminal(text) == text


def test_a_terminal_shows_where_a_control_character_was() -> None:
    assert (
        sanitize_for_terminal("a\x1b[2J\rb\u2028c\n\td")
        == f"a{REPLACEMENT}[2J{REPLACEMENT}b{REPLACEMENT}c\n\td"
    )
    for character in BIDI:
        assert sanitize_for_terminal(f"a{character}b") == f"a{REPLACEMENT}b"


def test_a_terminal_keeps_a_joiner_at_the_edge_of_a_streamed_part() -> None:
    parts = ["می", "\u200c", "خواهم"]
    assert "".join(map(sanitize_for_terminal, parts)) == "".join(parts)
    assert sanitize_for_terminal("a\u200c") == "a"


def test_json_is_sanitized_in_names_and_values_at_every_depth() -> None:
    value: Json = {"na\u200bme": ["te\u00adxt", {"in\ufe0fner": ("\u3164x", 1, None, True, 0.5)}]}
    assert sanitize_json(value) == {"name": ["text", {"inner": ["x", 1, None, True, 0.5]}]}


@given(ANY_TEXT)
def test_escaped_json_hides_nothing_and_loses_nothing(text: str) -> None:
    document = escape_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(document) == text
    assert not {*DEFAULT_IGNORABLE, *INVISIBLE, *BIDI} & set(document)


def test_a_label_is_one_line_without_runs_of_blanks() -> None:
    assert one_line(" a\u200b \r\n\t b\u2029c ") == "a b c"


def test_a_truncated_text_has_the_stated_length_and_an_ellipsis() -> None:
    assert truncate("x" * 5, 5) == "x" * 5
    assert truncate("x" * 6, 5) == "xxxx…"


def test_escaped_markup_opens_no_tag() -> None:
    assert escape_markup("<b> & ＜c﹤ ]]>") == "&lt;b> &amp; &lt;c&lt; ]]&gt;"
