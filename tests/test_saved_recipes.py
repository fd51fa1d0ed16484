"""Recipes that are saved: as TOML, in the user's settings file, and under a name that works at once."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit.errors import InvalidInput, SettingsError
from sennit.recipes import (
    BUILTIN_RECIPES,
    RecipeBook,
    check_recipe_name,
    recipe_from_dict,
    recipe_to_table,
)
from sennit.settings import SettingsFile, config_folder, load_settings, table_to_toml, trust_folder
from sennit.settings.own_file import find_own_file

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(name=TEXTS, table=st.dictionaries(TEXTS, VALUES, max_size=4))
def test_every_table_is_read_back_from_its_toml(name: str, table: dict[str, object]) -> None:
    assert tomllib.loads(table_to_toml("recipes", name, table)) == {"recipes": {name: table}}


@pytest.mark.parametrize("name", sorted(BUILTIN_RECIPES))
def test_recipe_is_read_back_with_and_without_its_base(name: str) -> None:
    base = BUILTIN_RECIPES[name]
    recipe = replace(base, name="tuned", min_relevance=0.2, sources=(replace(base.sources[0], min_score=0.1), *base.sources[1:]))  # fmt: skip
    for table in (recipe_to_table(recipe), recipe_to_table(recipe, base)):
        read = tomllib.loads(table_to_toml("recipes", "tuned", table))["recipes"]["tuned"]
        assert recipe_from_dict("tuned", read) == recipe
    assert set(recipe_to_table(recipe, base)) == {"base", "sources", "min_relevance"}


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101, "\u202e"])
def test_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="printable"):
        check_recipe_name(name)


def test_recipe_is_appended_and_nothing_else_changes(tmp_path: Path) -> None:
    file = tmp_path / "sennit.toml"
    file.write_text("# mine\n[search]\nlimit = 7  # seven")
    file.chmod(0o640)
    written = SettingsFile(file).append("recipes", 'say "hi"', {"base": "rrf", "min_relevance": 0.25})
    assert file.read_text() == f"# mine\n[search]\nlimit = 7  # seven\n\n{written}"
    assert file.stat().st_mode & 0o777 == 0o640
    settings = load_settings(file)
    assert settings.recipes['say "hi"'] == {"base": "rrf", "min_relevance": 0.25}
    assert settings.search.limit == 7
    with pytest.raises(InvalidInput, match="already"):
        SettingsFile(file).append("recipes", 'say "hi"', {"base": "rrf"})


def test_new_file_is_for_the_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "sennit.toml"
    SettingsFile(file).append("recipes", "tuned", {"base": "rrf"})
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == '[recipes.tuned]\nbase = "rrf"\n'


def test_file_that_others_may_write_or_that_is_broken_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "sennit.toml"
    file.write_text("")
    file.chmod(0o666)
    with pytest.raises(SettingsError, match="not everybody may write"):
        SettingsFile(file).append("recipes", "tuned", {"base": "rrf"})
    file.chmod(0o600)
    for content in ("[search", "recipes = 3"):
        file.write_text(content)
        with pytest.raises(SettingsError):
            SettingsFile(file).append("recipes", "tuned", {"base": "rrf"})
        assert file.read_text() == content
    with pytest.raises(SettingsError, match="must be a file"):
        SettingsFile(tmp_path).append("recipes", "tuned", {"base": "rrf"})


def test_own_file_is_the_named_one_that_of_a_trusted_folder_or_that_of_the_user(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path / "home")}
    project = tmp_path / "project"
    project.mkdir()
    (project / "sennit.toml").write_text("")
    own = config_folder(env) / "sennit.toml"
    assert find_own_file(start=project, env=env) == own
    trust_folder(project, env=env)
    assert find_own_file(start=project, env=env) == project / "sennit.toml"
    assert find_own_file(start=project, env={**env, "SENNIT_CONFIG": "/x.toml"}) == Path("/x.toml")


def test_added_recipe_is_found_at_once_and_never_replaces_another() -> None:
    with sennit.open(":memory:") as db:
        db.add([{"id": "a", "text": "the vineyard"}])
        names = list(db.recipes)
        db.admin.add_recipe(replace(BUILTIN_RECIPES["keyword"], name="mine"))
        assert [hit.id for hit in db.search("vineyard", recipe="mine")] == ["a"]
        assert list(db.recipes) == [*names, "mine"]
        with pytest.raises(InvalidInput, match="already"):
            db.admin.add_recipe(replace(BUILTIN_RECIPES["vector"], name="keyword"))
        assert isinstance(db.recipes, RecipeBook)


def test_recipe_may_have_a_least_relevance() -> None:
    with sennit.open(":memory:") as db:
        db.add(
            [{"id": "a", "text": "the vineyard in autumn"}, {"id": "b", "text": "a boiler that makes noise"}]
        )
        db.admin.add_recipe(replace(db.recipes["default"], name="strict", min_relevance=0.99))
        assert not db.search("vineyard", recipe="strict").hits
        assert db.search("vineyard", recipe="strict", min_relevance=0.01).hits
        found = db.what_admits("vineyard", "a", recipe="strict")
        assert found.why.stage == "min_relevance"
        change = next(one for one in found.changes if one.name == "min_relevance")
        assert change.before == 0.99
    with pytest.raises(InvalidInput, match="min_relevance"):
        replace(BUILTIN_RECIPES["rrf"], min_relevance=2.0)
