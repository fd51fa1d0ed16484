"""`sennit install`: before, after and undone, byte for byte, for each agent in a home of its own."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.conftest import Cli
from sennit.apps.install import jsonc
from sennit.apps.install.agents import AGENTS, Agent, Places
from sennit.apps.install.edits import Format, find_entry, load, remove_entry, write_entry
from sennit.errors import InvalidInput

EVERY_FILE = [
    (agent, scope)
    for agent in AGENTS.values()
    for scope in ("user", "project")
    if scope == "user" or agent.project is not None
]

JSON_FILES = {
    "two-spaces": '{\n  "theme": "dark",\n  "SECTION": {\n    "other": {\n      "command": "x"\n    }\n  }\n}\n',
    "tabs": '{\n\t"SECTION": {\n\t\t"other": {"command": "x"}\n\t},\n\t"last": [1, 2]\n}',
    "one-line": '{"SECTION": {"other": {"command": "x"}}, "a": 1}',
    "no-section": '{\n    "theme": "dark"\n}\n',
    "empty-section": '{\n  "SECTION": {}\n}\n',
    "empty-section-with-space": '{\n  "SECTION": {\n  }\n}\n',
    "empty-object": "{}",
    "empty-file": "",
    "blank-file": "\n",
    "windows": '{\r\n  "theme": "dark",\r\n  "SECTION": {\r\n    "other": {}\r\n  }\r\n}\r\n',
    "byte-order-mark": '\ufeff{\n  "theme": "dark"\n}\n',
    "comments": (
        '// mine\n{\n  /* a */ "theme": "dark", // {not} "json"\n  "SECTION": {\n'
        '    // the other\n    "other": {"url": "http://x//y"} // keep\n  } // end\n}\n// bye\n'
    ),
    "trailing-commas": '{\n  "SECTION": {\n    "other": {"args": ["a",],},\n  },\n}\n',
    "only-comments": '{\n  "SECTION": {\n    // nothing yet\n  }\n}\n',
    "another-entry": '{\n  "SECTION": {\n    "sennit": {"command": "old", "x": 1},\n    "z": {}\n  }\n}\n',
    "unicode": '{\n  "näme": "日本語 \\u00e9 \U0001f600",\n  "SECTION": {"ö": {}}\n}\n',
}
TOML_FILES = {
    "usual": 'model = "o4" # mine\n\n[mcp_servers.other]\ncommand = "x"\nargs = ["a"]\n',
    "no-end-of-line": "[tui]\nnotifications = true",
    "empty-file": "",
    "windows": 'model = "o4"\r\n\r\n[tui]\r\na = 1\r\n',
    "comments-and-strings": '# a\nx = """\n[mcp_servers.fake]\n"""\n\n# about b\n[b]\n# in b\nc = 1\n\n\n',
    "another-entry": 'a = 1\n\n[mcp_servers.sennit]\ncommand = "old"\n\n# about b\n[b]\nc = 1\n',
}


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for name in ("CODEX_HOME", "CLINE_MCP_SETTINGS_PATH", "APPDATA", "SENNIT_DB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home / "project")
    return home


@pytest.fixture
def sennit(cli: Cli, user_home: Path) -> Cli:
    return cli


def place(agent: Agent, scope: Any, home: Path) -> Path:
    file = agent.config_path(scope, Places(home, home / "project"))
    assert file is not None
    return file


def tree(home: Path) -> dict[str, bytes | None]:
    """Every file and folder below a folder, except sennit's own."""
    own = home / ".config" / "sennit"
    return {
        str(path.relative_to(home)): path.read_bytes() if path.is_file() else None
        for path in sorted(home.rglob("*"))
        if path != own and own not in path.parents
    }


