"""The home of the user, also of one who has none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sennit.settings import config_folder, load_settings
from sennit.user_cache import cache_folder, expand_home, home_folder

ROOT = Path(os.sep)


def test_the_home_is_the_one_of_the_environment() -> None:
    assert home_folder({"HOME": "/home/ana"}) == Path("/home/ana")


def test_a_relative_home_would_be_a_strangers_folder_and_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for home in ("relative", "."):
        assert home_folder({"HOME": home}) == ROOT
        assert config_folder({"HOME": home}) == ROOT / ".config" / "sennit"


@pytest.mark.skipif(os.name != "posix", reason="only POSIX systems have numbers of users")
def test_a_user_without_a_home_searches_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "SENNIT_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 3)
    assert home_folder() == ROOT
    assert cache_folder("models", "SENNIT_MODELS").is_relative_to(ROOT)
    assert load_settings(start=tmp_path).search.recipe == "default"


def test_a_home_that_nobody_knows_stays_in_the_path() -> None:
    assert expand_home("~nobody-of-this-name/x") == Path("~nobody-of-this-name/x")
    assert expand_home("~/x") == Path.home() / "x"
