"""Credentials come from environment variables, and no error repeats one."""

from __future__ import annotations

import pytest

from sennit.credentials import is_shown, read_credential
from sennit.errors import EmbeddingError, SourceError

PASTED = "sk_live_8c1Jd0"


def test_a_credential_is_the_value_of_the_variable_that_a_setting_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SEARCH_PASSWORD", " with blanks ")
    assert read_credential("SEARCH_PASSWORD", "opensearch.password_env") == " with blanks "


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_an_error_about_an_empty_variable_names_it_and_the_setting(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("SEARCH_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("SEARCH_KEY", value)
    with pytest.raises(
        EmbeddingError, match=r"SEARCH_KEY is empty or not set; .*another variable in llm\.api_key_env"
    ):
        read_credential("SEARCH_KEY", "llm.api_key_env", EmbeddingError)


def test_an_error_does_not_repeat_a_key_that_was_pasted_in_place_of_a_name() -> None:
    with pytest.raises(SourceError, match=r"that qdrant\.api_key_env names") as caught:
        read_credential(PASTED, "qdrant.api_key_env")
    assert PASTED not in str(caught.value)
    assert not is_shown(PASTED)


def test_an_error_about_a_setting_without_a_name_asks_for_one() -> None:
    with pytest.raises(
        SourceError, match=r"opensearch\.username_env is empty; name the environment variable"
    ):
        read_credential("", "opensearch.username_env")
