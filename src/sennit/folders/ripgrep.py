"""Asking ripgrep: one pass over the folders for all keywords, with limits on what it may take and say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from sennit.errors import InvalidInput, MissingExtra, SourceError
from sennit.folders.globs import names_only, wanted
from sennit.folders.options import GrepOptions, expression, ignores_case

MAX_OUTPUT: Final = 64 * 1024 * 1024
"""Bytes of matched lines that are taken in."""

PREVIEW: Final = 256
"""Bytes shown of a match where there is one keyword; an expression may match a line of a gigabyte."""

MAX_SKIPPED: Final = 100
"""Files that could not be read and are named."""

NO_MATCH: Final = 1
FAILED: Final = 2
"""Exit codes of ripgrep."""

_CHUNK: Final = 1 << 18
_LITTLE: Final = 1 << 15
_PAUSE: Final = 0.001
"""Seconds until more is read when there was little: ripgrep hands over file by file, and to be woken for each costs
more than to look at it."""
_NAMES: Final = sys.getfilesystemencoding()
_NOT_NAMES: Final = sys.getfilesystemencodeerrors()
"""What os.fsdecode asks for each time: with thousands of files that is felt."""
_SHORTENED: Final = re.compile(rb" \[\.\.\. \d+ more match(?:es)?\]\Z")
_BINARY: Final = re.compile(rb"\A(?:[^\0]*?: binary file matches \(found [^\n]*\n+)+")
"""What is said about a binary file that is a root stands between the answers for two others."""

Sees = Callable[[Path], bool]
"""Whether a caller may know of what is at a real path."""

Take = Callable[[str, bytes], None]
"""Is given each file with what was found in it: `number:match` in each line, or `number:line` (see `whole_lines`)."""


@dataclass(slots=True)
class Search:
    """What one pass over the folders came to."""

    files: int = 0
    lines: int = 0
    limits: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def binary() -> str:
    """Where ripgrep is: installed beside this Python, or on the PATH."""
    name = "rg.exe" if os.name == "nt" else "rg"
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        if os.access(own := f"{folder}{os.sep}{name}", os.X_OK):
            return own
    found = shutil.which("rg")
    # A program in the current folder is not ours to run, whatever the PATH says.
    if found is None or not Path(found).is_absolute():
        raise MissingExtra(
            "Searching the text of files (ripgrep is neither beside Python nor on the PATH)", "files"
        )
    return found


def whole_lines(keywords: Sequence[str], options: GrepOptions) -> bool:
    """Whether lines are asked for and not matches: only they tell which of several expressions is there."""
    return options.regex and len(keywords) > 1


def search(
    roots: Sequence[Path],
    keywords: Sequence[str],
    options: GrepOptions,
    take: Take,
    *,
    deadline: float,
    sees: Sees | None = None,
) -> Search:
    """Hand over every match below the roots, which are real paths, until a moment of time.monotonic or a limit."""
    out = Search()
    late = threading.Event()
    with tempfile.TemporaryFile() as said, _start(_command(roots, keywords, options), said) as process:

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(max(0.0, deadline - time.monotonic()), stop)
        timer.daemon = True
        timer.start()
        try:
            _ask(process, keywords, options)
            ended = _collect(process, out, _passing(roots, options, sees), take, options)
            if not ended:
                process.wait()
        finally:
            timer.cancel()
            process.kill()
        if late.is_set():
            ended = f"The search stopped after {options.seconds:g} seconds"
        if ended:
            out.limits.append(f"{ended}; files it had not reached are not in the answer.")
        said.seek(0)
        complaints = said.read(_CHUNK).decode("utf-8", "surrogateescape")
    unexplained = _skip(complaints, roots, out, sees)
    if process.returncode == FAILED and not ended and unexplained:
        raise _refused(unexplained, keywords, options)
    return out


def original(text: bytes) -> bytes:
    """A match as it stands in the file, or as much of its beginning as was shown."""
    # With --crlf, what ripgrep prints ends like this, whatever the file.
    text = text.removesuffix(b"\r")
    return _SHORTENED.sub(b"", text) if len(text) > PREVIEW else text


def flags(keywords: Sequence[str], options: GrepOptions) -> list[str]:
    """How ripgrep is told about case and line ends, and not to listen to anybody else."""
    ignoring = all(ignores_case(keyword, options) for keyword in keywords)
    case = "--ignore-case" if ignoring else "--case-sensitive"
    return ["--no-config", "--color=never", "--engine=default", case, *(["--crlf"] if options.regex else [])]


def _command(roots: Sequence[Path], keywords: Sequence[str], options: GrepOptions) -> list[str]:
    command = [
        binary(), *flags(keywords, options), "--no-require-git", "--no-ignore-global", "--no-ignore-exclude",
        "--no-ignore-messages", "--heading", "--null", "--with-filename", "--line-number", "--file=-",
        f"--max-count={options.max_matches}",
    ]  # fmt: skip
    if not whole_lines(keywords, options):
        longest = PREVIEW if options.regex else max(len(keyword.encode()) for keyword in keywords) * 4
        command += ["--only-matching", f"--max-columns={max(PREVIEW, longest)}", "--max-columns-preview"]
    if options.ignored:
        command.append("--no-ignore")
    if options.hidden:
        command += ["--hidden", "--glob=!.git"]
    if names_only(options.globs):
        taking = [glob for glob in options.globs if not glob.startswith("!")]
        command += [*(f"--type-add=sennit:{glob}" for glob in taking), "--type=sennit"]
    return [*command, "--", *map(str, roots)]


def _start(command: list[str], said: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, pipesize=1 << 20
        )
    except OSError as error:
        raise SourceError(f"ripgrep at {command[0]} cannot be run: {error.strerror}.") from error


def _ask(process: subprocess.Popen[bytes], keywords: Sequence[str], options: GrepOptions) -> None:
    """Hand over the expressions, one in a line, so that one which begins with a dash is no option."""
    ignoring = {keyword: ignores_case(keyword, options) for keyword in keywords}
    mixed = any(ignoring.values()) and not all(ignoring.values())
    # Of those that match in one place the first counts, and of words in words that should be the longer.
    ordered = keywords if options.regex else sorted(keywords, key=len, reverse=True)
    lines = [f"{'(?i)' if mixed and ignoring[word] else ''}{expression(word, options)}\n" for word in ordered]
    assert process.stdin is not None
    # It may have died of its arguments, which its exit code tells.
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write("".join(lines).encode())


def _passing(roots: Sequence[Path], options: GrepOptions, sees: Sees | None) -> Callable[[str], bool]:
    """Whether a file is part of the answer, asked once for each."""
    by_glob = wanted(roots, options.globs, hidden=options.hidden)
    seen: set[str] = set()

    def passes(path: str) -> bool:
        # Where one root lies in another, its files come twice.
        if path in seen or (by_glob is not None and not by_glob(path)):
            return False
        seen.add(path)
        return sees is None or sees(Path(path))

    return passes


def _collect(
    process: subprocess.Popen[bytes],
    out: Search,
    passes: Callable[[str], bool],
    take: Take,
    options: GrepOptions,
) -> str:
    """Hand over what is printed, and say which limit ended that, if one did."""
    assert process.stdout is not None
    taken = 0
    for path, body in _blocks(process.stdout):
        name = path.decode(_NAMES, _NOT_NAMES)
        if not body or not passes(name):
            continue
        if out.files == options.max_files:
            return f"The search stopped after {out.files:,} files with matches"
        take(name, body)
        out.files += 1
        out.lines += body.count(b"\n")
        if out.lines >= options.max_matches:
            return f"The search stopped after {out.lines:,} matches"
        taken += len(body)
        if taken > MAX_OUTPUT:
            return f"The search stopped after {taken:,} bytes of matched lines"
    return ""


def _blocks(stream: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Each file with the lines printed for it: `path NUL lines`, and an empty line between two files."""
    path: bytes | None = None
    waiting: list[bytes] = []
    held = 0
    while held <= MAX_OUTPUT and (chunk := os.read(stream.fileno(), _CHUNK)):
        first, *others = chunk.split(b"\0")
        waiting.append(first)
        held += len(first)
        for piece in others:
            whole = b"".join(waiting) if len(waiting) > 1 else waiting[0]
            waiting, held = [piece], len(piece)
            if path is None:
                path = _path(whole)
            else:
                body, _, following = whole.partition(b"\n\n")
                yield path, _without_warning(body + b"\n")
                path = _path(following)
        if len(chunk) < _LITTLE:
            time.sleep(_PAUSE)
    if path is not None:
        # What was cut off in the middle of a line is no line.
        body = b"".join(waiting)
        yield path, _without_warning(body[: body.rfind(b"\n") + 1])


