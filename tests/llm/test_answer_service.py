"""Answering a question from end to end, with and without a language model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

import sennit
from llm.server import PATHS, ChatServer, Response, as_json, endless, events, hang, reset, streamed, whole
from sennit.errors import InvalidInput, NotFound, SettingsError
from sennit.records import Record
from sennit.settings import load_settings

LEASES = (
    "# Leases\n\n## Overview\n\nA lease is a loan of a job to a worker. It ends by itself.\n\n"
    "## Length\n\nThe lease is thirty seconds and is renewed every ten.\n\n"
    "## Examples\n\n```python\nconfigure(lease=60)\n```\n"
)
WORKERS = "# Workers\n\n## Overview\n\nA worker runs jobs in slots. Slots are processes.\n"
every_provider = pytest.mark.parametrize("provider", list(PATHS))

Open = Callable[..., sennit.Database]


@pytest.fixture
def opened(tmp_path: Path, server: ChatServer) -> Iterator[Open]:
    (tmp_path / "leases.md").write_text(LEASES)
    (tmp_path / "workers.md").write_text(WORKERS)
    databases: list[sennit.Database] = []

    def open_with(provider: str = "none", **settings: object) -> sennit.Database:
        own: dict[str, object] = {"llm__provider": provider}
        if provider != "none":
            own |= {"llm__model": "small", "llm__base_url": server.base_url(provider), "llm__retries": 0}
        named = {key.replace("__", "."): value for key, value in (own | settings).items()}
        db = sennit.open(":memory:", settings=load_settings(overrides=named))
        db.index(tmp_path, recipe="docs")
        databases.append(db)
        return db

    yield open_with
    for db in databases:
        db.close()


def asked(server: ChatServer) -> list[str]:
    """Return the system prompts of the requests for an answer, without those for keywords."""
    prompts = []
    for request in server.requests:
        messages = cast(list[dict[str, str]], request.body["messages"])
        system = cast(str, request.body.get("system", messages[0]["content"]))
        if system.startswith("You answer questions"):
            prompts.append(system)
    return prompts


@every_provider
def test_a_language_model_answers_and_its_citations_are_checked(
    server: ChatServer, opened: Open, provider: str
) -> None:
    server.says = "A lease is a loan [1]. It is renewed [2, 77]. Nonsense [99]."
    answer = opened(provider).ask("what is a lease?")
    assert answer.text == "A lease is a loan [1]. It is renewed [2]. Nonsense."
    assert answer.removed_citations == (77, 99)
    assert [one.number for one in answer.citations] == [1, 2]
    assert answer.citations[0].location.endswith("leases.md:1-5")
    assert answer.model == f"{provider}/small"
    assert answer.degraded == ()
    (prompt,) = asked(server)
    assert prompt == answer.prompt
    assert "A lease is a loan of a job" in prompt
    assert "finished example" in prompt


@every_provider
def test_an_answer_in_parts_is_the_same_answer(server: ChatServer, opened: Open, provider: str) -> None:
    server.says = "A lease is a loan [1]. It is `x[9]` renewed [2] [99]."
    stream = opened(provider).ask_stream("what is a lease?")
    parts = list(stream)
    assert len([part for part in parts if part]) > 3
    assert "".join(parts) == stream.answer.text == "A lease is a loan [1]. It is `x[9]` renewed [2]."
    assert stream.answer.removed_citations == (99,)


def test_without_a_model_the_answer_consists_of_cited_sentences(opened: Open) -> None:
    db = opened()
    answer = db.ask("what is a lease?")
    assert "A lease is a loan of a job to a worker. [1]" in answer.text
    assert (answer.model, answer.removed_citations, answer.degraded) == ("", (), ())
    assert answer.citations[0].location.endswith("leases.md:1-5")
    stream = db.ask_stream("what is a lease?")
    assert "".join(stream) == answer.text
    assert stream.answer.citations == answer.citations


@pytest.mark.parametrize(
    "trouble",
    [
        Response(500),
        Response(act=hang),
        Response(act=reset),
        Response(body=b"?"),
        Response(429, headers={"Retry-After": "99"}),
        as_json({"error": "bad key"}, 401),
        as_json({"choices": [{"message": {"refusal": "no"}}]}),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_failing_model_falls_back_to_sentences_and_states_the_reason(
    server: ChatServer, opened: Open, trouble: Response, stream: bool
) -> None:
    db = opened("openai", llm__transform="none", llm__timeout=0.4)
    server.script = [trouble]
    answer = db.ask_stream("what is a lease?").answer if stream else db.ask("what is a lease?")
    assert "A lease is a loan of a job to a worker. [1]" in answer.text
    assert answer.model == ""
    assert [one.source for one in answer.degraded] == ["answer"]


@every_provider
def test_a_stream_cut_short_keeps_its_text_and_is_reported(
    server: ChatServer, opened: Open, provider: str
) -> None:
    db = opened(provider, llm__transform="none")
    lines = events(PATHS[provider], ["A lease is ", "a loan [1]"])
    last = next(at for at, line in enumerate(lines) if b"loan" in line)
    server.script = [streamed(lines[: last + 1])]
    stream = db.ask_stream("what is a lease?")
    assert "".join(stream) == "A lease is a loan [1]"
    assert [(one.source, "middle" in one.reason) for one in stream.answer.degraded] == [("answer", True)]
    assert stream.answer.model == f"{provider}/small"


def test_closing_the_stream_ends_the_request_to_the_model(server: ChatServer, opened: Open) -> None:
    unheard = threading.Event()
    db = opened("openai", llm__transform="none", llm__timeout=600)
    server.script = [Response(act=endless(unheard))]
    stream = db.ask_stream("what is a lease?")
    assert next(iter(stream))
    stream.close()
    assert unheard.wait(60)


def test_an_answer_without_citations_is_reported_as_degraded(server: ChatServer, opened: Open) -> None:
    server.says = "Trust me."
    assert [one.source for one in opened("openai").ask("lease").degraded] == ["citations"]


def test_without_results_no_model_is_called(server: ChatServer) -> None:
    with sennit.open(
        ":memory:", llm__provider="ollama", llm__model="m", llm__base_url=server.url, llm__transform="none"
    ) as db:
        answer = db.ask("what is a lease?")
    assert answer.text == "Nothing was found that answers this."
    assert (answer.citations, answer.model) == ((), "")
    assert not server.requests


# The transform


def test_the_vector_search_gets_the_keywords_of_the_model(server: ChatServer, opened: Open) -> None:
    db = opened("openai")
    server.script = [as_json(whole("", "slots processes worker"))]
    answer = db.ask("where does it run?")
    assert answer.trace is not None
    transform = answer.trace.to_dict()["transform"]
    assert isinstance(transform, dict)
    assert (transform["original"], transform["used"]) == ("where does it run?", "slots processes worker")
    assert transform["by"] == "openai/small"
    assert answer.pages[0].name == "Workers"
    assert answer.to_dict()["transform"] == transform


def test_the_question_itself_is_searched_when_keywords_come_too_late(
    server: ChatServer, opened: Open
) -> None:
    db = opened("openai", llm__transform_timeout=0.2)
    server.script = [Response(act=hang)]
    answer = db.ask("what is a lease?")
    assert answer.text == server.says
    assert [one.source for one in answer.degraded] == ["transform"]
    assert "within 0.2 s" in answer.degraded[0].reason
    assert answer.trace is not None
    assert answer.trace.transform["used"] == "what is a lease?"
    assert "error" in answer.trace.transform
    found = [answer.trace.ids[key] for key in answer.trace.stages[-1].keys.tolist()]
    assert found == [hit.id for hit in db.search("what is a lease?", recipe="docs", limit=5, transform=False)]


def test_search_transforms_with_the_model_and_reports_its_failure(server: ChatServer, opened: Open) -> None:
    db = opened("openai")
    server.script = [as_json(whole("", "slots processes worker"))]
    found = db.search("where does it run?", recipe="docs", explain=True)
    assert found.trace is not None
    assert found.trace.transform["used"] == "slots processes worker"
    assert found.pages[0].name == "Workers"
    db = opened("openai", llm__transform_timeout=0.2)
    server.script = [Response(act=hang)]
    late = db.search("what is a lease?", recipe="docs")
    assert [one.source for one in late.degraded] == ["transform"]
    assert late.hits == db.search("what is a lease?", recipe="docs", transform=False).hits


def test_the_transform_can_be_disabled_and_works_offline(server: ChatServer, opened: Open) -> None:
    db = opened("openai")
    db.ask("lease?", transform=False)
    assert len(server.requests) == len(asked(server)) == 1
    offline = opened().ask("what is a leese?")
    assert offline.trace is not None
    assert offline.trace.transform["by"] == "offline"
    assert offline.trace.transform["used"] == "what is a leese? lease"
    none = opened(llm__transform="none").ask("what is a leese?")
    assert none.trace is not None
    assert none.trace.transform == {}


# The editor


def test_keywords_of_the_editor_augment_the_question(opened: Open) -> None:
    code = "from ferry import Slots\n\nSlots(processes=3)\n"
    db = opened(llm__transform="none")
    answer = db.ask("how many at once?", editor=code, language="python")
    assert "Slots" in answer.editor_keywords
    assert answer.trace is not None
    assert answer.trace.transform["hints"] == list(answer.editor_keywords)
    assert "from ferry import Slots" in answer.prompt
    assert answer.pages[0].name == "Workers"
    scores = {page.name: page.score for page in answer.pages}
    plain = {page.name: page.score for page in db.ask("how many at once?").pages}
    assert scores["Workers"] > plain["Workers"]


@pytest.mark.parametrize("empty", [None, "", "  \n\t"])
def test_an_empty_editor_is_skipped(opened: Open, empty: str | None) -> None:
    answer = opened(llm__transform="none").ask("lease", editor=empty)
    assert answer.editor_keywords == ()
    assert answer.trace is not None
    assert answer.trace.transform == {}
    assert "editor\n```" not in answer.prompt


def test_at_most_ten_distinct_editor_keywords_are_used(opened: Open) -> None:
    code = "\n".join(f"lease_{n}(worker_{n}(slots_{n}()))" for n in range(30)) * 2
    keywords = opened().ask("x", editor=code, language="python").editor_keywords
    assert len(keywords) == len(set(keywords)) == 10


# Who may see what, and what is refused


def test_prompt_and_answer_hold_nothing_hidden_from_the_caller(server: ChatServer, opened: Open) -> None:
    db = opened("openai", llm__transform="none")
    secret = Record(
        id="s",
        text="The lease of the vault is eleven seconds.",
        collection="docs",
        kind="SECTION",
        sensitivity="private",
    )
    db.add([secret])
    answer = db.ask("lease of the vault")
    assert "eleven" not in answer.prompt
    owner = db.ask("lease of the vault", caller=sennit.OWNER)
    assert "eleven" in owner.prompt


def test_another_recipe_answers_from_its_hits(opened: Open) -> None:
    db = opened()
    db.add([Record(id="m1", text="We picked March for Goa.", collection="memory")])
    answer = db.ask("when is Goa?", recipe="memory")
    assert answer.text == "We picked March for Goa. [1]"
    assert answer.citations[0].location == "m1"


def test_without_writing_no_model_is_called(server: ChatServer, opened: Open) -> None:
    answer = opened("openai").ask("lease", write=False)
    assert (answer.text, answer.model) == ("", "")
    assert "A lease is a loan" in answer.prompt
    assert not asked(server)


def test_invalid_arguments_are_refused(opened: Open) -> None:
    db = opened()
    with pytest.raises(NotFound, match="recipe"):
        db.ask("x", recipe="nothing")
    with pytest.raises(InvalidInput, match="editor"):
        db.ask("x", editor=b"code")  # type: ignore[arg-type]
    for limit in (0, -1):
        with pytest.raises(InvalidInput, match="limit"):
            db.ask("x", limit=limit)
    with pytest.raises(SettingsError, match=r"llm\.model"):
        opened(llm__provider="openai").ask("lease")


def test_a_question_goes_to_documentation_then_to_memory_then_to_everything() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="m", collection="mail", text="The barrel was filled in May.")])
        assert "in May" in db.ask("when was the barrel filled").text
        db.add_turns([sennit.Turn(text="I filled the barrel in June.", session="s", speaker="Ana")])
        assert "June" in db.ask("when was the barrel filled").text
        db.add([Record(id="d", collection="docs", text="Barrels are filled in July.")])
        assert "July" in db.ask("when was the barrel filled").text


def test_the_choice_of_a_recipe_shows_nothing_of_hidden_documentation() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="d", collection="docs", text="Barrels are filled in July.", sensitivity="private")])
        db.add_turns([sennit.Turn(text="I filled the barrel in June.", session="s", speaker="Ana")])
        assert "June" in db.ask("when was the barrel filled").text
