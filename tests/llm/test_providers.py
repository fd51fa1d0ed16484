"""The three providers over their own protocols, with servers that work and servers that fail."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from embedding.server import send_without_end
from llm.server import (
    PATHS,
    ChatServer,
    Response,
    as_json,
    events,
    hang,
    reset,
    streamed,
    truncate_body,
    whole,
)
from sennit.errors import SettingsError, SourceError
from sennit.llm import LanguageModel, LanguageSpec, create_language_model
from sennit.llm.base import Provider
from sennit.llm.remote import MAX_ANSWER_CHARACTERS, split_lines

KEY = "sk-very-secret"
PROVIDERS = list(PATHS)
every_provider = pytest.mark.parametrize("provider", PROVIDERS)


def model(server: ChatServer, provider: str, *, retries: int = 1, key: str | None = None) -> LanguageModel:
    spec = LanguageSpec(
        provider=cast(Provider, provider),
        model="small",
        base_url=server.base_url(provider),
        api_key_env=key,
        retries=retries,
        backoff=0.001,
    )
    made = create_language_model(spec)
    assert made is not None
    return made


def ask(one: LanguageModel, timeout: float = 5) -> str:
    return one.complete("be brief", "what is a lease?", max_tokens=50, timeout=timeout)


def tell(one: LanguageModel, timeout: float = 5) -> list[str]:
    return list(one.stream("be brief", "what is a lease?", max_tokens=50, timeout=timeout))


@every_provider
def test_a_question_is_answered(server: ChatServer, provider: str) -> None:
    one = model(server, provider)
    assert ask(one) == server.says
    assert one.name == f"{provider}/small"
    (request,) = server.requests
    assert request.path == PATHS[provider]
    assert request.body["model"] == "small"
    sent = json.dumps(request.body)
    assert "be brief" in sent
    assert "what is a lease?" in sent


@every_provider
def test_an_answer_comes_in_parts(server: ChatServer, provider: str) -> None:
    parts = tell(model(server, provider))
    assert len(parts) > 2
    assert "".join(parts) == server.says


def test_each_provider_gets_a_request_in_its_own_protocol(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    for provider in PROVIDERS:
        ask(model(server, provider, key="A_KEY"))
    anthropic, openai, ollama = server.requests
    assert anthropic.headers["x-api-key"] == KEY
    assert anthropic.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in anthropic.headers
    assert (anthropic.body["system"], anthropic.body["max_tokens"]) == ("be brief", 50)
    assert openai.headers["authorization"] == ollama.headers["authorization"] == f"Bearer {KEY}"
    assert openai.body["max_tokens"] == 50
    assert cast(list[Any], openai.body["messages"])[0] == {"role": "system", "content": "be brief"}
    assert ollama.body["options"] == {"num_predict": 50}


@every_provider
@pytest.mark.parametrize("how", [ask, tell])
def test_a_hanging_server_is_abandoned_at_the_deadline(server: ChatServer, provider: str, how: Any) -> None:
    server.script = [Response(act=hang)]
    with pytest.raises(SourceError, match=r"within 0\.2 s.*llm\.timeout"):
        how(model(server, provider), timeout=0.2)


@every_provider
def test_a_stalled_stream_is_abandoned_at_the_deadline(server: ChatServer, provider: str) -> None:
    server.script = [streamed(events(PATHS[provider], ["one", " two"])[:-3], then_hang=True)]
    with pytest.raises(SourceError, match=r"within 0\.3 s"):
        tell(model(server, provider), timeout=0.3)


@every_provider
@pytest.mark.parametrize(
    "answer",
    [
        Response(body=b"<html>hello</html>"),
        as_json([]),
        as_json({}),
        as_json({"choices": [], "content": "text", "message": "text"}),
        as_json({"choices": [None], "content": [None], "message": {"content": 7}}),
    ],
)
def test_a_malformed_answer_is_an_error(server: ChatServer, provider: str, answer: Response) -> None:
    server.script = [answer]
    with pytest.raises(SourceError, match="llm"):
        ask(model(server, provider))


@every_provider
def test_a_malformed_stream_is_an_error(server: ChatServer, provider: str) -> None:
    server.script = [streamed([b"data: {not json\n"])]
    with pytest.raises(SourceError, match="not JSON"):
        tell(model(server, provider))
    server.script = [streamed([])]
    with pytest.raises(SourceError, match="stopped in the middle"):
        tell(model(server, provider))


REFUSALS = {
    "anthropic": {"content": [], "stop_reason": "refusal"},
    "openai": {"choices": [{"message": {"content": None, "refusal": "I cannot"}, "finish_reason": "stop"}]},
    "ollama": {"message": {"content": ""}, "done": True},
}


@every_provider
def test_a_refusal_is_an_error_and_never_an_empty_answer(server: ChatServer, provider: str) -> None:
    server.script = [as_json(REFUSALS[provider])]
    with pytest.raises(SourceError, match=r"declined|empty text"):
        ask(model(server, provider))


STREAMED_REFUSALS: dict[str, object] = {
    "anthropic": {"type": "message_delta", "delta": {"stop_reason": "refusal"}},
    "openai": {"choices": [{"delta": {}, "finish_reason": "content_filter"}]},
    "ollama": {"error": "model requires more memory"},
}


@every_provider
def test_a_refusal_in_a_stream_is_an_error(server: ChatServer, provider: str) -> None:
    server.script = [streamed([b"data: " + json.dumps(STREAMED_REFUSALS[provider]).encode() + b"\n"])]
    with pytest.raises(SourceError, match=r"declined|more memory"):
        tell(model(server, provider))


@every_provider
@pytest.mark.parametrize("how", [ask, tell])
def test_a_rate_limit_with_a_short_pause_is_waited_for(server: ChatServer, provider: str, how: Any) -> None:
    server.script = [Response(429, headers={"Retry-After": "0"})]
    assert "".join(how(model(server, provider))) == server.says
    assert len(server.requests) == 2


@every_provider
@pytest.mark.parametrize("how", [ask, tell])
def test_a_rate_limit_with_a_long_pause_is_reported(server: ChatServer, provider: str, how: Any) -> None:
    server.script = [Response(429, headers={"Retry-After": "3600"})]
    with pytest.raises(SourceError, match="limits the request rate"):
        how(model(server, provider))
    assert len(server.requests) == 1


@every_provider
@pytest.mark.parametrize("how", [ask, tell])
def test_a_broken_connection_is_retried_and_then_reported(
    server: ChatServer, provider: str, how: Any
) -> None:
    server.script = [Response(act=reset)]
    assert "".join(how(model(server, provider))) == server.says
    server.script = [Response(act=reset), Response(act=reset)]
    with pytest.raises(SourceError, match=r"cannot be reached.*llm\.base_url"):
        how(model(server, provider))


@every_provider
def test_a_stream_cut_short_yields_its_text_and_then_an_error(server: ChatServer, provider: str) -> None:
    lines = events(PATHS[provider], ["Use ", "leases"])
    shown = next(at for at, line in enumerate(lines) if b"Use " in line)
    server.script = [streamed(lines[: shown + 1])]
    came: list[str] = []
    with pytest.raises(SourceError, match="in the middle"):
        came.extend(model(server, provider).stream("", "x", max_tokens=9, timeout=5))
    assert came == ["Use "]
    assert len(server.requests) == 1  # what was shown is not asked for again
    server.script = [Response(act=truncate_body)]
    with pytest.raises(SourceError):
        tell(model(server, provider, retries=0))


@every_provider
@pytest.mark.parametrize("status", [401, 403])
def test_an_error_names_the_variable_of_a_wrong_key_and_not_the_key(
    server: ChatServer, provider: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    server.script = [as_json({"error": f"bad key {KEY}"}, status)]
    with pytest.raises(SourceError, match="check the key in A_KEY") as caught:
        ask(model(server, provider, key="A_KEY"))
    assert KEY not in str(caught.value)
    monkeypatch.delenv("A_KEY")
    with pytest.raises(SourceError, match=r"A_KEY is empty or not set.*llm\.api_key_env"):
        ask(model(server, provider, key="A_KEY"))


@every_provider
def test_a_huge_answer_is_refused(server: ChatServer, provider: str) -> None:
    server.script = [Response(act=send_without_end)]
    with pytest.raises(SourceError, match="more than 16 MB"):
        ask(model(server, provider, retries=0), timeout=60)
    server.script = [as_json(whole(PATHS[provider], "x" * (MAX_ANSWER_CHARACTERS + 1)))]
    with pytest.raises(SourceError, match="characters"):
        ask(model(server, provider))
    server.script = [streamed(events(PATHS[provider], ["x" * (MAX_ANSWER_CHARACTERS // 2)] * 3))]
    with pytest.raises(SourceError, match="characters"):
        tell(model(server, provider))


@every_provider
@pytest.mark.parametrize("how", [ask, tell])
def test_a_key_never_follows_a_redirect_to_another_server(
    server: ChatServer, provider: str, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    other = ChatServer()
    try:
        server.script = [Response(307, headers={"Location": f"{other.url}{PATHS[provider]}"})]
        with pytest.raises(SourceError, match=r"does not follow.*llm\.base_url"):
            how(model(server, provider, key="A_KEY"))
        assert not other.requests
    finally:
        other.close()


def test_a_default_key_is_sent_to_its_own_service_only() -> None:
    services: tuple[Provider, ...] = ("anthropic", "openai")
    for provider in services:
        elsewhere = create_language_model(
            LanguageSpec(provider=provider, model="m", base_url="http://127.0.0.1:9")
        )
        own = create_language_model(LanguageSpec(provider=provider, model="m", retries=0))
        assert elsewhere is not None
        assert own is not None
        assert cast(Any, elsewhere)._client._api_key_env is None
        assert cast(Any, own)._client._api_key_env == f"{provider.upper()}_API_KEY"


def test_a_provider_without_a_model_says_what_to_set() -> None:
    with pytest.raises(SettingsError, match=r"llm\.model"):
        create_language_model(LanguageSpec(provider="ollama"))
    assert create_language_model(LanguageSpec()) is None


def test_lines_do_not_depend_on_the_size_of_the_chunks() -> None:
    assert list(split_lines([b"a", b"b\nc", b"\n", b"\nd"])) == [b"ab", b"c", b"", b"d"]
