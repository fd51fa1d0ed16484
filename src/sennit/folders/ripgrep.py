"""Running ripgrep: one pass over the folders for all keywords, with limits on time and output."""

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
from sennit.folders.globs import glob_filter, match_names_only
from sennit.folders.options import GrepOptions, ignores_case, keyword_pattern

MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
"""The most output that is read."""

PREVIEW_BYTES: Final = 256
"""How much of a match ripgrep prints. A regular expression may match a line of a gigabyte."""

MAX_SKIPPED: Final = 100
"""How many files that could not be read are listed."""

EXIT_FAILED: Final = 2
"""The exit code of ripgrep for an error; without a match it is 1."""

_CHUNK_BYTES: Final = 1 << 18
_SMALL_CHUNK_BYTES: Final = 1 << 15
_PAUSE_SECONDS: Final = 0.001
"""The pause after a small chunk. ripgrep flushes its output after each file, and to wake up for each costs more than to
read it."""
_PATH_ENCODING: Final = sys.getfilesystemencoding()
_PATH_ERRORS: Final = sys.getfilesystemencodeerrors()
"""os.fsdecode looks these up for every call, which is measurable with thousands of files."""
_PREVIEW_MARK: Final = re.compile(rb" \[\.\.\. \d+ more match(?:es)?\]\Z")
_BINARY_NOTES: Final = re.compile(rb"\A(?:[^\0]*?: binary file matches \(found [^\n]*\n+)+")
"""Notes about binary files given as roots, which ripgrep prints between the output of two other files."""

IsVisible = Callable[[Path], bool]
"""Whether a real path is visible to the caller."""

AddFile = Callable[[str, bytes], None]
"""Takes a path and the output for it: lines of `number:match`, or of `number:line` (see `needs_whole_lines`)."""


@dataclass(slots=True)
class RipgrepSummary:
    """Counts, limits and skipped files of one run of ripgrep."""

    files: int = 0
    lines: int = 0
    limits: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def find_ripgrep() -> str:
    """The path of ripgrep: next to this Python, or on the PATH."""
    name = "rg.exe" if os.name == "nt" else "rg"
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        if os.access(path := f"{folder}{os.sep}{name}", os.X_OK):
            return path
    found = shutil.which("rg")
    # Never run a program from the working directory, even if it is on the PATH.
    if found is None or not Path(found).is_absolute():
        raise MissingExtra(
            "Searching the text of files (ripgrep is neither next to Python nor on the PATH)", "files"
        )
    return found


def needs_whole_lines(keywords: Sequence[str], options: GrepOptions) -> bool:
    """Whether ripgrep must print whole lines, to find out which of several regular expressions match."""
    return options.regex and len(keywords) > 1


def run_ripgrep(
    roots: Sequence[Path],
    keywords: Sequence[str],
    options: GrepOptions,
    add_file: AddFile,
    *,
    deadline: float,
    is_visible: IsVisible | None = None,
) -> RipgrepSummary:
    """Pass the matches below the roots to `add_file`, until the deadline (of time.monotonic) or a limit.

    The roots must be real paths.
    """
    summary = RipgrepSummary()
    is_late = threading.Event()
    command = _build_command(roots, keywords, options)
    with tempfile.TemporaryFile() as errors, _start(command, errors) as process:

        def stop() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(max(0.0, deadline - time.monotonic()), stop)
        timer.daemon = True
        timer.start()
        try:
            _write_patterns(process, keywords, options)
            accepts = _create_filter(roots, options, is_visible)
            reached_limit = _read_matches(process, summary, accepts, add_file, options)
            if not reached_limit:
                process.wait()
        finally:
            timer.cancel()
            process.kill()
        if is_late.is_set():
            reached_limit = f"The search stopped after {options.seconds:g} seconds"
        if reached_limit:
            summary.limits.append(f"{reached_limit}; the result has no files after that point.")
        errors.seek(0)
        messages = errors.read(_CHUNK_BYTES).decode("utf-8", "surrogateescape")
    other_errors = _collect_skipped(messages, roots, summary, is_visible)
    if process.returncode == EXIT_FAILED and not reached_limit and other_errors:
        raise _create_error(other_errors, keywords, options)
    return summary


