"""A question becomes keywords, by a language model or without one; what fails leaves the question as it is."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.server import Answer, ChatServer, as_json, hang, reset, whole
from llm.test_providers import model
from sennit.llm.cache import Recent
from sennit.llm.offline import corrected, keywords, parts_of
from sennit.llm.transform import MAX_CHARACTERS, MAX_WORDS, ByModel, keywords_in, transformed, untouched

QUESTION = "why does my job run twice?"


def by_model(server: ChatServer, timeout: float = 5) -> ByModel:
    return ByModel(model(server, "openai", retries=0), timeout=timeout)


def test_the_model_gives_keywords_and_the_original_is_kept(server: ChatServer) -> None:
    server.says = "Keywords: at-least-once delivery, lease, idempotency"
    found = transformed(QUESTION, "openai/small", by_model(server))
    assert (found.original, found.used) == (QUESTION, "at-least-once delivery lease idempotency")
    assert (found.by, found.error) == ("openai/small", None)
    assert found.milliseconds > 0
    assert "error" not in found.to_dict()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(act=hang),
        Answer(act=reset),
        Answer(500),
        Answer(429, headers={"Retry-After": "100"}),
        Answer(body=b"no json"),
        as_json({"choices": [{"message": {"refusal": "no"}}]}),
        as_json(whole("", "I am sorry, but " * 50)),
        as_json(whole("", "   ")),
    ],
)
def test_whatever_fails_the_original_is_used_and_the_reason_is_said(
    server: ChatServer, answer: Answer
) -> None:
    server.script = [answer]
    found = transformed(QUESTION, "openai/small", by_model(server, timeout=0.3))
    assert found.used == QUESTION
    assert found.error
    assert found.to_dict()["error"] == found.error


def test_the_same_question_is_asked_once_and_a_failure_again(server: ChatServer) -> None:
    server.says = "lease delivery"
    change = by_model(server)
    server.script = [Answer(500)]
    assert transformed(QUESTION, "m", change).used == QUESTION
    assert transformed(QUESTION, "m", change).used == "lease delivery"
    assert transformed(QUESTION, "m", change).used == "lease delivery"
    assert len(server.requests) == 2
    assert transformed("another", "m", change).used == "lease delivery"
    assert len(server.requests) == 3


def test_another_model_is_another_answer(server: ChatServer) -> None:
    recent = Recent()
    server.says = "one"
    assert ByModel(model(server, "openai"), timeout=5, recent=recent)(QUESTION) == "one"
    server.says = "two"
    assert ByModel(model(server, "ollama"), timeout=5, recent=recent)(QUESTION) == "two"
    assert ByModel(model(server, "openai"), timeout=5, recent=recent)(QUESTION) == "one"


def test_an_empty_question_is_not_sent(server: ChatServer) -> None:
    assert transformed("  ", "m", by_model(server)).used == "  "
    assert not server.requests
    assert untouched(QUESTION).used == QUESTION


@given(st.text(max_size=600))
def test_keywords_are_one_short_line_or_nothing(said: str) -> None:
    found = keywords_in(said)
    assert "\n" not in found
    assert len(found) <= MAX_CHARACTERS
    assert len(found.split()) <= MAX_WORDS


def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    recent = Recent(2)
    recent.keep(("a", "m"), "1")
    recent.keep(("b", "m"), "2")
    assert recent.get(("a", "m")) == "1"
    recent.keep(("c", "m"), "3")
    assert (recent.get(("a", "m")), recent.get(("b", "m")), recent.get(("c", "m"))) == ("1", None, "3")
    assert len(recent) == 2


def test_many_threads_share_it() -> None:
    recent = Recent(50)

    def work(seed: int) -> None:
        for n in range(500):
            recent.keep((str((n * seed) % 97), "m"), "x")
            recent.get((str(n % 97), "m"))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(recent) == 50


# Without a model

CORPUS = {"configuration": 0.2, "retries": 0.3, "backoff": 0.1, "lease": 0.05, "retry": 0.2}


def share(word: str) -> float:
    return CORPUS.get(word.lower(), 0.0)


def test_stop_words_and_what_questions_are_made_of_go() -> None:
    assert keywords("how do I use the lease with a backoff?", share).split() == ["lease", "backoff"]


def test_names_are_searched_whole_and_in_parts() -> None:
    assert parts_of("retryBackoff") == ["retry", "backoff"]
    assert parts_of("max_HTTPRetries2") == ["max", "http", "retries", "2"]
    assert parts_of("plain") == []
    assert keywords("what is retryBackoff?", share).split() == ["retryBackoff", "retry", "backoff"]


@pytest.mark.parametrize("slip", ["configuraton", "cofniguration", "configurattion", "confiquration"])
def test_a_word_that_the_corpus_does_not_have_is_spelled_as_it_spells_it(slip: str) -> None:
    assert corrected(slip, share) == "configuration"
    assert keywords(f"where is the {slip}?", share) == "configuration"


def test_a_word_that_the_corpus_has_or_that_is_far_from_all_stays() -> None:
    assert set(keywords("retries backoff", share).split()) == {"retries", "backoff"}
    assert keywords("xylophone", share) == "xylophone"
    assert keywords("leese", lambda _: 0.0) == "leese"


def test_a_question_without_keywords_stays_as_it_is() -> None:
    assert keywords("", share) == ""
    assert keywords("who are you?", share).strip()
