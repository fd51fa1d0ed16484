"""The list of trusted folders: exact, atomic, the user's own, and never guessed at."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sennit.errors import NotFound, SettingsError
from sennit.settings import config_folder, distrust, trust, trusted


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}


@pytest.fixture
def config(env: dict[str, str]) -> Path:
    folder = config_folder(env)
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_trust_in_a_folder_is_not_trust_in_what_is_inside_it(env: dict[str, str], project: Path) -> None:
    inside = project / "cloned"
    inside.mkdir()
    trust(project, env=env)
    assert trusted(project, env=env)
    assert not trusted(inside, env=env)
    assert not trusted(project.parent, env=env)


def test_trust_follows_the_real_folder_whatever_it_is_called(env: dict[str, str], project: Path) -> None:
    alias = project.parent / "alias"
    alias.symlink_to(project)
    elsewhere = project.parent / "elsewhere.toml"
    elsewhere.touch()
    (project / "sennit.toml").symlink_to(elsewhere)
    assert trust(alias / "sennit.toml", env=env) == project.resolve()
    assert trusted(alias, env=env)
    assert trusted(project / "." / ".." / "project", env=env)


def test_only_a_folder_that_exists_can_be_trusted_and_any_can_be_distrusted(
    env: dict[str, str], project: Path
) -> None:
    with pytest.raises(NotFound):
        trust(project / "gone", env=env)
    assert not distrust(project / "gone", env=env)


def test_trust_given_at_the_same_time_is_all_kept(env: dict[str, str], project: Path) -> None:
    folders = [project / str(n) for n in range(20)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda folder: trust(folder, env=env), folders))
    assert all(trusted(folder, env=env) for folder in folders)


def test_the_trust_list_is_the_users_alone_and_leaves_no_scraps(
    env: dict[str, str], project: Path, config: Path
) -> None:
    trust(project, env=env)
    names = {file.name for file in config.iterdir()}
    assert names - {"trusted.json.lock"} == {"trusted.json"}
    assert stat.S_IMODE((config / "trusted.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"folders": [1]}', b'{"folders": "x"}', b"\xff"])
def test_a_damaged_trust_list_trusts_nothing_and_is_not_overwritten(
    env: dict[str, str], project: Path, config: Path, content: bytes
) -> None:
    file = config / "trusted.json"
    file.write_bytes(content)
    for ask in (trusted, trust, distrust):
        with pytest.raises(SettingsError, match="is not a list of trusted folders"):
            ask(project, env=env)
    assert file.read_bytes() == content


def test_a_relative_configuration_folder_is_ignored(project: Path) -> None:
    env = {"XDG_CONFIG_HOME": "config", "HOME": str(project)}
    trust(project, env=env)
    assert (project / ".config" / "sennit" / "trusted.json").is_file()