@pytest.mark.parametrize(("agent", "scope"), EVERY_FILE, ids=lambda value: getattr(value, "name", value))
def test_a_new_file_is_written_and_removed(sennit: Cli, user_home: Path, agent: Agent, scope: str) -> None:
    before = tree(user_home)
    done = sennit("install", agent.name, "--scope", scope, "--db", "notes.sennit")
    assert done.exit_code == 0, done.stderr
    file = place(agent, scope, user_home)
    assert str(file) in done.stdout
    entry = find_entry(load(file.read_text(), agent.form), agent.entry_path)
    command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    assert Path(command[0]).is_absolute()
    assert os.access(command[0], os.X_OK)
    assert command[1:] == ["mcp", "--db", str(user_home / "project" / "notes.sennit")]
    written = file.read_bytes()
    again = sennit("install", agent.name, "--scope", scope, "--db", "notes.sennit")
    assert "has already" in again.stdout
    assert file.read_bytes() == written
    assert sennit("install", agent.name, "--scope", scope, "--undo").exit_code == 0
    remaining = tree(user_home)
    remaining.pop(".config", None)
    before.pop(".config", None)
    assert remaining == before
    assert not (user_home / ".config" / "sennit" / "installed.json").exists()


FILES = [
    (agent, scope, name, text)
    for agent, scope in EVERY_FILE
    for name, text in (TOML_FILES if agent.form == "toml" else JSON_FILES).items()
    # One agent has every file; the others differ from it in the key and the entry only.
    if (agent.name, scope) in (("cursor", "user"), ("codex", "user")) or name in ("comments", "usual")
]


@pytest.mark.parametrize(
    ("agent", "scope", "text"),
    [(agent, scope, text) for agent, scope, _, text in FILES],
    ids=[f"{agent.name}-{scope}-{name}" for agent, scope, name, _ in FILES],
)
def test_a_file_keeps_every_other_byte_and_comes_back(
    sennit: Cli, user_home: Path, agent: Agent, scope: str, text: str
) -> None:
    file = place(agent, scope, user_home)
    file.parent.mkdir(parents=True, exist_ok=True)
    before = text.replace("SECTION", agent.section).encode()
    file.write_bytes(before)
    file.chmod(0o640)
    shown = sennit("install", agent.name, "--scope", scope, "--db", "a", "--print")
    assert shown.exit_code == 0, shown.stderr
    assert file.read_bytes() == before, "--print writes nothing"
    done = sennit("install", agent.name, "--scope", scope, "--db", "a")
    assert done.exit_code == 0, done.stderr
    after = file.read_bytes()
    content = load(after.decode(), agent.form)
    entry = find_entry(content, agent.entry_path)
    assert "mcp" in str(entry)
    expected = load(before.decode(), agent.form)
    expected.setdefault(agent.section, {})["sennit"] = entry
    assert content == expected
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    other = sennit("install", agent.name, "--scope", scope, "--db", "b", "--read-only", "--json")
    assert json.loads(other.stdout)["state"] == "changed"
    assert sennit("install", agent.name, "--scope", scope, "--undo").exit_code == 0
    assert file.read_bytes() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_undo_keeps_what_others_wrote_meanwhile(sennit: Cli, user_home: Path) -> None:
    file = user_home / ".cursor" / "mcp.json"
    assert sennit("install", "cursor", "--db", "a").exit_code == 0
    content = json.loads(file.read_text())
    content["mcpServers"]["other"] = {"command": "x"}
    file.write_text(json.dumps(content))
    assert sennit("install", "cursor", "--undo").exit_code == 0
    assert json.loads(file.read_text()) == {"mcpServers": {"other": {"command": "x"}}}
    assert "has no entry" in sennit("install", "cursor", "--undo").stdout


def test_undo_without_a_memory_removes_the_entry(sennit: Cli, user_home: Path) -> None:
    file = user_home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text('a = 1\n\n[mcp_servers.sennit]\ncommand = "x"\n\n[b]\nc = 1\n')
    assert sennit("install", "codex", "--undo").exit_code == 0
    assert tomllib.loads(file.read_text()) == {"a": 1, "b": {"c": 1}}


