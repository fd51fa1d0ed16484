"""Keywords of Strudel code: the sounds, banks and notes in mini-notation, and the functions that play them."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"""
    r"""|(?P<string>"[^"\n]*(?:"|$)|'[^'\n]*(?:'|$)|`[^`]*(?:`|\Z))"""
    r"""|(?P<name>[A-Za-z_$][\w$]*)(?P<call>\s*\()?"""
    r"""|(?P<close>\))""",
    re.S | re.M,
)
_SOUND: Final = re.compile(r"[A-Za-z][\w]*(?=[:\s*!?@,<>\[\](){}/~.|-]|\Z)")
_NOTE: Final = re.compile(r"(?<![\w#])[a-gA-G](?:##?|bb?|s|f)?-?\d?(?![\w#])")
_CHORD: Final = re.compile(r"[A-G][#b]?[\w^#+/-]*")
_SCALE: Final = re.compile(r"[A-Ga-g][#b]?\d?:[\w:]+")

_SOUND_FUNCTIONS: Final = frozenset({"s", "sound"})
_NOTE_FUNCTIONS: Final = frozenset({"note", "n", "freq", "chord", "scale", "rootNotes", "mode", "dict"})
_STRING_FUNCTIONS: Final = _SOUND_FUNCTIONS | _NOTE_FUNCTIONS | {"bank"}
_COMMON_FUNCTIONS: Final = frozenset({
    "s", "n", "note", "sound", "stack", "cat", "if", "for", "while", "function", "return", "samples", "await",
    "const", "let", "var", "register", "p", "x", "y", "all", "new", "async",
})  # fmt: skip
"""Functions of almost every piece. They come after all others."""

_SIGNALS: Final = frozenset({
    "sine", "saw", "isaw", "tri", "square", "cosine", "perlin", "rand", "irand", "brand", "sine2", "saw2", "tri2",
    "square2", "cosine2", "silence", "berlin", "mouseX", "mouseY",
})  # fmt: skip
"""Patterns that are written without parentheses."""

_PLAYS_PATTERN: Final = re.compile(
    r"""\b(?:s|sound|note|n|chord)\(\s*["'`]|^\s*_?\$\w*:|\bset[cC]p[sm]\(""", re.M
)
_PATTERN_FUNCTION: Final = re.compile(
    r"\b(?:s|sound|note|n|chord|stack|arrange)\(|\.(?:bank|voicing|jux|lpf|hpf|room|slow|fast|cpm|gain|scale)\(",
    re.M,
)


def is_strudel(code: str) -> bool:
    """Return whether code plays patterns: it has mini-notation or a tempo, or two of the pattern functions."""
    return _PLAYS_PATTERN.search(code) is not None or len(_PATTERN_FUNCTION.findall(code)) > 1


def extract_words(code: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return banks, sounds, functions and signals, notes and chords, each in the order of the code.

    A string belongs to the nearest enclosing function that takes strings: `s(cat("bd", "sd"))` has two sounds. A
    string that is not closed ends with its line.
    """
    banks: list[str] = []
    sounds: list[str] = []
    functions: list[str] = []
    common: list[str] = []
    notes: list[str] = []
    enclosing: list[str] = []
    for token in _TOKEN.finditer(code):
        if name := token["name"]:
            if token["call"]:
                enclosing.append(name)
                (common if name in _COMMON_FUNCTIONS else functions).append(name)
            elif name in _SIGNALS:
                functions.append(name)
        elif token["close"]:
            if enclosing:
                enclosing.pop()
        elif text := token["string"]:
            notation = text.strip("\"'`")
            function = next((name for name in reversed(enclosing) if name in _STRING_FUNCTIONS), "")
            if function == "bank":
                banks += _SOUND.findall(notation)
            elif function in _SOUND_FUNCTIONS:
                sounds += _SOUND.findall(notation)
            elif function:
                notes += _extract_notes(function, notation)
    return banks, sounds, [*functions, *common], notes


def _extract_notes(function: str, notation: str) -> list[str]:
    if function == "scale":
        return _SCALE.findall(notation)
    if function == "chord":
        return _CHORD.findall(notation)
    return _NOTE.findall(notation) if function == "note" else []
