"""The agents and editors that sennit knows: where their configuration is, and the form of its entries."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from sennit.apps.install.edits import Format

Scope = Literal["user", "project"]
Command = Sequence[str]
"""The program and its arguments."""

ENTRY_NAME: Final = "sennit"


@dataclass(frozen=True, slots=True)
class Places:
    """The folders that paths of configurations begin with."""

    home: Path
    project: Path
    platform: str = sys.platform

    @property
    def config(self) -> Path:
        """Where programs keep the user's configuration on this system."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return Path(os.environ.get("APPDATA") or self.home / "AppData" / "Roaming")
        return self.xdg

    @property
    def xdg(self) -> Path:
        """Where programs keep it that do as on Linux everywhere."""
        base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        return base if base.is_absolute() else self.home / ".config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A program that starts MCP servers."""

    name: str
    title: str
    user: Callable[[Places], Path]
    project: Callable[[Places], Path] | None = None
    """None if it has no configuration of a single project."""
    section: str = "mcpServers"
    """The key that holds the entries."""
    form: Format = "json"
    make_entry: Callable[[Command], dict[str, Any]]
    commands: tuple[str, ...] = ()
    """Programs on the PATH that show that it is installed."""
    afterwards: str = "It is there when you start it the next time."

    def config_path(self, scope: Scope, places: Places) -> Path | None:
        """Return the file of a scope; None if the agent does not have that scope."""
        if scope == "user":
            return self.user(places)
        return None if self.project is None else self.project(places)

    @property
    def entry_path(self) -> tuple[str, str]:
        return self.section, ENTRY_NAME

    def is_found(self, places: Places) -> bool:
        """Whether it seems to be installed: its program is on the PATH, or its configuration has a folder."""
        file = self.user(places)
        folder = file if file.parent == places.home else file.parent
        return any(shutil.which(name) for name in self.commands) or folder.exists()


def _command_and_args(command: Command) -> dict[str, Any]:
    return {"command": command[0], "args": list(command[1:])}


def _stdio(command: Command) -> dict[str, Any]:
    return {"type": "stdio", **_command_and_args(command)}


def _zed(command: Command) -> dict[str, Any]:
    return {"source": "custom", **_command_and_args(command), "env": {}}


def _opencode(command: Command) -> dict[str, Any]:
    return {"type": "local", "command": list(command), "enabled": True}


def _copilot(command: Command) -> dict[str, Any]:
    return {"type": "local", **_command_and_args(command), "tools": ["*"]}


def _cline_settings(places: Places) -> Path:
    named = Path(os.environ.get("CLINE_MCP_SETTINGS_PATH", ""))
    usual = places.home / ".cline" / "data" / "settings" / "cline_mcp_settings.json"
    return named if named.is_absolute() else usual


def _roo_settings(places: Places) -> Path:
    storage = places.config / "Code" / "User" / "globalStorage"
    return storage / "rooveterinaryinc.roo-cline" / "settings" / "mcp_settings.json"


def _codex_home(places: Places) -> Path:
    base = Path(os.environ.get("CODEX_HOME", ""))
    return base if base.is_absolute() else places.home / ".codex"


def _zed_settings(places: Places) -> Path:
    if places.platform == "win32":
        return places.config / "Zed" / "settings.json"
    return places.xdg / "zed" / "settings.json"


def _antigravity_settings(places: Places) -> Path:
    usual = places.home / ".gemini" / "config" / "mcp_config.json"
    former = places.home / ".gemini" / "antigravity" / "mcp_config.json"
    return former if former.exists() and not usual.exists() else usual


def _with_comments(file: Path) -> Path:
    """The file, or its twin whose name says that it has comments, if only that exists."""
    twin = file.with_suffix(".jsonc")
    return twin if twin.exists() and not file.exists() else file