ENTRY = {"command": "new"}
REMARKS: list[tuple[Format, str, str, str]] = [
    (
        "toml",
        '[s.sennit]\ncommand = "x"  # mine\nargs = [\n  "a",\n]\n\n# about b\n\n# more about b\n[b]\nc = 1\n',
        '[s.sennit]\ncommand = "new"\n\n# about b\n\n# more about b\n[b]\nc = 1\n',
        "# about b\n\n# more about b\n[b]\nc = 1\n",
    ),
    (
        "toml",
        'a = 1\r\n[s.sennit]\r\ncommand = "x"\r\n# the end',
        'a = 1\r\n[s.sennit]\r\ncommand = "new"\r\n# the end',
        "a = 1\r\n# the end",
    ),
    (
        "json",
        '{\n  "s": {\n    "sennit": {"command": "x"},\n    // about b\n    "b": {}\n  }\n}\n',
        '{\n  "s": {\n    "sennit": {\n      "command": "new"\n    },\n    // about b\n    "b": {}\n  }\n}\n',
        '{\n  "s": {\n    // about b\n    "b": {}\n  }\n}\n',
    ),
]


@pytest.mark.parametrize(("form", "text", "changed", "removed"), REMARKS)
def test_remarks_about_what_follows_an_entry_stay(
    form: Format, text: str, changed: str, removed: str
) -> None:
    assert write_entry(text, form, ("s", "sennit"), ENTRY).apply(text) == changed
    assert remove_entry(text, form, ("s", "sennit")).apply(text) == removed


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b'{"mcpServers": {', "line 1"),
        (b"[]", "an object is expected"),
        (b'{"mcpServers": []}', "mcpServers is not an object"),
        (b'{"a": 1} {"b": 2}', "more text after the value"),
        (b'{"a" 1}', "':' is expected"),
        (b"{'a': 1}", "a key in double quotes"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
        (b"[" * 5000, "nested too deeply"),
    ],
)
def test_a_broken_file_is_one_clear_error(sennit: Cli, user_home: Path, content: bytes, advice: str) -> None:
    file = user_home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes(content)
    before = tree(user_home)
    done = sennit("install", "cursor", "--db", "a")
    assert done.exit_code == 2
    assert str(file) in done.stderr
    assert advice in done.stderr
    assert done.stdout == ""
    assert sennit("install", "cursor", "--undo").exit_code == 2
    assert tree(user_home) == before


@pytest.mark.parametrize(
    "text", ["a = [", 'mcp_servers = "x"\n', "mcp_servers = {}\n", "mcp_servers.sennit = {a = 1}\n"]
)
def test_a_toml_file_in_an_unusual_form_is_left_alone(sennit: Cli, user_home: Path, text: str) -> None:
    file = user_home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)
    assert sennit("install", "codex", "--db", "a").exit_code == 2
    assert file.read_text() == text


def test_a_file_that_cannot_be_read_or_written_is_an_error(sennit: Cli, user_home: Path) -> None:
    (user_home / ".cursor" / "mcp.json").mkdir(parents=True)
    done = sennit("install", "cursor", "--db", "a")
    assert done.exit_code == 2
    assert "cannot be read" in done.stderr


def test_a_folder_that_cannot_be_created_is_an_error(sennit: Cli, user_home: Path) -> None:
    (user_home / ".cursor").write_text("a file, where a folder is needed")
    before = tree(user_home)
    assert sennit("install", "cursor", "--db", "a").exit_code == 2
    assert tree(user_home) == before


