from __future__ import annotations

from pathlib import Path

import pytest

from sennit.embedding.models import find_model, installed_models, models_folder
from sennit.errors import NotFound


def make_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).write_bytes(b"")
    return folder


def test_the_models_folder_is_sennit_models_or_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("SENNIT_MODELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert models_folder() == tmp_path / "sennit" / "models"
    monkeypatch.setenv("SENNIT_MODELS", "~/models")
    assert models_folder() == Path.home() / "models"


def test_unfinished_installations_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENNIT_MODELS", str(tmp_path / "models"))
    assert installed_models() == []
    make_model(tmp_path / "models" / "b")
    make_model(tmp_path / "models" / "a")
    make_model(tmp_path / "models" / ".a-unfinished")
    (tmp_path / "models" / "c").mkdir()
    assert installed_models() == ["a", "b"]


def test_a_name_is_looked_up_in_the_models_folder_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_MODELS", str(tmp_path / "models"))
    make_model(tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound, match="'here' is not installed"):
        find_model("here")
    assert find_model("./here") == Path("here")