def strip_preview_mark(text: bytes) -> bytes:
    """Remove what ripgrep adds to a match: the carriage return, and the mark of a shortened preview."""
    # With --crlf, ripgrep prints \r at the end, whatever the line ending of the file.
    text = text.removesuffix(b"\r")
    return _PREVIEW_MARK.sub(b"", text) if len(text) > PREVIEW_BYTES else text


def common_flags(keywords: Sequence[str], options: GrepOptions) -> list[str]:
    """The flags for case and line endings, and those that ignore the user's configuration."""
    ignore_all = all(ignores_case(keyword, options) for keyword in keywords)
    case = "--ignore-case" if ignore_all else "--case-sensitive"
    return ["--no-config", "--color=never", "--engine=default", case, *(["--crlf"] if options.regex else [])]


def _build_command(roots: Sequence[Path], keywords: Sequence[str], options: GrepOptions) -> list[str]:
    command = [
        find_ripgrep(), *common_flags(keywords, options), "--no-require-git", "--no-ignore-global", "--no-ignore-exclude",
        "--no-ignore-messages", "--heading", "--null", "--with-filename", "--line-number", "--file=-",
        f"--max-count={options.max_matches}",
    ]  # fmt: skip
    if not needs_whole_lines(keywords, options):
        longest = PREVIEW_BYTES if options.regex else max(len(keyword.encode()) for keyword in keywords) * 4
        command += [
            "--only-matching",
            f"--max-columns={max(PREVIEW_BYTES, longest)}",
            "--max-columns-preview",
        ]
    if options.ignored:
        command.append("--no-ignore")
    if options.hidden:
        command += ["--hidden", "--glob=!.git"]
    if match_names_only(options.globs):
        including = [glob for glob in options.globs if not glob.startswith("!")]
        command += [*(f"--type-add=sennit:{glob}" for glob in including), "--type=sennit"]
    return [*command, "--", *map(str, roots)]


