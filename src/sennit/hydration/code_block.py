"""A piece of code as a prompt shows it."""

from __future__ import annotations

import re
from typing import Final

from sennit.context.sanitize import one_line, sanitize

_FENCE: Final = re.compile(r"`{3,}")


def render_block(path: str, lines: tuple[int, int] | None, qualified: str, language: str, text: str) -> str:
    """Return a sanitized text between fences that nothing in it can close, under its path and lines."""
    inside = sanitize(text)
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCE.findall(inside))])
    place = f":{lines[0]}-{lines[1]}" if lines else ""
    name = f" {one_line(qualified)}" if qualified else ""
    return f"{one_line(path)}{place}{name}\n{fence}{one_line(language)}\n{inside}\n{fence}\n\n"
