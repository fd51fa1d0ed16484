"""The keywords of the code that is open in an editor: few, distinct, the most specific first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from sennit.errors import InvalidInput
from sennit.ingest.editor import strudel
from sennit.ingest.editor.code_names import extract_names

if TYPE_CHECKING:
    from sennit.analysis.keywords import DocumentShare

DEFAULT_LIMIT: Final = 10

MAX_CODE_CHARS: Final = 100_000
"""The rest of the code is ignored. A person writes less, and a log file has no useful keywords."""

MAX_WORD_CHARS: Final = 64
"""A longer name is data."""


_LANGUAGE_ALIASES: Final = {
    "py": "python", "python3": "python", "js": "javascript", "jsx": "javascript", "mjs": "javascript",
    "javascriptreact": "javascript", "node": "javascript", "ts": "typescript", "typescriptreact": "tsx",
    "golang": "go", "rs": "rust", "c++": "cpp", "cc": "cpp", "cxx": "cpp", "hpp": "cpp", "h": "c",
    "strudel": "strudel", "tidal": "strudel", "tidalcycles": "strudel",
}  # fmt: skip

_LANGUAGE_PATTERNS: Final = (
    ("cpp", re.compile(r"^\s*#\s*include\s*<\w+>|\bstd::|^\s*template\s*<|^\s*using\s+namespace\b", re.M)),
    ("c", re.compile(r"^\s*#\s*include\b|^\s*#\s*define\b|\bprintf\s*\(", re.M)),
    ("go", re.compile(r"^\s*package\s+\w+\s*$|^\s*func\s+(?:\([^)]*\)\s*)?\w+\(|:=\s", re.M)),
    ("rust", re.compile(r"^\s*(?:pub\s+)?(?:fn|impl|struct|enum|trait|mod)\s+\w+|\blet\s+mut\b|^\s*use\s+\w+::", re.M)),
    ("java", re.compile(r"^\s*(?:public|private|protected)\s+[\w<>\[\]]+|^\s*import\s+(?:static\s+)?[\w.]+;", re.M)),
    ("python", re.compile(r"^\s*(?:def|class|async\s+def)\s+\w+.*:?\s*$|^\s*(?:import\s+[\w.]+|from\s+[\w.]+\s+import\b)(?!.*[\"';])|^\s*(?:elif|except|with)\b.*:", re.M)),
    ("typescript", re.compile(r"^\s*(?:export\s+)?(?:interface|type|enum)\s+\w+|\b(?:const|let|var|function)\b[^=\n]*:\s*\w+|\bas\s+const\b", re.M)),
    ("javascript", re.compile(r"\b(?:const|let|var|function)\s+\w+|=>|\brequire\(|^\s*(?:import|export)\b", re.M)),
)  # fmt: skip


def editor_keywords(
    code: str,
    language: str | None = None,
    *,
    document_share: DocumentShare | None = None,
    limit: int = DEFAULT_LIMIT,
) -> tuple[str, ...]:
    """Return words that describe a piece of code: sounds, notes and functions for Strudel, otherwise functions, types
    and imports.

    With `document_share`, the words that are rarest in the corpus come first, and words that the corpus does not
    contain come last. Without it, the kinds of words alternate, each kind in the order of the code. The code may be
    incomplete. Empty code has no keywords.
    """
    if limit < 0:
        raise InvalidInput(f"The number of keywords must not be negative, not {limit}")
    code = code[:MAX_CODE_CHARS]
    if not code.strip():
        return ()
    guessed = _guess_language(code, language)
    kinds = strudel.extract_words(code) if guessed == "strudel" else extract_names(code, guessed)
    words = _deduplicate(word for word in _interleave(kinds) if 1 < len(word) <= MAX_WORD_CHARS)
    if document_share is not None:
        # The sort is stable: equally rare words keep their order.
        shares = {word: document_share(word) for word in words}
        words.sort(key=lambda word: shares[word] or 2.0)
    return tuple(words[:limit])


def _guess_language(code: str, language: str | None) -> str:
    """Return the canonical name of the language; empty if neither the editor nor the code tells.

    JavaScript that looks like Strudel is Strudel, because editors have no other name for it.
    """
    name = (language or "").strip().lower()
    name = _LANGUAGE_ALIASES.get(name, name)
    guess = name or next((other for other, pattern in _LANGUAGE_PATTERNS if pattern.search(code)), "")
    return "strudel" if guess in ("", "javascript", "typescript") and strudel.is_strudel(code) else guess


def _interleave(kinds: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in zip_longest(*kinds):
        yield from (word for word in row if word is not None)


def _deduplicate(words: Iterable[str]) -> list[str]:
    """Return each word once, regardless of case, in its first spelling."""
    first: dict[str, str] = {}
    for word in words:
        first.setdefault(word.casefold(), word)
    return list(first.values())
