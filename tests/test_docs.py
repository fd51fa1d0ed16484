"""The documentation, executed: its Python runs, its commands succeed and print what it says they print.

The blocks of one file run in order, in one folder of their own; its Python blocks share a namespace. A block
after `<!-- no-run: reason -->` is left out.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OPENING = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w-]*)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
NO_RUN = re.compile(r"^\s*<!--\s*no-run\b:?\s*(?P<reason>.*?)\s*-->\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is that of its first line of content."""

    language: str
    lines: tuple[str, ...]
    line: int


def blocks_of(text: str, *, with_skipped: bool = False) -> Iterator[Block]:
    """The blocks to run; a fence that is never closed and a no-run without a reason are errors."""
    lines = text.splitlines()
    before = ""
    number = 0
    while number < len(lines):
        opening = OPENING.match(lines[number])
        if opening is None:
            before = lines[number] if lines[number].strip() else before
            number += 1
            continue
        indent, fence = len(opening["indent"]), opening["fence"]
        first = number + 1
        last = next((n for n in range(first, len(lines)) if lines[n].strip() == fence), None)
        assert last is not None, f"line {first}: this block is never closed"
        skipped = NO_RUN.match(before)
        assert skipped is None or skipped["reason"], f"line {first}: say why: <!-- no-run: reason -->"
        if skipped is None or with_skipped:
            content = tuple(line[min(indent, len(line) - len(line.lstrip())) :] for line in lines[first:last])
            yield Block(opening["language"], content, first + 1)
        before = ""
        number = last + 1


def commands_of(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each `$ command` of a console block, its continued lines joined, with the output written under it."""
    command, output = "", list[str]()
    for line in block.lines:
        if command.endswith("\\"):
            command = f"{command}\n{line.removeprefix('> ')}"
        elif line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], []
        else:
            assert command, f"line {block.line}: a console block begins with a command: $ …"
            output.append(line)
    if command:
        yield command, output


def appears(expected: list[str], actual: str) -> bool:
    """Whether the lines appear, in order and together; `...` stands for any text, alone for any lines."""
    groups: list[list[str]] = [[]]
    for line in expected:
        if line.strip() == "...":
            groups.append([])
        else:
            groups[-1].append("[^\n]*".join(re.escape(part) for part in line.rstrip().split("...")))
    body = r"(?:[^\n]*\n)*".join("".join(f"{line}\n" for line in group) for group in groups)
    real = "".join(f"{line.rstrip()}\n" for line in actual.splitlines())
    return re.search(rf"^{body}", real, re.M) is not None


def run_blocks(name: str, blocks: Iterable[Block]) -> None:
    """Run the Python and console blocks of a page in the current folder."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        if block.language == "python":
            source = "\n" * (block.line - 1) + "\n".join(block.lines)
            exec(compile(source, name, "exec"), namespace)
        elif block.language == "console":
            for command, expected in commands_of(block):
                run = subprocess.run(
                    ["bash", "-o", "pipefail", "-c", command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                where = f"{name}, block at line {block.line}: $ {command}\n{run.stdout}"
                assert run.returncode == 0, where
                assert appears(expected, run.stdout), f"{where}\nshould have printed\n" + "\n".join(expected)


def enter_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, with the commands of this environment and no configuration of the user."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_folder(tmp_path, monkeypatch)
    run_blocks(page.relative_to(ROOT).as_posix(), blocks_of(page.read_text(encoding="utf-8")))


README_BLOCKS = [
    block
    for block in blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))
    if block.language == "python"
]


@pytest.mark.parametrize("block", README_BLOCKS, ids=lambda block: f"line {block.line}")
def test_each_python_block_of_the_readme_runs_on_its_own(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People copy one block, not the page."""
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(block.lines), "README.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(
    ("script", "page"),
    [
        ("generate_settings_page.py", "reference/settings.md"),
        ("generate_backends_page.py", "backends.md"),
    ],
)
def test_a_generated_page_is_what_its_script_writes(script: str, page: str) -> None:
    namespace = runpy.run_path(str(ROOT / "scripts" / script))
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert written == namespace["page"](), f"run python scripts/{script}"


# The reader of pages itself


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_lead_somewhere_on_a_code_host(page: Path) -> None:
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_relative_to(ROOT), target
        assert file.exists(), target
        assert not anchor or anchor in anchors_of(file), target


def anchors_of(page: Path) -> set[str]:
    """The anchors that a code host gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_the_architecture_lists_every_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    _, _, listed = page.partition("src/sennit/\n")
    names = set(re.findall(r"([a-z_]+)(?:\.py|/)", listed.partition("```")[0]))
    source = ROOT / "src" / "sennit"
    packages = {
        one.stem for one in source.iterdir() if not one.name.startswith("__") and one.name != "py.typed"
    }
    assert packages - names == set()
    top = re.findall(r"^  ([a-z_]+)(?:\.py|/)", listed.partition("```")[0], re.MULTILINE)
    assert set(top) - packages == set()


def test_blocks_are_read_with_their_language_and_place() -> None:
    page = "# a\n```python\nx = 1\n```\n\n- b\n  ```console\n  $ ls\n    x\n  ```\n````md\n```python\n```\n````\n"
    assert list(blocks_of(page)) == [
        Block("python", ("x = 1",), 3),
        Block("console", ("$ ls", "  x"), 8),
        Block("md", ("```python", "```"), 12),
    ]


def test_a_block_is_left_out_only_for_a_reason() -> None:
    assert list(blocks_of("<!-- no-run: needs a server -->\n\n```python\nx\n```\n")) == []
    assert len(list(blocks_of("<!-- no-run: a -->\ntext\n```python\nx\n```\n"))) == 1
    for comment in ("<!-- no-run -->", "<!-- no-run: -->"):
        with pytest.raises(AssertionError, match="say why"):
            list(blocks_of(f"{comment}\n```python\nx\n```\n"))
    with pytest.raises(AssertionError, match="never closed"):
        list(blocks_of("```python\nx\n"))


def test_commands_are_told_from_their_output() -> None:
    block = Block("console", ("$ a \\", "    -b", "out", "$ c"), 1)
    assert list(commands_of(block)) == [("a \\\n    -b", ["out"]), ("c", [])]


@pytest.mark.parametrize(
    ("expected", "holds"),
    [
        ([], True),
        (["one"], True),
        (["two", "three"], True),
        (["one", "three"], False),
        (["one", "...", "three"], True),
        (["three", "...", "one"], False),
        (["t...o"], True),
        (["tw"], False),
        (["..."], True),
    ],
)
def test_output_is_compared_by_line_with_gaps_where_the_page_has_dots(
    expected: list[str], holds: bool
) -> None:
    assert appears(expected, "one  \ntwo\nthree") is holds
