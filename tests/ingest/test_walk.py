"""Which files a walk finds."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from ingest.conftest import locked, write
from sennit.errors import InvalidInput
from sennit.ingest.walk import MAX_DEPTH, Scope, WalkResult, walk


def found(root: Path, scope: Scope | None = None) -> set[str]:
    return {os.path.relpath(path, os.path.realpath(root)) for path in looked(root, scope).files}


def looked(root: Path, scope: Scope | None = None) -> WalkResult:
    tree = WalkResult()
    walk(os.path.realpath(root), scope or Scope(), tree)
    return tree


def skipped(root: Path, scope: Scope | None = None) -> dict[str, str]:
    return {
        os.path.relpath(path, os.path.realpath(root)): why
        for path, why in looked(root, scope).skipped.items()
    }


def test_deepest_ignore_file_decides(root: Path) -> None:
    write(
        root,
        {
            ".gitignore": "*.log\n/build/\n",
            "a.txt": "",
            "x.log": "",
            "build/out.txt": "",
            "sub/.gitignore": "!x.log\nsecret.txt\n",
            "sub/x.log": "",
            "sub/secret.txt": "",
            "sub/build/kept.txt": "",
        },
    )
    assert found(root) == {"a.txt", "sub/x.log", "sub/build/kept.txt"}
    everything = {"a.txt", "x.log", "build/out.txt", "sub/x.log", "sub/secret.txt", "sub/build/kept.txt"}
    assert found(root, Scope(ignore_files=False)) == everything


def test_sennitignore_precedes_ignore_which_precedes_gitignore(root: Path) -> None:
    write(
        root,
        {".gitignore": "a\nb\n", ".ignore": "!a\nc\n", ".sennitignore": "!c\n", "a": "", "b": "", "c": ""},
    )
    assert found(root) == {"a", "c"}


def test_rules_above_the_root_apply_inside_a_repository(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    write(
        root,
        {
            ".gitignore": "*.log\nsub/x\nout/\n",
            "sub/a.log": "",
            "sub/b.txt": "",
            "sub/x": "",
            "out/y.txt": "",
        },
    )
    assert found(root / "sub") == {"b.txt"}
    assert found(root / "out") == {"y.txt"}, "what is named is wanted"


@pytest.mark.parametrize("rule", ["*", "vendor/", "/vendor", "pack*/"])
def test_a_folder_that_is_named_is_walked_though_a_file_above_it_ignores_it(root: Path, rule: str) -> None:
    (root / ".git").mkdir()
    (root / ".gitignore").write_text(f"{rule}\n")
    named = root / "vendor" / "package"
    named.mkdir(parents=True)
    (named / "module.py").write_text("x = 1\n")
    assert found(named) == {"module.py"}


def test_hidden_files_are_optional_and_dot_git_is_never_indexed(root: Path) -> None:
    write(root, {".env": "", ".github/w.yml": "", ".git/config": "", "a": ""})
    assert found(root) == {"a"}
    assert found(root, Scope(hidden=True)) == {".env", ".github/w.yml", "a"}


def test_include_and_exclude_take_patterns(root: Path) -> None:
    write(root, {"a.md": "", "b.py": "", "docs/c.md": "", "docs/old/d.md": ""})
    assert found(root, Scope(include=("*.md",), exclude=("old/",))) == {"a.md", "docs/c.md"}
    with pytest.raises(InvalidInput, match="exclude takes patterns"):
        Scope(exclude=("!a",))


BY_DEFAULT = {
    "env-of-mine/pyvenv.cfg": "home = x\n",
    "env-of-mine/lib/site.py": "",
    "web/node_modules/x/index.js": "",
    "web/package.json": "{}",
    "web/dist/app.js": "",
    "web/app.min.js": "",
    "web/app.js.map": "",
    "src/__pycache__/a.txt": "",
    "src/old.pyc": "",
    "rust/Cargo.toml": "",
    "rust/target/debug.txt": "",
    "rust/Cargo.lock": "",
    "tagged/CACHEDIR.TAG": "",
    "tagged/x.txt": "",
    "x.egg-info/PKG-INFO": "",
}
KEPT = {
    "src/build/rules.py": "",
    "docs/target/page.md": "",
    "dist/notes.md": "",
    "lock.txt": "",
    "a.min.md": "",
}


def test_what_programs_write_is_ignored_by_default(root: Path) -> None:
    write(root, {**BY_DEFAULT, **KEPT})
    assert found(root) == {*KEPT, "web/package.json", "rust/Cargo.toml"}
    ignored = looked(root).ignored
    assert {os.path.relpath(path, os.path.realpath(root)): why for path, why in ignored.items()} == {
        "env-of-mine": "virtual environment",
        "web/node_modules": "installed packages",
        "web/dist": "build output",
        "web/app.min.js": "generated file",
        "web/app.js.map": "generated file",
        "src/__pycache__": "cache",
        "src/old.pyc": "generated file",
        "rust/target": "build output",
        "rust/Cargo.lock": "lock file",
        "tagged": "cache",
        "x.egg-info": "build output",
    }


def test_default_ignores_can_be_turned_off(root: Path) -> None:
    write(root, {**BY_DEFAULT, **KEPT})
    tree = looked(root, Scope(default_ignores=False))
    assert len(tree.files) == len(BY_DEFAULT) + len(KEPT)
    assert not tree.ignored


def test_a_named_folder_is_indexed_whatever_it_is(root: Path) -> None:
    write(root, BY_DEFAULT)
    assert found(root / "env-of-mine") == {"pyvenv.cfg", "lib/site.py"}
    assert found(root / "web" / "node_modules") == {"x/index.js"}
    assert found(root / "rust" / "Cargo.lock") == {"."}


def test_an_ignore_file_includes_again_what_is_ignored_by_default(root: Path) -> None:
    write(root, {**BY_DEFAULT, ".sennitignore": "!dist/\n!env-of-mine/\n!*.lock\n"})
    assert {"web/dist/app.js", "env-of-mine/lib/site.py", "rust/Cargo.lock"} <= found(root)


def test_sennit_toml_in_a_folder_can_only_exclude_more(root: Path) -> None:
    write(
        root,
        {
            "sennit.toml": '[ingest]\nexclude = ["*.log", "!b.txt", 3]\nmax_bytes = 100\nhidden = true\n[embedding]\nbase_url = "http://x"\n',
            ".gitignore": "b.txt\nsennit.toml\n",
            "a.log": "",
            "b.txt": "",
            ".hidden": "",
            "large.txt": "x" * 200,
            "sub/sennit.toml": "[ingest]\nmax_bytes = 1000000000\n",
            "sub/large.txt": "x" * 200,
            "sub/a.txt": "",
        },
    )
    assert found(root) == {"sub/sennit.toml", "sub/a.txt"} - {"sub/sennit.toml"}
    assert set(skipped(root)) == {"large.txt", "sub/large.txt"}


def test_a_broken_sennit_toml_is_reported(root: Path) -> None:
    write(root, {"sennit.toml": "[ingest\n", "a.txt": ""})
    assert "not valid TOML" in skipped(root)["sennit.toml"]
    assert "a.txt" in found(root)


def test_links_are_not_followed(root: Path) -> None:
    write(root, {"a/x.txt": "", "../outside/secret.txt": ""})
    (root / "a" / "loop").symlink_to(root)
    (root / "out").symlink_to(root.parent / "outside")
    (root / "secret.txt").symlink_to(root.parent / "outside" / "secret.txt")
    (root / "dangling").symlink_to("nowhere")
    (root / ".gitignore").symlink_to(root.parent / "outside" / "secret.txt")
    assert found(root) == {"a/x.txt"}
    reported = skipped(root)
    assert {reported[name] for name in ("a/loop", "out", "secret.txt", "dangling")} == {
        "a symbolic link, not a file"
    }
    assert "not used" in reported[".gitignore"]


def test_pipes_and_sockets_are_never_opened(root: Path) -> None:
    write(root, {"a.txt": ""})
    os.mkfifo(root / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "s"))
        assert found(root) == {"a.txt"}
        assert skipped(root) == {"pipe.txt": "a named pipe, not a file", "s": "a socket, not a file"}


def test_nesting_is_bounded(root: Path) -> None:
    # Each folder is created relative to the one above, because the full path is too long for the system.
    here = os.open(root, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("deeper-and-deeper", dir_fd=here)
        inner = os.open("deeper-and-deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    write(root, {"a.txt": ""})
    tree = looked(root)
    assert len(tree.files) == 1
    assert list(tree.skipped.values()) == [f"nested deeper than {MAX_DEPTH} folders"]
    subprocess.run(["rm", "-rf", str(root)], check=True)


def test_folder_without_permission_is_reported(root: Path) -> None:
    write(root, {"a.txt": "", "closed/b.txt": ""})
    with locked(root / "closed"):
        assert "Permission denied" in skipped(root)["closed"]