def _path(printed: bytes) -> bytes:
    """Without what was said before it about binary files."""
    return _BINARY.sub(b"", printed) if b"\n" in printed else printed


def _without_warning(body: bytes) -> bytes:
    if not body.endswith(b")\n"):
        return body
    last = body.rfind(b"\n", 0, -1) + 1
    return body[:last] if b": WARNING: stopped searching binary file" in body[last:] else body


def _skip(complaints: str, roots: Sequence[Path], out: Search, sees: Sees | None) -> str:
    """Note the files that could not be read; gives what else was said."""
    others: list[str] = []
    starts = tuple(f"rg: {root}" for root in roots)
    skipped: dict[str, str] = {}
    for line in complaints.splitlines():
        if not line.startswith(starts):
            others.append(line)
            continue
        path, _, reason = line.removeprefix("rg: ").rpartition(": ")
        if path and (sees is None or sees(Path(path))):
            skipped[path] = reason.partition(" (os error")[0]
    out.skipped += [f"{shown(path)}: {reason}" for path, reason in sorted(skipped.items())[:MAX_SKIPPED]]
    if len(skipped) > MAX_SKIPPED:
        out.skipped.append(f"and {len(skipped) - MAX_SKIPPED:,} more that could not be read")
    return "\n".join(others).strip()


def shown(path: str) -> str:
    """A path as text, in the way records have it: bytes that are not UTF-8 are written as \\xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace") if not path.isascii() else path


def _refused(said: str, keywords: Sequence[str], options: GrepOptions) -> InvalidInput | SourceError:
    """Why it would not search: mostly an expression that is none; then which, and where."""
    if options.regex:
        for keyword in keywords:
            command = [binary(), *flags([keyword], options), "--quiet", f"--regexp={keyword}", "-"]
            tried = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if tried.returncode == FAILED:
                text = tried.stderr.decode("utf-8", "replace")
                reason = text.partition("error: ")[2] or text.removeprefix("rg: ")
                reason = " ".join(reason.partition("\n\n")[0].split()).rstrip(".")
                return InvalidInput(f"{keyword!r} cannot be used as a regular expression: {reason}.")
    return SourceError(f"ripgrep would not search: {' '.join(said.split())[:500]}")
