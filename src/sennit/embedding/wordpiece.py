"""BERT's uncased word pieces, remembered word by word.

What `tokenizers` computes for a whole text is, for this kind of tokenizer, the concatenation of what it
computes for each run between white space and punctuation: normalising works on single characters, and a
word never sees its neighbours. So each distinct run is cut once and remembered, plain ASCII runs without
the library (it then need not even be imported), all others by the library. The pieces are the same; the
bulk speed is several times higher, because words repeat.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

UNKNOWN: Final = "[UNK]"
SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION: Final = "##"
MAX_WORD: Final = 100
"""A longer word is one unknown piece: part of the model's definition."""

MAX_CHARACTERS: Final = 1 << 16
"""Of a longer text only the beginning is read: 2,048 pieces are used, and one takes five characters."""

MAX_REMEMBERED: Final = 1 << 16
"""About 13 MB; 600,000 running words of prose hold some 45,000 different ones."""

MUCH: Final = 1000
"""Runs after which looking ahead pays; it takes some milliseconds to prepare, which a single question is spared."""

HEAD: Final = 3
"""Letters of a piece by which its length is foreseen."""

MAX_REMEMBERED_LENGTH: Final = 64
"""Longer runs (a Chinese paragraph has no spaces) do not come twice."""

# ASCII punctuation, and the dashes and quotes of typeset prose: always pieces of their own.
_ASCII_MARKS: Final = r"!-/:-@\[-`{-~"
_MARKS: Final = rf"{_ASCII_MARKS}\u2010-\u2027"
_RUNS: Final = re.compile(rf"[^ \t\n\r{_MARKS}]+|[{_MARKS}]")
_ASCII_RUNS: Final = re.compile(rf"[^ \t\n\r{_ASCII_MARKS}]+|[{_ASCII_MARKS}]")
"""The same in ASCII, in half the time: a class of ASCII is looked up in a table."""
_PLAIN: Final = re.compile(r"[!-~]+")
_SPECIAL: Final = re.compile("|".join(map(re.escape, SPECIAL)))


class WordPieces:
    """Cuts texts into the numbers of their pieces; the number of a piece is its place in the vocabulary."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = dict(zip(vocabulary, range(len(vocabulary)), strict=True))
        self._reach: dict[str, int] = {}
        """By the first letters of a piece, how long the longest such piece is; filled when there is much to cut."""
        self._otherwise = max(map(len, vocabulary))
        """How long a piece can be whose first letters are not there."""
        self.unknown = self._numbers[UNKNOWN]
        self._runs = _Remembered(self)
        self._tokenizer: Tokenizer | None = None

    def encode(self, text: str, limit: int) -> NDArray[np.int32]:
        """The numbers of the first `limit` pieces of a text."""
        text = text[:MAX_CHARACTERS]
        if "[" in text and _SPECIAL.search(text):
            found = _packed(self._by_library(text))
        else:
            # Lower case only so that fewer different runs are remembered.
            runs = _ASCII_RUNS.findall(text.lower()) if text.isascii() else _RUNS.findall(text)
            found = b"".join(map(self._runs.__getitem__, runs))
        return np.frombuffer(found, np.int32)[:limit]

    def run(self, run: str) -> bytes:
        """The pieces of one run without white space, packed; punctuation only where it stands alone."""
        if run.isascii() and (whole := self._numbers.get(run)) is not None:
            return _packed((whole,))
        return _packed(self._word(run.lower()) if _PLAIN.fullmatch(run) else self._by_library(run))

    def _word(self, word: str) -> tuple[int, ...]:
        """Greedy: the longest piece of the vocabulary that fits, from the left."""
        if len(word) > MAX_WORD:
            return (self.unknown,)
        pieces: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            longest = self._reach.get(prefix + word[start : start + HEAD], self._otherwise)
            for end in range(min(len(word), start + longest), start, -1):
                number = self._numbers.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return (self.unknown,)
            pieces.append(number)
            start, prefix = end, CONTINUATION
        return tuple(pieces)

    def look_ahead(self) -> None:
        """Learn how far each beginning reaches: most lengths need not be tried then."""
        reach: dict[str, int] = {}
        for piece in self._numbers:
            prefix = CONTINUATION if piece.startswith(CONTINUATION) else ""
            length = len(piece) - len(prefix)
            head = piece[: len(prefix) + HEAD]
            if length >= HEAD and length > reach.get(head, 0):
                reach[head] = length
        self._reach, self._otherwise = reach, HEAD - 1

    def _by_library(self, text: str) -> list[int]:
        # A lone surrogate is not text, and the library refuses it.
        text = text.encode("utf-8", "replace").decode("utf-8")
        tokenizer = self._tokenizer
        if tokenizer is None:
            tokenizer = self._tokenizer = self._make_tokenizer()
        return tokenizer.encode(text, add_special_tokens=False).ids

    def _make_tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer
        from tokenizers.models import WordPiece
        from tokenizers.normalizers import BertNormalizer
        from tokenizers.pre_tokenizers import BertPreTokenizer

        tokenizer = Tokenizer(
            WordPiece(
                self._numbers,
                unk_token=UNKNOWN,
                max_input_chars_per_word=MAX_WORD,
                continuing_subword_prefix=CONTINUATION,
            )
        )
        tokenizer.normalizer = BertNormalizer(
            clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
        )
        tokenizer.pre_tokenizer = BertPreTokenizer()
        tokenizer.add_special_tokens(list(SPECIAL))
        return tokenizer


def _packed(pieces: Iterable[int]) -> bytes:
    """Numbers as they stand in memory, so that a text's are those of its runs behind each other."""
    return array("i", pieces).tobytes()


class _Remembered(dict[str, bytes]):
    """Run → pieces, filled when a run is first seen."""

    def __init__(self, pieces: WordPieces) -> None:
        super().__init__()
        self._pieces = pieces

    def __missing__(self, run: str) -> bytes:
        found = self._pieces.run(run)
        if len(run) <= MAX_REMEMBERED_LENGTH:
            if len(self) >= MAX_REMEMBERED:
                self.clear()  # simpler than ageing, and the frequent words are back within a few texts
            self[run] = found
            if len(self) == MUCH:
                self._pieces.look_ahead()
        return found
