"""Questions become keywords, with a language model or without one; a failure leaves the question as it is."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.server import ChatServer, Response, as_json, hang, reset, whole
from llm.test_providers import model
from sennit.llm.offline_transform import correct_spelling, identifier_parts, make_keywords
from sennit.llm.transform import (
    MAX_CHARACTERS,
    MAX_WORDS,
    LruCache,
    ModelTransformer,
    keep_query,
    parse_keywords,
    transform_query,
)

QUESTION = "why does my job run twice?"


def by_model(server: ChatServer, timeout: float = 5) -> ModelTransformer:
    return ModelTransformer(model(server, "openai", retries=0), timeout=timeout)


def test_the_model_gives_keywords_and_the_original_is_kept(server: ChatServer) -> None:
    server.says = "Keywords: at-least-once delivery, lease, idempotency"
    found = transform_query(QUESTION, "openai/small", by_model(server))
    assert (found.original, found.used) == (QUESTION, "at-least-once delivery lease idempotency")
    assert (found.by, found.error) == ("openai/small", None)
    assert found.milliseconds > 0
    assert "error" not in found.to_dict()


@pytest.mark.parametrize(
    "answer",
    [
        Response(act=hang),
        Response(act=reset),
        Response(500),
        Response(429, headers={"Retry-After": "100"}),
        Response(body=b"no json"),
        as_json({"choices": [{"message": {"refusal": "no"}}]}),
        as_json(whole("", "I am sorry, but " * 50)),
        as_json(whole("", "   ")),
    ],
)
def test_a_failure_keeps_the_original_question_and_states_the_reason(
    server: ChatServer, answer: Response
) -> None:
    server.script = [answer]
    found = transform_query(QUESTION, "openai/small", by_model(server, timeout=0.3))
    assert found.used == QUESTION
    assert found.error
    assert found.to_dict()["error"] == found.error


def test_an_answer_is_cached_and_a_failure_is_retried(server: ChatServer) -> None:
    server.says = "lease delivery"
    change = by_model(server)
    server.script = [Response(500)]
    assert transform_query(QUESTION, "m", change).used == QUESTION
    assert transform_query(QUESTION, "m", change).used == "lease delivery"
    assert transform_query(QUESTION, "m", change).used == "lease delivery"
    assert len(server.requests) == 2
    assert transform_query("another", "m", change).used == "lease delivery"
    assert len(server.requests) == 3


def test_the_cache_tells_models_apart(server: ChatServer) -> None:
    cache = LruCache()
    server.says = "one"
    assert ModelTransformer(model(server, "openai"), timeout=5, cache=cache)(QUESTION) == "one"
    server.says = "two"
    assert ModelTransformer(model(server, "ollama"), timeout=5, cache=cache)(QUESTION) == "two"
    assert ModelTransformer(model(server, "openai"), timeout=5, cache=cache)(QUESTION) == "one"


def test_an_empty_question_is_not_sent(server: ChatServer) -> None:
    assert transform_query("  ", "m", by_model(server)).used == "  "
    assert not server.requests
    assert keep_query(QUESTION).used == QUESTION


@given(st.text(max_size=600))
def test_keywords_are_one_short_line_or_nothing(said: str) -> None:
    found = parse_keywords(said)
    assert "\n" not in found
    assert len(found) <= MAX_CHARACTERS
    assert len(found.split()) <= MAX_WORDS


def test_the_least_recently_used_entry_is_evicted_first() -> None:
    cache = LruCache(2)
    cache.put(("a", "m"), "1")
    cache.put(("b", "m"), "2")
    assert cache.get(("a", "m")) == "1"
    cache.put(("c", "m"), "3")
    assert (cache.get(("a", "m")), cache.get(("b", "m")), cache.get(("c", "m"))) == ("1", None, "3")
    assert len(cache) == 2


def test_the_cache_is_safe_for_several_threads() -> None:
    cache = LruCache(50)

    def work(seed: int) -> None:
        for n in range(500):
            cache.put((str((n * seed) % 97), "m"), "x")
            cache.get((str(n % 97), "m"))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 50


# Without a model

CORPUS = {"configuration": 0.2, "retries": 0.3, "backoff": 0.1, "lease": 0.05, "retry": 0.2}


def share(word: str) -> float:
    return CORPUS.get(word.lower(), 0.0)


def test_stop_words_and_question_words_are_dropped() -> None:
    assert make_keywords("how do I use the lease with a backoff?", share).split() == ["lease", "backoff"]


def test_identifiers_are_kept_whole_and_split() -> None:
    assert identifier_parts("retryBackoff") == ["retry", "backoff"]
    assert identifier_parts("max_HTTPRetries2") == ["max", "http", "retries", "2"]
    assert identifier_parts("plain") == []
    assert make_keywords("what is retryBackoff?", share).split() == ["retryBackoff", "retry", "backoff"]


@pytest.mark.parametrize("slip", ["configuraton", "cofniguration", "configurattion", "confiquration"])
def test_a_misspelt_word_is_corrected_from_the_corpus(slip: str) -> None:
    assert correct_spelling(slip, share) == "configuration"
    assert make_keywords(f"where is the {slip}?", share) == "configuration"


def test_a_known_word_or_one_far_from_all_others_is_not_corrected() -> None:
    assert set(make_keywords("retries backoff", share).split()) == {"retries", "backoff"}
    assert make_keywords("xylophone", share) == "xylophone"
    assert make_keywords("leese", lambda _: 0.0) == "leese"


def test_a_question_without_keywords_stays_as_it_is() -> None:
    assert make_keywords("", share) == ""
    assert make_keywords("who are you?", share).strip()
