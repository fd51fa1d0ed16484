"""Answers that consist of retrieved sentences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sennit.context.citations import filter_citations
from sennit.context.extractive_answer import MAX_SENTENCES, NEAREST_HEADING, format_answer, select_sentences
from sennit.context.prompt import PromptPassage
from sennit.records import Json, Record


def passage(
    number: int, text: str, score: float = 1.0, kind: str = "SECTION", **metadata: Json
) -> PromptPassage:
    record = Record(id=str(number), text=text, title=f"Title {number}", kind=kind, metadata=metadata)
    return PromptPassage(number, record, score)


def even(_term: str) -> float:
    return 1.0


def answer(query: str, *passages: PromptPassage) -> str:
    return format_answer(select_sentences(query, passages, even))


def test_the_sentence_that_has_the_words_of_the_question_answers_with_its_citation() -> None:
    text = "Jobs are kept in tables. A lease ends after thirty seconds. Workers are processes."
    assert answer("when does a lease end?", passage(1, "Nothing here."), passage(2, text)) == (
        "A lease ends after thirty seconds. [2]"
    )


def test_code_headings_tables_and_markup_are_not_quoted() -> None:
    text = (
        "# Lease settings\n\nLease\n-----\n\n| lease | 30 |\n|---|---|\n\n```toml\nlease = 30\n```\n\n"
        "<Note lease>\n\n> [!TIP]\n> The lease is renewed\n> every ten seconds.\n\n- A lease ends by itself.\n"
    )
    said = answer("lease", passage(1, text)).splitlines()
    assert said == ["The lease is renewed every ten seconds. [1]", "A lease ends by itself. [1]"]


def test_a_finished_example_answers_with_its_description_and_never_its_code() -> None:
    one = passage(
        4, "Charge\n\nUses a key\n\ncharge(key)", kind="EXAMPLE", description="Uses the idempotency key."
    )
    assert answer("idempotency key", one) == "Title 4: Uses the idempotency key. [4]"


def test_an_answer_without_a_word_of_the_question_says_so() -> None:
    assert (
        answer("zebra", passage(1, "A lease ends. It is short.")) == f"{NEAREST_HEADING}\nA lease ends. [1]"
    )


def test_a_better_passage_and_an_earlier_sentence_go_first() -> None:
    low, high = passage(1, "The lease is long.", 0.2), passage(2, "Really, the lease is short.", 1.0)
    assert select_sentences("lease", [low, high], even)[0].passage is high
    (first, *_) = select_sentences("lease", [passage(1, "A lease is one thing. The lease is another.")], even)
    assert first.text == "A lease is one thing."


def test_a_second_sentence_says_something_new() -> None:
    text = "Retries double. Retries double again. The backoff has a limit."
    found = select_sentences("retries backoff", [passage(1, text)], even, max_sentences=2)
    assert [one.text for one in found] == ["Retries double.", "The backoff has a limit."]


def test_a_number_in_brackets_of_the_text_itself_is_no_citation() -> None:
    said = answer("lease", passage(1, "The lease [2] ends, see [1, 3] and [^4]."))
    assert said == "The lease (2) ends, see (1, 3) and (4). [1]"


@given(
    st.lists(st.text(st.sampled_from("ab .!?\n`#|-[1]lease"), max_size=80), max_size=5), st.text(max_size=20)
)
def test_every_line_is_cited_and_every_citation_exists(texts: list[str], query: str) -> None:
    passages = [passage(n, text) for n, text in enumerate(texts, 1)]
    said = format_answer(select_sentences(query, passages, even))
    kept, cited, removed = filter_citations(said, range(1, len(texts) + 1))
    assert removed == ()
    lines = [line for line in said.split("\n") if line and line != NEAREST_HEADING]
    assert len(lines) <= MAX_SENTENCES
    assert all(line.endswith("]") for line in lines)
    assert bool(lines) == bool(cited)
    assert kept.count("\n") == said.count("\n")
