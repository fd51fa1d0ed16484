"""The keywords of a question for an exact search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.analysis.keywords import MAX_KEYWORD_CHARS, extract_keywords
from sennit.folders.options import check_keywords

QUESTIONS: list[tuple[str, list[str]]] = [
    ("How does the pipeline handle a source that times out?", ["pipeline", "handle", "source", "times"]),
    ("What did I tell Priya about vacation?", ["Priya", "vacation"]),
    (
        'Where is "connection refused" raised in the HTTP client?',
        ["connection refused", "HTTP", "raised", "client"],
    ),
    ("Explain how `retry_after` is parsed", ["retry_after", "parsed"]),
    ("What does parseRetryAfter() return for a date?", ["parseRetryAfter", "date"]),
    ("find the login bug in auth.go", ["auth.go", "login", "bug"]),
    (
        "list all users of os.path.join in src/sennit/ingest/indexer.py",
        ["os.path.join", "src/sennit/ingest/indexer.py", "users"],
    ),
    ("How do I set MAX_RETRIES to 5?", ["MAX_RETRIES", "set"]),
    ("Which port does Postgres listen on, 5432 or 6432?", ["5432", "6432", "Postgres", "port", "listen"]),
    ("What's the difference between RRF and weighted fusion?", ["RRF", "weighted", "fusion"]),
    (
        "Who wrote the first compiler, Ada Lovelace or Grace Hopper?",
        ["Ada Lovelace", "Grace Hopper", "wrote", "first", "compiler"],
    ),
    ("How do I install Node.js 20 on Ubuntu?", ["Node.js", "20", "Ubuntu", "install"]),
    ("what is a linked list?", ["linked", "list"]),
    ("search for TODO comments", ["TODO", "comments"]),
    ("how does search work?", ["search", "work"]),
    ("Is there a --max-bytes option for sennit index?", ["--max-bytes", "option", "sennit", "index"]),
    ("Why is C++ slower than C# here?", ["C++", "C#", "slower"]),
    ("'single quoted phrase' and don't break", ["single quoted phrase", "break"]),
    ("When was the contract with Deutsche Bank signed?", ["Deutsche Bank", "contract", "signed"]),
    (
        "Show me the std::vector constructor taking an initializer_list",
        ["std::vector", "initializer_list", "constructor", "taking"],
    ),
    ("What changed in v2.3.1 since 2024-05-01?", ["v2.3.1", "2024-05-01", "changed"]),
    ("Does Priya's mother like the cross-encoder?", ["Priya", "mother", "cross-encoder"]),
    ("Ada Lovelace's notes", ["Ada Lovelace", "notes"]),
    ("the error E0308 in rustc", ["E0308", "error", "rustc"]),
    ("explain and/or logic in the read/write lock", ["read/write", "logic", "lock"]),
    ("Which env var names the file, e.g. $DOTENV_PATH?", ["$DOTENV_PATH", "env", "var", "names", "file"]),
    ("Who runs IT for the US office?", ["IT", "US", "runs", "office"]),
    ("cats AND dogs NOT birds", ["cats", "dogs", "birds"]),
    ("WHY IS THE BUILD FAILING", ["BUILD", "FAILING"]),
    ("Timeouts. Where are they configured?", ["Timeouts", "configured"]),
    ("Kubernetes pods keep restarting, please help", ["Kubernetes", "pods", "keep", "restarting"]),
    ("get_user(id) raises KeyError when id is None", ["get_user", "KeyError", "None", "id", "raises"]),
    ("mail from ana.lopez@example.com about the invoice", ["ana.lopez@example.com", "mail", "invoice"]),
    ("Wie hoch ist die Miete laut Mietvertrag?", ["Miete", "Mietvertrag", "hoch", "die", "laut"]),
    ("Où est la clé de la voiture ?", ["clé", "voiture"]),
    ("¿Dónde están las llaves del coche?", ["están", "llaves", "coche"]),
    ("где лежит ключ от машины?", ["где", "лежит", "ключ", "от", "машины"]),
    ("如何配置nginx服务器的日志轮转？", ["配置", "nginx", "服务器", "日志轮转"]),
    ("笔记本电脑丢失怎么办", ["笔记", "记本", "本电", "电脑", "脑丢", "丢失"]),
    ("検索エンジンの速度はどうやって測りますか？", ["検索", "エンジン", "速度"]),
    ("고춧가루와 마늘은 어디에 있나요?", ["고춧가루", "마늘"]),
    ("「型エラー」はどこで起きますか", ["型エラー", "起"]),
]


@pytest.mark.parametrize(("question", "expected"), QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_keywords_of_a_question(question: str, expected: list[str]) -> None:
    assert list(extract_keywords(question)) == expected


def test_rare_words_come_first_unknown_words_last_and_common_words_are_dropped() -> None:
    shares = {"hoch": 0.1, "die": 0.9, "laut": 0.02, "kaution": 0.0}
    found = extract_keywords("wie hoch ist die kaution laut", lambda word: shares[word])
    assert found == ("laut", "hoch", "kaution")


def test_a_common_word_is_kept_if_there_is_no_other() -> None:
    assert extract_keywords("the report", lambda _: 0.99) == ("report",)


def test_a_rare_word_comes_after_phrases_code_and_names() -> None:
    query = 'zebra "blue moon" with parse_date by Priya'
    assert extract_keywords(query, lambda _: 0.001) == ("blue moon", "parse_date", "Priya", "zebra")


def test_pairs_of_an_unspaced_run_are_sorted_by_rarity() -> None:
    shares = {"笔记": 0.1, "电脑": 0.05, "丢失": 0.01}
    found = extract_keywords("笔记本电脑丢失", lambda pair: shares.get(pair, 0.0), limit=3)
    assert found == ("丢失", "电脑", "笔记")


def test_keywords_are_distinct_and_limited() -> None:
    assert extract_keywords("alpha Beta beta ALPHA alpha gamma", limit=2) == ("ALPHA", "Beta")
    assert len(extract_keywords(" ".join(f"word{n}" for n in range(50)))) == 8


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("", ()),
        ("   ", ()),
        ("how to?", ("how to?",)),
        ("please tell me about it", ("please", "tell", "about")),
        ("???", ("???",)),
    ],
)
def test_a_question_of_function_words_keeps_some_of_them(question: str, expected: tuple[str, ...]) -> None:
    assert extract_keywords(question) == expected


@given(st.text() | st.text(alphabet="aB_. \"'`“”\n\r\0é中の한/-()?"))
def test_keywords_of_any_text_are_valid_for_a_file_search(query: str) -> None:
    found = extract_keywords(query)
    assert found == extract_keywords(query)
    assert bool(found) or not query.replace("\0", "").encode("utf-8", "ignore").decode().strip()
    assert all(len(keyword) <= MAX_KEYWORD_CHARS for keyword in found)
    if found:
        assert check_keywords(found) == found


@pytest.mark.parametrize("mark", ["'", '"a', "``a", "‘a ", "「", "„a", "a.", "A b ", "/-"])
def test_unclosed_marks_are_scanned_in_linear_time(mark: str) -> None:
    # With a scan to the end of the text for each mark, this would exceed the time limit of a test.
    assert len(extract_keywords(mark * 1_000_000)) <= 8
