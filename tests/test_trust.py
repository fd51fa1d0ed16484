"""The list of trusted folders: exact, atomic and private."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sennit.errors import NotFound, SettingsError
from sennit.settings import config_folder, distrust_folder, is_trusted, trust_folder


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


def test_trust_in_a_folder_does_not_cover_folders_inside_it(env: dict[str, str], project: Path) -> None:
    inside = project / "cloned"
    inside.mkdir()
    trust_folder(project, env=env)
    assert is_trusted(project, env=env)
    assert not is_trusted(inside, env=env)
    assert not is_trusted(project.parent, env=env)


def test_trust_applies_to_the_real_path(env: dict[str, str], project: Path) -> None:
    alias = project.parent / "alias"
    alias.symlink_to(project)
    elsewhere = project.parent / "elsewhere.toml"
    elsewhere.touch()
    (project / "sennit.toml").symlink_to(elsewhere)
    assert trust_folder(alias / "sennit.toml", env=env) == project.resolve()
    assert is_trusted(alias, env=env)
    assert is_trusted(project / "." / ".." / "project", env=env)


def test_only_a_folder_that_exists_can_be_trusted_and_any_can_be_distrusted(
    env: dict[str, str], project: Path
) -> None:
    with pytest.raises(NotFound):
        trust_folder(project / "gone", env=env)
    assert not distrust_folder(project / "gone", env=env)


def test_concurrent_changes_of_the_trust_list_are_all_kept(env: dict[str, str], project: Path) -> None:
    folders = [project / str(n) for n in range(20)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda folder: trust_folder(folder, env=env), folders))
    assert all(is_trusted(folder, env=env) for folder in folders)


def test_the_trust_list_is_private_and_leaves_no_temporary_files(
    env: dict[str, str], project: Path, config: Path
) -> None:
    trust_folder(project, env=env)
    names = {file.name for file in config.iterdir()}
    assert names - {"trusted.json.lock"} == {"trusted.json"}
    assert stat.S_IMODE((config / "trusted.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"folders": [1]}', b'{"folders": "x"}', b"\xff"])
def test_a_damaged_trust_list_trusts_nothing_and_is_not_overwritten(
    env: dict[str, str], project: Path, config: Path, content: bytes
) -> None:
    file = config / "trusted.json"
    file.write_bytes(content)
    for call in (is_trusted, trust_folder, distrust_folder):
        with pytest.raises(SettingsError, match="is not a list of trusted folders"):
            call(project, env=env)
    assert file.read_bytes() == content


def test_a_relative_configuration_folder_is_ignored(project: Path) -> None:
    env = {"XDG_CONFIG_HOME": "config", "HOME": str(project)}
    trust_folder(project, env=env)
    assert (project / ".config" / "sennit" / "trusted.json").is_file()