def _start(command: list[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, pipesize=1 << 20
        )
    except OSError as error:
        raise SourceError(f"ripgrep at {command[0]} cannot be run: {error.strerror}.") from error


def _write_patterns(process: subprocess.Popen[bytes], keywords: Sequence[str], options: GrepOptions) -> None:
    """Write the patterns to standard input, one per line, so that a leading dash does not make one an option."""
    ignore_case = {keyword: ignores_case(keyword, options) for keyword in keywords}
    mixed = any(ignore_case.values()) and not all(ignore_case.values())
    # The first pattern that matches at a position wins, so a longer keyword comes before its parts.
    ordered = keywords if options.regex else sorted(keywords, key=len, reverse=True)
    lines = [
        f"{'(?i)' if mixed and ignore_case[word] else ''}{keyword_pattern(word, options)}\n"
        for word in ordered
    ]
    assert process.stdin is not None
    # ripgrep may have exited because of its arguments; the exit code tells.
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write("".join(lines).encode())


def _create_filter(
    roots: Sequence[Path], options: GrepOptions, is_visible: IsVisible | None
) -> Callable[[str], bool]:
    """A filter that accepts each file at most once."""
    by_glob = glob_filter(roots, options.globs, hidden=options.hidden)
    seen: set[str] = set()

    def accepts(path: str) -> bool:
        # If one root is inside another, ripgrep prints its files twice.
        if path in seen or (by_glob is not None and not by_glob(path)):
            return False
        seen.add(path)
        return is_visible is None or is_visible(Path(path))

    return accepts


def _read_matches(
    process: subprocess.Popen[bytes],
    summary: RipgrepSummary,
    accepts: Callable[[str], bool],
    add_file: AddFile,
    options: GrepOptions,
) -> str:
    """Pass the output to `add_file`; returns the limit that was reached as a sentence, or an empty text."""
    assert process.stdout is not None
    output_bytes = 0
    for path, body in _split_files(process.stdout):
        name = path.decode(_PATH_ENCODING, _PATH_ERRORS)
        if not body or not accepts(name):
            continue
        if summary.files == options.max_files:
            return f"The search stopped after {summary.files:,} files with matches"
        add_file(name, body)
        summary.files += 1
        summary.lines += body.count(b"\n")
        if summary.lines >= options.max_matches:
            return f"The search stopped after {summary.lines:,} matches"
        output_bytes += len(body)
        if output_bytes > MAX_OUTPUT_BYTES:
            return f"The search stopped after {output_bytes:,} bytes of matched lines"
    return ""


def _split_files(stream: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Split the output into paths and their lines. Each is `path NUL lines`, with an empty line between files."""
    path: bytes | None = None
    buffered: list[bytes] = []
    buffered_bytes = 0
    while buffered_bytes <= MAX_OUTPUT_BYTES and (chunk := os.read(stream.fileno(), _CHUNK_BYTES)):
        first, *others = chunk.split(b"\0")
        buffered.append(first)
        buffered_bytes += len(first)
        for piece in others:
            block = b"".join(buffered) if len(buffered) > 1 else buffered[0]
            buffered, buffered_bytes = [piece], len(piece)
            if path is None:
                path = _strip_binary_notes(block)
            else:
                body, _, following = block.partition(b"\n\n")
                yield path, _strip_warning(body + b"\n")
                path = _strip_binary_notes(following)
        if len(chunk) < _SMALL_CHUNK_BYTES:
            time.sleep(_PAUSE_SECONDS)
    if path is not None:
        # An incomplete last line is dropped.
        body = b"".join(buffered)
        yield path, _strip_warning(body[: body.rfind(b"\n") + 1])


def _strip_binary_notes(printed: bytes) -> bytes:
    """Remove the notes about binary files before a path."""
    return _BINARY_NOTES.sub(b"", printed) if b"\n" in printed else printed


def _strip_warning(body: bytes) -> bytes:
    if not body.endswith(b")\n"):
        return body
    last = body.rfind(b"\n", 0, -1) + 1
    return body[:last] if b": WARNING: stopped searching binary file" in body[last:] else body


def _collect_skipped(
    messages: str, roots: Sequence[Path], summary: RipgrepSummary, is_visible: IsVisible | None
) -> str:
    """Add the files that could not be read to the summary; returns the other error messages."""
    others: list[str] = []
    starts = tuple(f"rg: {root}" for root in roots)
    skipped: dict[str, str] = {}
    for line in messages.splitlines():
        if not line.startswith(starts):
            others.append(line)
            continue
        path, _, reason = line.removeprefix("rg: ").rpartition(": ")
        if path and (is_visible is None or is_visible(Path(path))):
            skipped[path] = reason.partition(" (os error")[0]
    summary.skipped += [
        f"{path_to_text(path)}: {reason}" for path, reason in sorted(skipped.items())[:MAX_SKIPPED]
    ]
    if len(skipped) > MAX_SKIPPED:
        summary.skipped.append(f"and {len(skipped) - MAX_SKIPPED:,} more that could not be read")
    return "\n".join(others).strip()


def path_to_text(path: str) -> str:
    """A path as valid text, as in records; bytes that are not UTF-8 become \\xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace") if not path.isascii() else path


def _create_error(messages: str, keywords: Sequence[str], options: GrepOptions) -> InvalidInput | SourceError:
    """Explain why ripgrep failed. If a regular expression is invalid, the error names it and the position."""
    if options.regex:
        for keyword in keywords:
            command = [
                find_ripgrep(),
                *common_flags([keyword], options),
                "--quiet",
                f"--regexp={keyword}",
                "-",
            ]
            check = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if check.returncode == EXIT_FAILED:
                text = check.stderr.decode("utf-8", "replace")
                reason = text.partition("error: ")[2] or text.removeprefix("rg: ")
                reason = " ".join(reason.partition("\n\n")[0].split()).rstrip(".")
                return InvalidInput(f"{keyword!r} is not a valid regular expression: {reason}.")
    return SourceError(f"ripgrep failed: {' '.join(messages.split())[:500]}")