def test_nothing_is_installed_that_could_not_start(
    sennit: Cli, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.apps.cli.install.find_spec", lambda name: None)
    before = tree(user_home)
    done = sennit("install", "cursor", "--db", "a")
    assert done.exit_code == 5
    assert "sennit[mcp]" in done.stderr
    assert tree(user_home) == before


def test_a_link_stays_a_link(sennit: Cli, user_home: Path) -> None:
    real = user_home / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    link = user_home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    assert sennit("install", "cursor", "--db", "a").exit_code == 0
    assert link.is_symlink()
    assert "sennit" in real.read_text()
    assert sennit("install", "cursor", "--undo").exit_code == 0
    assert real.read_text() == "{}\n"
    assert link.is_symlink()
    real.unlink()
    done = sennit("install", "cursor", "--db", "a")
    assert done.exit_code == 2
    assert "link to a file that does not exist" in done.stderr


def test_no_temporary_file_is_left(sennit: Cli, user_home: Path) -> None:
    assert sennit("install", "gemini", "--db", "a").exit_code == 0
    assert [path.name for path in (user_home / ".gemini").iterdir()] == ["settings.json"]
    assert stat.S_IMODE((user_home / ".gemini" / "settings.json").stat().st_mode) == 0o600


def test_the_list_says_which_agents_are_found(sennit: Cli, user_home: Path) -> None:
    (user_home / ".cursor").mkdir()
    assert sennit("install", "zed", "--scope", "project", "--db", "a").exit_code == 0
    rows = {row["agent"]: row for row in json.loads(sennit("install", "--json").stdout)["agents"]}
    assert list(rows) == list(AGENTS)
    assert rows["cursor"]["found"]
    assert not rows["windsurf"]["found"]
    assert rows["zed"]["installed"] == ["project"]
    assert rows["claude-desktop"]["scopes"] == ["user"]
    text = sennit("install").stdout
    assert text.splitlines()[0].split() == ["agent", "found", "has", "sennit", "configuration"]


@pytest.mark.parametrize(
    ("arguments", "code", "advice"),
    [
        (("cursr",), 3, "Did you mean 'cursor'?"),
        (("windsurf", "--scope", "project"), 2, "--scope user"),
        (("--undo",), 2, "Name an agent"),
        (("cursor", "--undo", "--print"), 2, "not both"),
        (("cursor", "--db", "postgresql://me:secret@host/db"), 2, "holds a password"),
    ],
)
def test_wrong_usage_is_explained(
    sennit: Cli, user_home: Path, arguments: tuple[str, ...], code: int, advice: str
) -> None:
    done = sennit("install", *arguments)
    assert done.exit_code == code
    assert advice in done.stderr


def test_a_connection_string_without_a_password_is_written(sennit: Cli, user_home: Path) -> None:
    done = sennit("install", "cursor", "--db", "postgresql://me@host/db", "--json")
    assert json.loads(done.stdout)["entry"]["args"] == ["mcp", "--db", "postgresql://me@host/db"]


@pytest.mark.parametrize(
    ("platform", "name", "expected"),
    [
        ("darwin", "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", "claude-desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("linux", "claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("darwin", "vscode", "Library/Application Support/Code/User/mcp.json"),
        ("linux", "vscode", ".config/Code/User/mcp.json"),
        ("darwin", "zed", ".config/zed/settings.json"),
        ("win32", "zed", "AppData/Roaming/Zed/settings.json"),
    ],
)
def test_files_are_where_each_system_has_them(
    user_home: Path, platform: str, name: str, expected: str
) -> None:
    assert AGENTS[name].user(Places(user_home, user_home, platform)) == user_home / expected


# The editor of files itself

SCALARS = st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["mcpServers", "a", "b"]) | st.text(max_size=5), VALUES, max_size=4)


def as_object(content: dict[str, Any]) -> dict[str, Any]:
    servers = content.get("mcpServers")
    return {
        **content,
        **({} if isinstance(servers, dict) or servers is None else {"mcpServers": {"x": servers}}),
    }


