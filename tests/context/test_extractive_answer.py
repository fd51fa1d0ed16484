"""Answers that consist of retrieved sentences."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from sennit.context.citations import filter_citations
from sennit.context.extractive_answer import (
    MAX_STATEMENTS,
    NOTHING_FITS,
    answer_from,
    format_answer,
    select_statements,
)
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
    found = answer_from(query, passages, even)
    assert found is not None
    return found.text


def test_the_sentence_that_has_the_words_of_the_question_answers_with_its_citation() -> None:
    text = "Jobs are kept in tables. A lease ends after thirty seconds. Workers are processes."
    assert answer("when does a lease end?", passage(1, "Nothing here."), passage(2, text)) == (
        "A lease ends after thirty seconds. [1]"
    )


def test_headings_and_markup_are_not_quoted() -> None:
    text = (
        "# Lease settings\n\nLease\n-----\n\n```toml\nlease = 30\n```\n\n<Note lease>\n\n!!! info\n\n"
        "> [!TIP]\n> The lease is renewed\n> every ten seconds.\n"
    )
    assert answer("lease renewed", passage(1, text)) == "The lease is renewed every ten seconds. [1]"


def test_the_number_that_was_asked_for_comes_before_other_sentences() -> None:
    text = "The lease has nothing to do with how long a job may take. A lease is 30 seconds."
    assert answer("how long is a lease?", passage(1, text)) == "A lease is 30 seconds. [1]"


def test_a_row_of_a_table_is_a_statement_with_the_heads_of_its_columns() -> None:
    text = "| setting | default |\n|---|---:|\n| `lease` | 30 |\n| `retries` | 5 |\n"
    assert answer("how many retries?", passage(1, text)) == "setting: `retries`; default: 5 [1]"


def test_a_sentence_that_introduces_a_list_comes_with_the_list() -> None:
    text = "Something else. Values are read in this order:\n\n- From the environment,\n  always.\n\n- From a file [3].\n\nDone."
    assert answer("in which order are values read?", passage(1, text)) == (
        "Values are read in this order: [1]\n- From the environment, always.\n- From a file (3)."
    )


def test_a_section_that_is_only_a_list_is_introduced_by_its_heading() -> None:
    record = Record(
        id="1", text="## Answers\n\n- Refuse.\n- Wait.", title="Backpressure > Answers", kind="SECTION"
    )
    found = answer_from("what are the answers to backpressure?", [PromptPassage(1, record, 1.0)], even)
    assert found is not None
    assert found.text == "Answers: [1]\n- Refuse.\n- Wait."


def test_a_sentence_that_announces_code_comes_with_the_code() -> None:
    text = "Change it for one task:\n\n```python title='x'\nbackoff(base[1])\n```\n\nThat is all."
    expected = "Change it for one task: [1]\n```python\nbackoff(base[1])\n```"
    assert answer("change the task", passage(1, text)) == expected
    assert filter_citations(expected, [1])[0] == expected


def test_code_that_follows_soon_answers_a_question_that_asks_how() -> None:
    text = "Adds several tasks to a response.\n\n```python\nadd()\n```"
    assert answer("how do I add several tasks?", passage(1, text)).endswith("[1]\n```python\nadd()\n```")
    assert answer("what adds several tasks?", passage(1, text)).endswith("[1]")


def test_an_entity_of_code_answers_with_its_doc_and_not_its_body() -> None:
    body = 'def login(name):\n    """Signs a visitor in."""\n    return check(name)'
    one = passage(
        1,
        body,
        1.0,
        "function",
        signature="def login(name):",
        doc="Signs a visitor in.",
        qualified="Session.login",
    )
    assert answer("who signs a visitor in", one) == "`Session.login`: Signs a visitor in. [1]"
    assert "return" not in answer("what does login do", one)


def test_a_finished_example_answers_with_its_description_and_never_its_code() -> None:
    one = passage(
        4, "Charge\n\nUses a key\n\ncharge(key)", kind="EXAMPLE", description="Uses the idempotency key."
    )
    assert answer("idempotency key", one) == "Title 4: Uses the idempotency key. [1]"


def test_a_question_that_no_passage_covers_is_not_answered() -> None:
    text = answer("how tall is a zebra in Kenya?", passage(1, "A lease ends. It is short."))
    assert text == f"{NOTHING_FITS} The nearest passage: Title 1 [1]"


def test_a_passage_that_is_near_in_meaning_answers_without_the_words() -> None:
    found = answer_from(
        "how do I make the echo last", [passage(1, "Higher values repeat longer.")], even, 0.4
    )
    assert found is not None
    assert found.text == "Higher values repeat longer. [1]"


def test_citations_are_numbered_from_1_in_the_order_of_the_answer() -> None:
    low, high = passage(3, "The backoff is long.", 0.9), passage(7, "Really, the lease is short.", 1.0)
    found = answer_from("lease backoff", [low, high], even)
    assert found is not None
    assert found.text == "Really, the lease is short. [1]\nThe backoff is long. [2]"
    assert [(one.number, one.id) for one in found.citations] == [(1, "7"), (2, "3")]


def test_a_better_passage_and_an_earlier_sentence_go_first() -> None:
    low, high = passage(1, "The lease is long.", 0.2), passage(2, "Really, the lease is short.", 1.0)
    assert select_statements("lease", [low, high], even)[0].passage is high
    (first, *_) = select_statements(
        "lease", [passage(1, "A lease is one thing. The lease is another.")], even
    )
    assert first.text == "A lease is one thing."


def test_a_second_sentence_says_something_new() -> None:
    text = "Retries double. Retries double again. The backoff has a limit."
    found = select_statements("retries backoff", [passage(1, text)], even, max_statements=2)
    assert [one.text for one in found] == ["Retries double.", "The backoff has a limit."]


def test_a_number_in_brackets_of_the_text_itself_is_no_citation() -> None:
    said = answer("lease", passage(1, "The lease [2] ends, see [1, 3] and [^4]."))
    assert said == "The lease (2) ends, see (1, 3) and (4). [1]"


def test_an_open_backtick_hides_no_citation() -> None:
    said = answer("lease renewal", passage(1, "The `lease ends."), passage(2, "A `renewal` begins` here."))
    assert said == "The 'lease ends. [1]\nA `renewal` begins' here. [2]"


@example(texts=["`e", "`e"], query="")
@given(
    st.lists(st.text(st.sampled_from("ab .!?\n`#|-[1]lease"), max_size=80), max_size=5), st.text(max_size=20)
)
def test_every_citation_exists_and_they_count_from_1(texts: list[str], query: str) -> None:
    passages = [passage(n, text) for n, text in enumerate(texts, 1)]
    statements = select_statements(query, passages, even)
    made = format_answer(statements)
    kept, cited, removed = filter_citations(made.text, [one.number for one in made.citations])
    assert removed == ()
    assert len(statements) <= MAX_STATEMENTS
    assert [one.number for one in made.citations] == list(range(1, len(made.citations) + 1))
    assert set(cited) == {one.number for one in made.citations}
    assert kept.count("\n") == made.text.count("\n")
