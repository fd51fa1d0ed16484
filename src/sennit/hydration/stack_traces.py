"""Stack traces in a query: the file, line and function of every frame."""

from __future__ import annotations

import re
from typing import Final

from sennit.hydration.mentions import FileMention

FRAME_PATTERNS: Final[tuple[re.Pattern[str], ...]] = (
    # Python: File "app/auth.py", line 12, in login
    re.compile(
        r'File "(?P<path>[^"\n]{1,1000})", line (?P<line>\d{1,9})(?:, in (?P<function>[\w.<>]{1,300}))?'
    ),
    # Java: at com.example.Session.login(Session.java:12)
    re.compile(
        r"^[ \t]*at (?:[\w.@-]{1,100}/)?(?P<package>(?:[\w$]{1,100}\.){0,30})(?P<function>[\w$]{1,100}\.[\w$<>]{1,200})"
        r"\((?P<path>[\w$]{1,200}\.(?:java|kt|scala|groovy)):(?P<line>\d{1,9})\)",
        re.M,
    ),
    # Go: main.(*Session).Login(0xc000010000)\n\t/srv/app/auth.go:12 +0x1d
    re.compile(
        r"^(?P<function>[\w./*()\[\]$-]{1,500}?)\([^()\n]{0,500}\)\n[ \t]+(?P<path>[^\n]{1,1000}?\.go):(?P<line>\d{1,9})",
        re.M,
    ),
    # Rust: 12: app::auth::login\n             at ./src/auth.rs:12:7
    re.compile(
        r"^[ \t]*\d{1,5}:[ \t]+(?:0x[\da-f]{1,16} - )?(?P<function>[^\s]{1,500})\n"
        r"[ \t]+at (?P<path>[^\n]{1,1000}?):(?P<line>\d{1,9})(?::\d{1,9})?$",
        re.M,
    ),
    # JavaScript: at Session.login (/srv/app/auth.js:12:7), at async login (auth.js:12:7), at /srv/app/auth.js:12:7
    # This follows Rust, because the second line of a Rust frame looks the same.
    re.compile(
        r"^[ \t]*at (?:async )?(?:new )?(?:(?P<function>[\w$.<>]{1,300})(?: \[as [^\]\n]{1,100}\])? )?"
        r"\(?(?P<path>[^\s():\n]{0,10}:?[^():\n]{1,1000}):(?P<line>\d{1,9}):\d{1,9}\)?$",
        re.M,
    ),
)

_NAMES: Final = re.compile(r"[^\W\d][\w$]*")
_NOISE: Final = re.compile(r"\.func\d+(?:\.\d+)*$|::\{\{closure\}\}|::h[\da-f]{16}$|\.<locals>|<[\w.]+>$")


def find_frames(query: str) -> tuple[list[FileMention], str]:
    """Return the frames in the order of the query, and the query with the frames blanked out."""
    found: list[FileMention] = []
    rest = query
    for pattern in FRAME_PATTERNS:
        for match in pattern.finditer(rest):
            groups = match.groupdict()
            path = groups["path"].removeprefix("file://").replace("\\", "/")
            if groups.get("package"):
                path = f"{groups['package'].replace('.', '/')}{path}"
            line = max(1, int(groups["line"]))
            function = _short_name(groups["function"] or "")
            found.append(FileMention(path, match.start(), (line, line), function, match.end()))
        rest = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), rest)
    return sorted(found, key=lambda one: one.at), rest


def _short_name(text: str) -> str:
    """Return the last two names of a function in a trace: Session.Login for `(*Session).Login`."""
    names = _NAMES.findall(_NOISE.sub("", text).rpartition("/")[2])
    return ".".join(names[-2:])