@given(content=OBJECTS, indent=st.sampled_from([None, 0, 2, "\t"]), crlf=st.booleans())
def test_an_entry_is_written_and_taken_back_in_any_json(content: Any, indent: Any, crlf: bool) -> None:
    content = {
        key: value for key, value in as_object(content).items() if not (key == "mcpServers" and value is None)
    }
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    text = text.replace("\n", "\r\n") if crlf else text
    assert jsonc.parse(text).value == content
    path, entry = ("mcpServers", "sennit"), {"command": "x", "args": ["y"]}
    edit = write_entry(text, "json", path, entry)
    after = edit.apply(text)
    assert text.startswith(after[: edit.start])
    assert after.endswith(text[edit.start + len(edit.removed) :])
    assert find_entry(load(after, "json"), path) == entry
    without = load(remove_entry(after, "json", path).apply(after), "json")
    assert without.get("mcpServers", {}) == {
        key: value for key, value in content.get("mcpServers", {}).items() if key != "sennit"
    }
    assert {k: v for k, v in without.items() if k != "mcpServers"} == {
        k: v for k, v in content.items() if k != "mcpServers"
    }


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for form in ("json", "toml"):
        _read_or_refuse(text, form)


def _read_or_refuse(text: str, form: Format) -> None:
    try:
        content = load(text, form)
        edit = write_entry(text, form, ("s", "sennit"), {"command": "x"})
    except (ValueError, InvalidInput):
        return
    assert load(edit.apply(text), form) == {
        **content,
        "s": {**content.get("s", {}), "sennit": {"command": "x"}},
    }


@pytest.mark.parametrize(
    ("name", "scope", "file", "entry"),
    [
        ("antigravity", "user", ".gemini/config/mcp_config.json", {"command", "args"}),
        ("antigravity", "project", "project/.agents/mcp_config.json", {"command", "args"}),
        ("cline", "user", ".cline/data/settings/cline_mcp_settings.json", {"command", "args"}),
        ("copilot", "user", ".copilot/mcp-config.json", {"type", "command", "args", "tools"}),
        ("copilot", "project", "project/.github/mcp.json", {"type", "command", "args", "tools"}),
        ("junie", "user", ".junie/mcp/mcp.json", {"command", "args"}),
        ("junie", "project", "project/.junie/mcp/mcp.json", {"command", "args"}),
        ("kiro", "user", ".kiro/settings/mcp.json", {"command", "args"}),
        ("kiro", "project", "project/.kiro/settings/mcp.json", {"command", "args"}),
        ("lm-studio", "user", ".lmstudio/mcp.json", {"command", "args"}),
        ("qwen", "user", ".qwen/settings.json", {"command", "args"}),
        ("qwen", "project", "project/.qwen/settings.json", {"command", "args"}),
        ("roo", "project", "project/.roo/mcp.json", {"command", "args"}),
    ],
)
def test_an_entry_is_where_the_agent_documents_it(
    sennit: Cli, user_home: Path, name: str, scope: str, file: str, entry: set[str]
) -> None:
    assert sennit("install", name, "--scope", scope, "--db", "a").exit_code == 0
    assert json.loads((user_home / file).read_text())["mcpServers"]["sennit"].keys() == entry


def test_agents_with_another_section_have_their_own_form(sennit: Cli, user_home: Path) -> None:
    for name in ("amp", "crush"):
        assert sennit("install", name, "--db", "a").exit_code == 0
    amp = json.loads((user_home / ".config" / "amp" / "settings.json").read_text())
    assert amp["amp.mcpServers"]["sennit"].keys() == {"command", "args"}
    crush = json.loads((user_home / ".config" / "crush" / "crush.json").read_text())
    assert crush["mcp"]["sennit"]["type"] == "stdio"


def test_antigravity_reads_its_former_file_where_only_that_exists(sennit: Cli, user_home: Path) -> None:
    former = user_home / ".gemini" / "antigravity" / "mcp_config.json"
    former.parent.mkdir(parents=True)
    former.write_text("{}\n")
    assert sennit("install", "antigravity", "--db", "a").exit_code == 0
    assert "sennit" in former.read_text()
    assert sennit("install", "antigravity", "--undo").exit_code == 0
    assert former.read_text() == "{}\n"


def test_cline_reads_the_file_that_its_variable_names(
    sennit: Cli, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLINE_MCP_SETTINGS_PATH", str(user_home / "own.json"))
    assert sennit("install", "cline", "--db", "a").exit_code == 0
    assert "sennit" in json.loads((user_home / "own.json").read_text())["mcpServers"]
