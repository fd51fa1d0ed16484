"""BERT's uncased WordPiece tokenizer, with a cache per word.

For this kind of tokenizer, the pieces of a text are the concatenation of the pieces of each run between white
space and punctuation: normalisation works on single characters, and a word does not depend on its neighbours.
So each distinct run is tokenized once and cached. Plain ASCII runs are tokenized here, without importing the
`tokenizers` library; the library tokenizes all others. The pieces are the same. Bulk work is several times
faster, because words repeat.
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
MAX_WORD_CHARS: Final = 100
"""A longer word is one unknown piece. The limit is part of the model's definition."""

MAX_TEXT_CHARS: Final = 1 << 16
"""Only the start of a longer text is read: the model uses 2,048 pieces of about five characters."""

MAX_CACHED_RUNS: Final = 1 << 16
"""About 13 MB; 600,000 running words of prose contain some 45,000 distinct words."""

PREFIX_TABLE_AFTER_RUNS: Final = 1000
"""Cached runs after which the prefix table is built. Building it takes some milliseconds, too long for one query."""

PREFIX_CHARS: Final = 3
"""Leading characters of a piece by which the prefix table bounds its length."""

MAX_CACHED_RUN_CHARS: Final = 64
"""Longer runs (a Chinese paragraph has no spaces) rarely repeat."""

# ASCII punctuation, and the dashes and quotes of typeset prose: each is a piece of its own.
_ASCII_MARKS: Final = r"!-/:-@\[-`{-~"
_MARKS: Final = rf"{_ASCII_MARKS}\u2010-\u2027"
_RUNS: Final = re.compile(rf"[^ \t\n\r{_MARKS}]+|[{_MARKS}]")
_ASCII_RUNS: Final = re.compile(rf"[^ \t\n\r{_ASCII_MARKS}]+|[{_ASCII_MARKS}]")
"""The same for ASCII texts, in half the time: `re` looks up an ASCII character class in a table."""
_PLAIN: Final = re.compile(r"[!-~]+")
_SPECIAL: Final = re.compile("|".join(map(re.escape, SPECIAL)))


class WordPieceTokenizer:
    """Tokenizes texts into piece ids; the id of a piece is its position in the vocabulary."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = dict(zip(vocabulary, range(len(vocabulary)), strict=True))
        self._max_length_by_prefix: dict[str, int] = {}
        """The length of the longest piece with these leading characters; empty until `build_prefix_table`."""
        self._default_max_length = max(map(len, vocabulary))
        """The length of the longest piece whose leading characters are not in the table."""
        self.unknown_id = self._ids[UNKNOWN]
        self._run_cache = _RunCache(self)
        self._tokenizer: Tokenizer | None = None

    def encode(self, text: str, limit: int) -> NDArray[np.int32]:
        """Return the ids of the first `limit` pieces of a text."""
        text = text[:MAX_TEXT_CHARS]
        if "[" in text and _SPECIAL.search(text):
            packed = _pack(self._encode_with_library(text))
        else:
            # Lower case lets more runs share a cache entry.
            runs = _ASCII_RUNS.findall(text.lower()) if text.isascii() else _RUNS.findall(text)
            packed = b"".join(map(self._run_cache.__getitem__, runs))
        return np.frombuffer(packed, np.int32)[:limit]

    def encode_run(self, run: str) -> bytes:
        """Return the packed ids of one run: a word, or one punctuation mark."""
        if run.isascii() and (whole := self._ids.get(run)) is not None:
            return _pack((whole,))
        return _pack(
            self._encode_word(run.lower()) if _PLAIN.fullmatch(run) else self._encode_with_library(run)
        )

    def _encode_word(self, word: str) -> tuple[int, ...]:
        """Take the longest matching piece of the vocabulary, again and again, from the left."""
        if len(word) > MAX_WORD_CHARS:
            return (self.unknown_id,)
        pieces: list[int] = []
        start, marker = 0, ""
        while start < len(word):
            longest = self._max_length_by_prefix.get(
                marker + word[start : start + PREFIX_CHARS], self._default_max_length
            )
            for end in range(min(len(word), start + longest), start, -1):
                piece = self._ids.get(marker + word[start:end])
                if piece is not None:
                    break
            else:
                return (self.unknown_id,)
            pieces.append(piece)
            start, marker = end, CONTINUATION
        return tuple(pieces)

    def build_prefix_table(self) -> None:
        """Record the longest piece for each prefix, so that `_encode_word` tries fewer lengths."""
        longest: dict[str, int] = {}
        for piece in self._ids:
            marker = CONTINUATION if piece.startswith(CONTINUATION) else ""
            length = len(piece) - len(marker)
            prefix = piece[: len(marker) + PREFIX_CHARS]
            if length >= PREFIX_CHARS and length > longest.get(prefix, 0):
                longest[prefix] = length
        self._max_length_by_prefix, self._default_max_length = longest, PREFIX_CHARS - 1

    def _encode_with_library(self, text: str) -> list[int]:
        # The library rejects a lone surrogate.
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
                self._ids,
                unk_token=UNKNOWN,
                max_input_chars_per_word=MAX_WORD_CHARS,
                continuing_subword_prefix=CONTINUATION,
            )
        )
        tokenizer.normalizer = BertNormalizer(
            clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
        )
        tokenizer.pre_tokenizer = BertPreTokenizer()
        tokenizer.add_special_tokens(list(SPECIAL))
        return tokenizer


def _pack(pieces: Iterable[int]) -> bytes:
    """Return ids as int32 bytes: concatenating the bytes of runs gives the bytes of a text."""
    return array("i", pieces).tobytes()


class _RunCache(dict[str, bytes]):
    """Run → packed ids, computed on first use."""

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, run: str) -> bytes:
        packed = self._tokenizer.encode_run(run)
        if len(run) <= MAX_CACHED_RUN_CHARS:
            if len(self) >= MAX_CACHED_RUNS:
                self.clear()  # simpler than an LRU, and the frequent words return within a few texts
            self[run] = packed
            if len(self) == PREFIX_TABLE_AFTER_RUNS:
                self._tokenizer.build_prefix_table()
        return packed
