from __future__ import annotations

import subprocess
import sys

import pytest

from sennit.embedding import PROVIDERS, EmbeddingSpec, create_embedder
from sennit.errors import NotFound, SettingsError


def test_the_default_is_the_packaged_static_model() -> None:
    spec = EmbeddingSpec()
    assert (spec.provider, spec.model) == ("static", "sennit-static-256")
    embedder = create_embedder(spec)
    assert embedder is not None
    assert embedder.name == "static/sennit-static-256"


def test_provider_none_builds_nothing() -> None:
    assert create_embedder(EmbeddingSpec(provider="none")) is None


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ["numpy", "tokenizers", "xxhash", "httpx", "onnx", "onnxruntime"]
    code = f"import sys, sennit.embedding; print(sorted(set({heavy}) & sys.modules.keys()))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_query_in_plain_english_does_not_load_the_tokenizers_library() -> None:
    code = (
        "import sys; from sennit.embedding import EmbeddingSpec, create_embedder\n"
        "create_embedder(EmbeddingSpec()).embed_query('What changed in March?')\n"
        "print('tokenizers' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout.strip(), run.stderr) == ("False", "")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("provider", "voyage"),
        ("model", None),
        ("dimensions", 0),
        ("dimensions", 2.5),
        ("dimensions", True),
        ("retries", -1),
        ("retries", 21),
        ("timeout", 0),
        ("timeout", float("nan")),
        ("timeout", float("inf")),
        ("backoff", -0.1),
        ("base_url", "file:///etc/passwd"),
        ("base_url", "ftp://example.org"),
        ("base_url", "http://"),
        ("base_url", "http://[::1"),
        ("base_url", "http://host:99999/"),
        ("base_url", "localhost:11434"),
        ("base_url", "https://example.org/v1?key=1"),
        ("query_prefix", 3),
    ],
)
def test_an_invalid_setting_is_rejected_by_name(setting: str, value: object) -> None:
    with pytest.raises(SettingsError, match=rf"embedding\.{setting}") as raised:
        EmbeddingSpec(**{setting: value})  # type: ignore[arg-type]
    assert raised.value.key == f"embedding.{setting}"


def test_an_error_about_the_batch_size_names_the_setting() -> None:
    with pytest.raises(SettingsError, match=r"embedding\.batch: 0 is not"):
        EmbeddingSpec(batch_size=0)


def test_a_misplaced_credential_is_rejected_and_not_repeated() -> None:
    with pytest.raises(SettingsError) as key_as_name:
        EmbeddingSpec(provider="openai", api_key_env="sk-proj-hunter2")
    with pytest.raises(SettingsError) as password_in_url:
        EmbeddingSpec(provider="openai", base_url="https://me:hunter2@example.org/v1")
    assert "hunter2" not in str(key_as_name.value) + str(password_in_url.value)


def test_every_provider_that_computes_has_a_default_model() -> None:
    assert [p for p in PROVIDERS if not EmbeddingSpec(provider=p).model] == ["given", "none"]  # type: ignore[arg-type]


def test_an_unknown_static_model_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(NotFound, match=r"'glove'.*sennit-static-256"):
        create_embedder(EmbeddingSpec(model="glove"))
