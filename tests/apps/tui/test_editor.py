"""The command that opens a file in an editor."""

from __future__ import annotations

import pytest

from sennit.apps.tui.editor import editor_command
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
def test_editor_command_contains_the_line(environment: dict[str, str], expected: list[str]) -> None:
    assert editor_command("/a b/c.py", 7, environment) == expected


@pytest.mark.parametrize("environment", [{}, {"EDITOR": ""}, {"EDITOR": " "}])
def test_missing_editor_setting_is_explained(environment: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="export EDITOR="):
        editor_command("/a", 1, environment)


def test_invalid_editor_command_is_named() -> None:
    with pytest.raises(InvalidInput, match="not a valid command"):
        editor_command("/a", 1, {"EDITOR": "vim 'x"})


@pytest.mark.parametrize("path", ["+!touch x", "-c quit", "a.py"])
def test_path_is_never_an_option(path: str) -> None:
    last = editor_command(path, 1, {"EDITOR": "vim"})[-1]
    assert last.startswith("/")
    assert last.endswith(path)