AGENTS: Final[Mapping[str, Agent]] = {
    agent.name: agent
    for agent in (
        Agent(
            name="amp",
            title="Amp",
            user=lambda places: places.home / ".config" / "amp" / "settings.json",
            project=lambda places: places.project / ".amp" / "settings.json",
            section="amp.mcpServers",
            make_entry=_command_and_args,
            commands=("amp",),
            afterwards="It is there when you start it the next time; a project's entry must be approved in Amp.",
        ),
        Agent(
            name="antigravity",
            title="Antigravity",
            user=_antigravity_settings,
            project=lambda places: places.project / ".agents" / "mcp_config.json",
            make_entry=_command_and_args,
            commands=("antigravity", "agy"),
        ),
        Agent(
            name="claude-code",
            title="Claude Code",
            user=lambda places: places.home / ".claude.json",
            project=lambda places: places.project / ".mcp.json",
            make_entry=_stdio,
            commands=("claude",),
        ),
        Agent(
            name="claude-desktop",
            title="Claude Desktop",
            user=lambda places: places.config / "Claude" / "claude_desktop_config.json",
            make_entry=_command_and_args,
            afterwards="Quit Claude Desktop, also its icon, and start it again.",
        ),
        Agent(
            name="cline",
            title="Cline",
            user=_cline_settings,
            make_entry=_command_and_args,
            commands=("cline",),
        ),
        Agent(
            name="codex",
            title="Codex",
            user=lambda places: _codex_home(places) / "config.toml",
            project=lambda places: places.project / ".codex" / "config.toml",
            section="mcp_servers",
            form="toml",
            make_entry=_command_and_args,
            commands=("codex",),
            afterwards="It is there when you start it the next time; a project must be trusted in Codex.",
        ),
        Agent(
            name="copilot",
            title="GitHub Copilot CLI",
            user=lambda places: places.home / ".copilot" / "mcp-config.json",
            project=lambda places: places.project / ".github" / "mcp.json",
            make_entry=_copilot,
            commands=("copilot",),
            afterwards="It is there when you start it the next time; a project's folder must be trusted.",
        ),
        Agent(
            name="crush",
            title="Crush",
            user=lambda places: places.xdg / "crush" / "crush.json",
            project=lambda places: places.project / ".crush.json",
            section="mcp",
            make_entry=_stdio,
            commands=("crush",),
        ),
        Agent(
            name="cursor",
            title="Cursor",
            user=lambda places: places.home / ".cursor" / "mcp.json",
            project=lambda places: places.project / ".cursor" / "mcp.json",
            make_entry=_command_and_args,
            commands=("cursor",),
        ),
        Agent(
            name="gemini",
            title="Gemini CLI",
            user=lambda places: places.home / ".gemini" / "settings.json",
            project=lambda places: places.project / ".gemini" / "settings.json",
            make_entry=_command_and_args,
            commands=("gemini",),
        ),
        Agent(
            name="junie",
            title="Junie",
            user=lambda places: places.home / ".junie" / "mcp" / "mcp.json",
            project=lambda places: places.project / ".junie" / "mcp" / "mcp.json",
            make_entry=_command_and_args,
            commands=("junie",),
        ),
        Agent(
            name="kiro",
            title="Kiro",
            user=lambda places: places.home / ".kiro" / "settings" / "mcp.json",
            project=lambda places: places.project / ".kiro" / "settings" / "mcp.json",
            make_entry=_command_and_args,
            commands=("kiro", "kiro-cli"),
        ),
        Agent(
            name="lm-studio",
            title="LM Studio",
            user=lambda places: places.home / ".lmstudio" / "mcp.json",
            make_entry=_command_and_args,
            commands=("lms",),
        ),
        Agent(
            name="opencode",
            title="OpenCode",
            user=lambda places: _with_comments(places.xdg / "opencode" / "opencode.json"),
            project=lambda places: _with_comments(places.project / "opencode.json"),
            section="mcp",
            make_entry=_opencode,
            commands=("opencode",),
        ),
        Agent(
            name="qwen",
            title="Qwen Code",
            user=lambda places: places.home / ".qwen" / "settings.json",
            project=lambda places: places.project / ".qwen" / "settings.json",
            make_entry=_command_and_args,
            commands=("qwen",),
        ),
        Agent(
            name="roo",
            title="Roo Code",
            user=_roo_settings,
            project=lambda places: places.project / ".roo" / "mcp.json",
            make_entry=_command_and_args,
            afterwards="Roo Code starts it when the file is saved; its list of MCP servers shows it.",
        ),
        Agent(
            name="vscode",
            title="VS Code",
            user=lambda places: places.config / "Code" / "User" / "mcp.json",
            project=lambda places: places.project / ".vscode" / "mcp.json",
            section="servers",
            make_entry=_stdio,
            commands=("code",),
            afterwards="VS Code asks whether to start it when a chat in agent mode needs it.",
        ),
        Agent(
            name="windsurf",
            title="Windsurf",
            user=lambda places: places.home / ".codeium" / "windsurf" / "mcp_config.json",
            make_entry=_command_and_args,
            commands=("windsurf",),
        ),
        Agent(
            name="zed",
            title="Zed",
            user=_zed_settings,
            project=lambda places: places.project / ".zed" / "settings.json",
            section="context_servers",
            make_entry=_zed,
            commands=("zed", "zeditor"),
        ),
    )
}
"""Every agent by its name, in order."""
