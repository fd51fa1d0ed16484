"""Which language a piece of code is in: as the editor says, else by its looks."""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = {
    "py": "python", "python3": "python", "js": "javascript", "jsx": "javascript", "mjs": "javascript",
    "javascriptreact": "javascript", "node": "javascript", "ts": "typescript", "typescriptreact": "tsx",
    "golang": "go", "rs": "rust", "c++": "cpp", "cc": "cpp", "cxx": "cpp", "hpp": "cpp", "h": "c",
    "strudel": "strudel", "tidal": "strudel", "tidalcycles": "strudel",
}  # fmt: skip

_PLAYED: Final = re.compile(r"""\b(?:s|sound|note|n|chord)\(\s*["'`]|^\s*_?\$\w*:|\bset[cC]p[sm]\(""", re.M)
_CHAINED: Final = re.compile(
    r"\b(?:s|sound|note|n|chord|stack|arrange)\(|\.(?:bank|voicing|jux|lpf|hpf|room|slow|fast|cpm|gain|scale)\(",
    re.M,
)

_LOOKS: Final = (
    ("cpp", re.compile(r"^\s*#\s*include\s*<\w+>|\bstd::|^\s*template\s*<|^\s*using\s+namespace\b", re.M)),
    ("c", re.compile(r"^\s*#\s*include\b|^\s*#\s*define\b|\bprintf\s*\(", re.M)),
    ("go", re.compile(r"^\s*package\s+\w+\s*$|^\s*func\s+(?:\([^)]*\)\s*)?\w+\(|:=\s", re.M)),
    ("rust", re.compile(r"^\s*(?:pub\s+)?(?:fn|impl|struct|enum|trait|mod)\s+\w+|\blet\s+mut\b|^\s*use\s+\w+::", re.M)),
    ("java", re.compile(r"^\s*(?:public|private|protected)\s+[\w<>\[\]]+|^\s*import\s+(?:static\s+)?[\w.]+;", re.M)),
    ("python", re.compile(r"^\s*(?:def|class|async\s+def)\s+\w+.*:?\s*$|^\s*(?:import\s+[\w.]+|from\s+[\w.]+\s+import\b)(?!.*[\"';])|^\s*(?:elif|except|with)\b.*:", re.M)),
    ("typescript", re.compile(r"^\s*(?:export\s+)?(?:interface|type|enum)\s+\w+|\b(?:const|let|var|function)\b[^=\n]*:\s*\w+|\bas\s+const\b", re.M)),
    ("javascript", re.compile(r"\b(?:const|let|var|function)\s+\w+|=>|\brequire\(|^\s*(?:import|export)\b", re.M)),
)  # fmt: skip


def language_of(code: str, language: str | None) -> str:
    """The language's own name; empty when neither the editor nor the code tells.

    JavaScript that reads like Strudel is Strudel: an editor has no other name for it.
    """
    named = (language or "").strip().lower()
    named = _NAMES.get(named, named)
    looks = named or next((name for name, pattern in _LOOKS if pattern.search(code)), "")
    return "strudel" if looks in ("", "javascript", "typescript") and is_strudel(code) else looks


def is_strudel(code: str) -> bool:
    """Whether code plays patterns: mini-notation or a tempo, or two of the functions that patterns are chained by."""
    return _PLAYED.search(code) is not None or len(_CHAINED.findall(code)) > 1
