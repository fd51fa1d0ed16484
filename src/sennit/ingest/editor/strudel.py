"""Strudel: the sounds, banks and notes inside mini-notation, and the functions they are played with."""

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

_SOUNDS: Final = frozenset({"s", "sound"})
_NOTES: Final = frozenset({"note", "n", "freq", "chord", "scale", "rootNotes", "mode", "dict"})
_ROLES: Final = _SOUNDS | _NOTES | {"bank"}
_PLAIN: Final = frozenset({
    "s", "n", "note", "sound", "stack", "cat", "if", "for", "while", "function", "return", "samples", "await",
    "const", "let", "var", "register", "p", "x", "y", "all", "new", "async",
})  # fmt: skip
"""Every piece has them, so they come after all others."""

_SIGNALS: Final = frozenset({
    "sine", "saw", "isaw", "tri", "square", "cosine", "perlin", "rand", "irand", "brand", "sine2", "saw2", "tri2",
    "square2", "cosine2", "silence", "berlin", "mouseX", "mouseY",
})  # fmt: skip
"""Patterns without parentheses."""


def words_in(code: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Banks, sounds, functions and signals, notes and chords; each in the order of the code.

    Strings belong to the function around them, however deep: `s(cat("bd", "sd"))` has two sounds. A string that is
    never closed ends with its line.
    """
    banks: list[str] = []
    sounds: list[str] = []
    functions: list[str] = []
    plain: list[str] = []
    notes: list[str] = []
    around: list[str] = []
    for token in _TOKEN.finditer(code):
        if name := token["name"]:
            if token["call"]:
                around.append(name)
                (plain if name in _PLAIN else functions).append(name)
            elif name in _SIGNALS:
                functions.append(name)
        elif token["close"]:
            if around:
                around.pop()
        elif text := token["string"]:
            inside = text.strip("\"'`")
            role = next((name for name in reversed(around) if name in _ROLES), "")
            if role == "bank":
                banks += _SOUND.findall(inside)
            elif role in _SOUNDS:
                sounds += _SOUND.findall(inside)
            elif role:
                notes += _notes(role, inside)
    return banks, sounds, [*functions, *plain], notes


def _notes(role: str, inside: str) -> list[str]:
    if role == "scale":
        return _SCALE.findall(inside)
    if role == "chord":
        return _CHORD.findall(inside)
    return _NOTE.findall(inside) if role == "note" else []
