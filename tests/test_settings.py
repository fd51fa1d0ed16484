"""Settings: where a value comes from, what is refused, and what an untrusted file may not set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.embedding.base import PROVIDERS
from sennit.errors import SettingsError
from sennit.settings import (
    SETTINGS,
    EmbeddingSettings,
    KeywordSettings,
    Setting,
    Settings,
    describe_settings,
    distrust_folder,
    load_settings,
    trust_folder,
)


class Home:
    """A user with a configuration folder, and an untrusted project folder."""

    def __init__(self, root: Path) -> None:
        self.config = root / "config"
        self.project = root / "project"
        self.own = self.config / "sennit" / "sennit.toml"
        self.found = self.project / "sennit.toml"
        self.env = {"XDG_CONFIG_HOME": str(self.config), "HOME": str(root)}
        self.own.parent.mkdir(parents=True)
        self.project.mkdir()

    def load(self, env: dict[str, str] | None = None, **overrides: object) -> Settings:
        return load_settings(
            start=self.project,
            env=self.env | (env or {}),
            overrides={key.replace("__", "."): value for key, value in overrides.items()},
        )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def refused(home: Home, toml: str) -> SettingsError:
    home.found.write_text(toml)
    with pytest.raises(SettingsError) as caught:
        home.load()
    return caught.value


def values_of(setting: Setting) -> st.SearchStrategy[object]:
    """Values the setting takes, none of them refused from a found file."""
    if setting.kind is bool:
        return st.sampled_from([value for value in (True, False) if not setting.is_sensitive(value)])
    if setting.spec.items:
        return st.lists(st.sampled_from(setting.spec.items), min_size=1, unique=True).map(tuple)
    if setting.kind is tuple:
        return st.lists(st.text("abcdefg-_:ÄÖ漢", min_size=1), max_size=3).map(tuple)
    if setting.kind is int:
        return st.integers(int(setting.spec.minimum), int(setting.spec.maximum))
    if setting.kind is float:
        return st.floats(setting.spec.minimum, setting.spec.maximum)
    if setting.choices:
        return st.sampled_from([c for c in setting.choices if not setting.is_sensitive(c)])
    if setting.spec.pattern:
        return st.from_regex(setting.spec.pattern, fullmatch=True, alphabet="abcdefg -_:ÄÖ漢")
    return st.text("abcdefg -_:ÄÖ漢", min_size=1)


HARMLESS = [s for s in SETTINGS.values() if s.spec.sensitive is not True]


# Precedence


@given(data=st.data(), setting=st.sampled_from(HARMLESS))
def test_a_stronger_source_wins_and_is_named_as_the_origin(data: st.DataObject, setting: Setting) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        section, name = setting.key.split(".")
        origins = [str(home.own), str(home.found), *setting.variables, "argument"]
        given_by = data.draw(st.lists(st.sampled_from(origins), unique=True))
        values = {origin: data.draw(values_of(setting), label=origin) for origin in given_by}

        for file in (home.own, home.found):
            if str(file) in values:
                value = values[str(file)]
                literal = json.dumps(value, ensure_ascii=False)
                file.write_text(f"[{section}]\n{name} = {literal}\n", encoding="utf-8")
        env = {
            variable: ",".join(value) if isinstance(value := values[variable], tuple) else str(value)
            for variable in setting.variables
            if variable in values
        }
        overrides = {setting.key: values["argument"]} if "argument" in values else {}
        settings = load_settings(start=home.project.resolve(), env=home.env | env, overrides=overrides)

        strongest = max(given_by, key=origins.index, default="default")
        row = next(row for row in describe_settings(settings) if row.key == setting.key)
        assert row.value == values.get(strongest, setting.default)
        assert row.origin == strongest


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda setting: setting.key)
def test_no_refused_value_shows_the_password_of_an_address(home: Home, setting: Setting) -> None:
    secret = "open-sesame-9"
    for address in (f"https://ana:{secret}@host/x", f"postgresql://ana:1@{secret}@host/db?password={secret}"):
        for value in (address, [address]):
            overrides: dict[str, Any] = {setting.key.replace(".", "__"): value}
            try:
                settings = home.load(**overrides)
            except SettingsError as error:
                shown = str(error)
            else:
                shown = repr(describe_settings(settings))
            assert secret not in shown
            home.own.write_text(f"{setting.key.partition('.')[0]} = {json.dumps(value)}\n")
            with pytest.raises(SettingsError) as caught:
                home.load()
            home.own.unlink()
            assert secret not in str(caught.value)


def test_without_any_source_every_value_is_the_default(home: Home) -> None:
    settings = home.load()
    assert settings == Settings()
    assert {row.origin for row in describe_settings(settings)} == {"default"}
    assert settings.embedding.provider == "static"
    assert (settings.keyword.k1, settings.keyword.b) == (1.2, 0.4)
    assert (settings.search.recipe, settings.search.limit, settings.search.deadline) == ("default", 10, 2.0)
    assert settings.store.flush_at == 1024


def test_files_are_merged_key_by_key(home: Home) -> None:
    home.own.write_text("[search]\nlimit = 20\ndeadline = 5\n")
    home.found.write_text("[search]\nlimit = 30\n")
    settings = home.load()
    assert (settings.search.limit, settings.search.deadline) == (30, 5.0)


def test_the_nearest_file_above_the_starting_folder_is_found(home: Home) -> None:
    home.found.write_text("[search]\nlimit = 30\n")
    deep = home.project / "a" / "b"
    deep.mkdir(parents=True)
    assert load_settings(start=deep, env=home.env).search.limit == 30
    (deep.parent / "sennit.toml").write_text("[search]\nlimit = 40\n")
    assert load_settings(start=deep, env=home.env).search.limit == 40


def test_by_default_the_search_starts_in_the_working_folder(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.found.write_text("[search]\nlimit = 30\n")
    monkeypatch.chdir(home.project)
    assert load_settings(env=home.env).search.limit == 30


def test_a_named_file_replaces_the_found_one_and_an_argument_the_variable(home: Home) -> None:
    home.found.write_text("[search]\nlimit = 30\n[store]\nflush_at = 7\n")
    by_variable, by_argument = home.config / "variable.toml", home.config / "argument.toml"
    by_variable.write_text("[search]\nlimit = 40\n")
    by_argument.write_text("[search]\nlimit = 50\n")
    env = home.env | {"SENNIT_CONFIG": str(by_variable)}
    assert load_settings(start=home.project, env=env).search.limit == 40
    assert load_settings(by_argument, start=home.project, env=env).search.limit == 50
    assert load_settings(by_argument, start=home.project, env=env).store.flush_at == 1024


def test_the_choices_of_the_provider_are_the_implemented_ones() -> None:
    assert set(SETTINGS["embedding.provider"].choices) == set(PROVIDERS)


def test_the_environment_of_the_process_is_read_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENNIT_SEARCH_LIMIT", "12")
    assert load_settings().search.limit == 12


def test_other_sennit_variables_are_ignored(home: Home) -> None:
    assert home.load({"SENNIT_DB": "x", "SENNIT_MODELS": "y", "SENNIT_SERCH_LIMIT": "5"}) == Settings()


def test_an_override_of_none_means_not_given(home: Home) -> None:
    assert home.load({"SENNIT_SEARCH_LIMIT": "12"}, search__limit=None).search.limit == 12


def test_an_empty_variable_unsets_what_may_be_left_out(home: Home) -> None:
    home.own.write_text("[embedding]\nbase_url = 'http://localhost:11434'\ndimensions = 128\n")
    settings = home.load({"SENNIT_EMBEDDING_BASE_URL": "", "SENNIT_EMBEDDING_DIMENSIONS": ""})
    assert settings.embedding.base_url is None
    assert settings.embedding.dimensions is None


def test_a_file_found_in_the_configuration_folder_is_the_users_own(home: Home) -> None:
    home.own.write_text("[embedding]\nbase_url = 'http://localhost:11434'\n")
    assert load_settings(start=home.own.parent, env=home.env).embedding.base_url == "http://localhost:11434"


# Checking


@pytest.mark.parametrize(
    ("toml", "key", "advice"),
    [
        ("[search]\nlimit = 0", "search.limit", "is 0; it must be a whole number from 1 to 1,000"),
        ("[search]\nlimit = 2.5", "search.limit", "is 2.5; it must be a whole number"),
        ("[search]\nlimit = true", "search.limit", "is True; it must be a whole number"),
        ("[search]\nlimit = '5'", "search.limit", "is '5'; it must be a whole number"),
        ("[search]\nrecipe = ''", "search.recipe", "is ''; it must be the name of a recipe"),
        ("[keyword]\nb = 1.5", "keyword.b", "is 1.5; it must be a number from 0 to 1"),
        ("[keyword]\nk1 = nan", "keyword.k1", "is nan; it must be a number from 0 to 100"),
        ("[keyword]\nk1 = inf", "keyword.k1", "is inf"),
        ("[keyword]\nk1 = 1" + "0" * 400, "keyword.k1", "it must be a number from 0 to 100"),
        ("[store]\nflush_at = 1000001", "store.flush_at", "from 1 to 1,000,000"),
        (
            "[embedding]\nprovider = 'cohere'",
            "embedding.provider",
            "one of static, onnx, openai, ollama, given, none",
        ),
        ("[embedding]\nquery_prefix = 3", "embedding.query_prefix", "is 3; it must be a string"),
        ("[embedding]\ndimensions = 0", "embedding.dimensions", "from 1 to 65,536, or left out"),
    ],
)
def test_an_invalid_value_is_refused_with_the_allowed_values(
    home: Home, toml: str, key: str, advice: str
) -> None:
    error = refused(home, toml)
    assert error.key == key
    assert str(error).startswith(f"{home.found.resolve()}: {key} is ")
    assert advice in str(error)


@pytest.mark.parametrize("text", ["", "ten", "1.5", "0", "1e3", "9" * 5000])
def test_an_error_names_the_invalid_variable(home: Home, text: str) -> None:
    with pytest.raises(SettingsError, match=r"^SENNIT_SEARCH_LIMIT: search.limit is ") as caught:
        home.load({"SENNIT_SEARCH_LIMIT": text})
    assert len(str(caught.value)) < 300


def test_an_invalid_argument_is_refused(home: Home) -> None:
    with pytest.raises(SettingsError, match=r"^argument: keyword.b is 2"):
        home.load(keyword__b=2)
    with pytest.raises(SettingsError, match=r"^argument: keyword.b is 2"):
        KeywordSettings(b=2)
    with pytest.raises(SettingsError, match="valid Unicode"):
        EmbeddingSettings(query_prefix="\ud800")


def test_a_whole_number_is_a_number_too(home: Home) -> None:
    k1 = home.load(keyword__k1=2).keyword.k1
    assert (k1, type(k1)) == (2.0, float)


@pytest.mark.parametrize(
    ("toml", "near"),
    [
        ("[embedding]\nprovder = 'static'", "did you mean embedding.provider?"),
        ("[embeding]\nprovider = 'static'", "did you mean embedding?"),
        ("[search]\nk1 = 1", "did you mean keyword.k1?"),
        ("[qdrant]\nurl = 'http://127.0.0.1'", "did you mean qdrant.urls?"),
        ("limit = 5", "did you mean search.limit?"),
        ("[store]\nzzz = 5", "known settings: store.flush_at."),
        ("[zzz]\na = 5", "attached."),
    ],
)
def test_an_unknown_key_is_refused_and_the_nearest_known_one_named(home: Home, toml: str, near: str) -> None:
    error = refused(home, toml)
    assert str(home.found.resolve()) in str(error)
    assert str(error).endswith(near)


def test_an_unknown_argument_is_refused(home: Home) -> None:
    with pytest.raises(SettingsError, match=r"^argument: .*'search.limits'; did you mean search.limit\?"):
        home.load(search__limits=3)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[search\n", "is not valid TOML: .* line 1"),
        (b"a = '\xff'", "is not UTF-8 text"),
        (b"search = 3", "'search' is 3; it must be a table"),
        (b"[recipes]\nx = 3", "'recipes.x' is 3; it must be a table"),
        (b"#" * 1024 * 1024 + b"#", "is larger than 1,048,576 bytes"),
        (b"[recipes.x]\na = " + b"[" * 5000 + b"]" * 5000, "is nested too deeply"),
        (b"[recipes.x]\n" + b".".join([b"a"] * 5000) + b" = 1", "is nested too deeply"),
        (b"[search]\nlimit." + b".".join([b"a"] * 400) + b" = 1", "search.limit is mappingproxy"),
    ],
)
def test_a_file_that_is_not_a_settings_file_says_why(home: Home, content: bytes, why: str) -> None:
    home.found.write_bytes(content)
    with pytest.raises(SettingsError, match=why) as caught:
        home.load()
    assert str(home.found.resolve()) in str(caught.value)


def test_a_file_with_a_byte_order_mark_is_read(home: Home) -> None:
    home.found.write_bytes(b"\xef\xbb\xbf[search]\nlimit = 3\n")
    assert home.load().search.limit == 3


def test_a_named_file_that_is_missing_is_an_error_and_a_found_pipe_is_passed_by(home: Home) -> None:
    with pytest.raises(SettingsError, match="no such settings file"):
        load_settings(home.project / "other.toml", env=home.env)
    with pytest.raises(SettingsError, match="no such settings file"):
        load_settings(home.project, env=home.env)
    os.mkfifo(home.found)
    assert home.load() == Settings()


@pytest.mark.parametrize(
    "url",
    [
        "localhost:11434",
        "ftp://a/b",
        "file:///etc/passwd",
        "http://",
        "http://a b/",
        "http://a\\b",
        "https://a\n",
    ],
)
def test_a_base_url_must_be_a_plain_http_address(url: str) -> None:
    with pytest.raises(SettingsError, match="http:// or https:// address"):
        EmbeddingSettings(base_url=url)


@pytest.mark.parametrize("url", ["http://localhost:11434", "https://例え.jp/v1/", "http://[::1]:8080/v1"])
def test_a_plain_http_address_is_a_base_url(url: str) -> None:
    assert EmbeddingSettings(base_url=url).base_url == url


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("api_key_env", "sk-hunter2"),
        ("base_url", "https://user:hunter2@example.com/v1"),
        ("base_url", "https://example.com/v1?key=hunter2"),
    ],
)
def test_a_credential_in_the_wrong_place_is_refused_and_not_repeated(key: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(env={f"SENNIT_EMBEDDING_{key.upper()}": value})
    assert "hunter2" not in str(caught.value)


# Recipes


def test_recipe_tables_are_kept_as_written_and_cannot_be_changed(home: Home) -> None:
    home.own.write_text("[recipes.mine]\nlimit = 3\n[recipes.other]\na = 1\n")
    home.found.write_text("[recipes.mine]\nsources = ['keyword']\n[recipes.mine.fusion]\nk = 60\n")
    settings = home.load()
    assert settings.recipes == {"mine": {"sources": ("keyword",), "fusion": {"k": 60}}, "other": {"a": 1}}
    with pytest.raises(TypeError):
        settings.recipes["mine"]["sources"] = 1  # type: ignore[index]
    assert ("recipes.mine", str(home.found.resolve())) in [
        (r.key, r.origin) for r in describe_settings(settings)
    ]


@pytest.mark.parametrize("value", ["'http://x'", "'/etc/passwd'", "'~x'", "['a', {b = '../x'}]", "'C:\\x'"])
def test_a_recipe_in_an_untrusted_file_may_not_name_a_path_or_address(home: Home, value: str) -> None:
    assert "sennit config trust" in str(refused(home, f"[recipes.mine]\na = {value}"))


# Trust


SENSITIVE = [
    "base_url = 'http://localhost:1'",
    "base_url = ''",
    "api_key_env = 'AWS_SECRET_ACCESS_KEY'",
    "provider = 'openai'",
    "provider = 'ollama'",
    "provider = 'onnx'",
    "model = '../model'",
]


@pytest.mark.parametrize("line", SENSITIVE)
def test_an_untrusted_file_may_not_set_a_sensitive_setting(home: Home, line: str) -> None:
    error = refused(home, f"[embedding]\n{line}\n")
    assert error.key == f"embedding.{line.split()[0]}"
    assert f"sennit config trust {home.project.resolve()}" in str(error)


@pytest.mark.parametrize("line", SENSITIVE)
def test_a_trusted_folder_a_named_file_and_the_users_own_file_may_set_it(home: Home, line: str) -> None:
    home.found.write_text(f"[embedding]\n{line}\n")
    expected = load_settings(home.found, env=home.env)
    assert load_settings(env=home.env | {"SENNIT_CONFIG": str(home.found)}) == expected

    assert trust_folder(home.project, env=home.env) == home.project.resolve()
    assert home.load() == expected
    assert distrust_folder(home.project, env=home.env)
    refused(home, home.found.read_text())

    home.found.rename(home.own)
    assert home.load() == expected


def test_an_untrusted_file_may_set_harmless_settings(home: Home) -> None:
    home.found.write_text("[embedding]\nprovider = 'none'\nbatch = 8\n[keyword]\nk1 = 0.9\n")
    settings = home.load()
    assert (settings.embedding.provider, settings.embedding.batch, settings.keyword.k1) == ("none", 8, 0.9)


def test_reading_settings_loads_nothing_heavy() -> None:
    code = "import sys, sennit.settings; print(sorted({'numpy', 'rich', 'filelock', 'tomllib'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("OPENAI_API_KEY", "OPENAI_API_KEY"),
        ("TOKEN", "TOKEN"),
        ("my_key_that_is_set", "my_key_that_is_set"),
        ("sk_live_51Hx8YtRkq0vGc", "… (not shown: no such variable is set)"),
        ("AKIAIOSFODNN7EXAMPLE", "… (not shown: no such variable is set)"),
    ],
)
def test_a_key_in_the_place_of_a_variables_name_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, value: str, shown: str
) -> None:
    monkeypatch.setenv("my_key_that_is_set", "secret")
    settings = load_settings(overrides={"llm.api_key_env": value, "chroma.api_key_env": value})
    rows = {row.key: row.value for row in describe_settings(settings)}
    assert (rows["llm.api_key_env"], rows["chroma.api_key_env"]) == (shown, shown)
    assert rows["qdrant.api_key_env"] == ""
