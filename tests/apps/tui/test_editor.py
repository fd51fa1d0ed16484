"""The command that opens a file in an editor."""

from __future__ import annotations

import pytest

from sennit.apps.tui.editor import command
from sennit.errors import InvalidInput


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"EDITOR": "vim"}, ["vim", "+7", "/a b/c.py"]),
        ({"EDITOR": "nano", "VISUAL": "emacs -nw"}, ["emacs", "-nw", "+7", "/a b/c.py"]),
        ({"EDITOR": "/usr/bin/hx"}, ["/usr/bin/hx", "/a b/c.py:7"]),
        ({"EDITOR": "code --wait"}, ["code", "--wait", "--goto", "/a b/c.py:7"]),
        ({"EDITOR": "'my editor' -x"}, ["my editor", "-x", "+7", "/a b/c.py"]),
    ],
)
def test_the_editor_is_told_the_line(environment: dict[str, str], expected: list[str]) -> None:
    assert command("/a b/c.py", 7, environment) == expected


@pytest.mark.parametrize("environment", [{}, {"EDITOR": ""}, {"EDITOR": " "}])
def test_without_an_editor_it_says_how_to_name_one(environment: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="export EDITOR="):
        command("/a", 1, environment)


def test_an_editor_that_is_no_command_is_named() -> None:
    with pytest.raises(InvalidInput, match="no command"):
        command("/a", 1, {"EDITOR": "vim 'x"})


@pytest.mark.parametrize("path", ["+!touch x", "-c quit", "a.py"])
def test_a_path_is_never_an_option(path: str) -> None:
    last = command(path, 1, {"EDITOR": "vim"})[-1]
    assert last.startswith("/")
    assert last.endswith(path)
