"""Keywords of the code in an editor: few, distinct, and specific."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.errors import InvalidInput
from sennit.ingest.editor import editor_keywords

TUNE = """\
// a comment with s("nothing")
setcpm(120/4)
$: stack(
  s("bd*2 <sd cp>, hh*8 ~ oh:3").bank("RolandTR909"),
  note("c3 eb3 <g3 bb3>").s('sawtooth').lpf(sine.range(200, 2000).slow(4)),
  chord("<C^7 A7b13>").voicing()
)
"""


def words(code: str, language: str | None = None, limit: int = 100) -> set[str]:
    return set(editor_keywords(code, language, limit=limit))


def test_strudel_has_banks_sounds_functions_and_notes() -> None:
    found = words(TUNE, "strudel")
    assert {"RolandTR909", "bd", "sd", "cp", "hh", "oh", "sawtooth"} <= found
    assert {"setcpm", "bank", "lpf", "sine", "range", "slow", "voicing", "stack"} <= found
    assert {"c3", "eb3", "g3", "bb3", "C^7", "A7b13"} <= found
    assert "nothing" not in found


def test_the_first_keywords_include_every_kind() -> None:
    first = editor_keywords(TUNE)
    assert len(first) == 10
    assert {"RolandTR909", "bd", "setcpm", "c3"} <= set(first)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('s("bd sd', {"bd", "sd"}),
        ('note("c3 e3', {"c3", "e3"}),
        ("$: sound(`bd\n  [hh hh]`", {"bd", "hh"}),
        ('s(cat("bd", "sd")).fast(', {"bd", "sd", "fast"}),
        ('s("bd(3,8) hh?0.5 ~ [cp,mt]!2")', {"bd", "hh", "cp", "mt"}),
        ('n("0 2").scale("C:minor")', {"scale", "C:minor"}),
        ('note("c#4 d-1 g")', {"c#4", "note"}),
    ],
)
def test_incomplete_strudel_has_keywords(code: str, expected: set[str]) -> None:
    assert expected <= words(code)


@pytest.mark.parametrize(
    ("language", "code", "expected", "missing"),
    [
        (
            "python",
            "from ferry import Queue, task\nimport asyncio\n\nclass Mailer(Base):\n    @task(retries=3)\n"
            "    async def send(self, to: Address) -> Receipt:\n        await self.queue.enqueue(to)\n",
            {"Queue", "task", "asyncio", "Mailer", "send", "Receipt", "enqueue"},
            {"self", "import", "await"},
        ),
        (
            "go",
            'package main\nimport "net/http"\ntype Server struct{}\nfunc (s *Server) Start() { http.ListenAndServe(":80", nil) }\n',
            {"http", "Server", "Start", "ListenAndServe"},
            {"func", "nil"},
        ),
        (
            "javascript",
            'import { useState } from "react";\nfunction App() { return fetchAll(useState(0)); }\n',
            {"useState", "react", "App", "fetchAll"},
            {"function", "return"},
        ),
        (
            "typescript",
            'import { Client } from "./client";\ninterface Options { size: number }\nexport const run = (c: Client) => c.connect();\n',
            {"Client", "Options", "connect"},
            {"interface", "number"},
        ),
        ("tsx", "export function Page() { return <Button onClick={() => save()} /> }", {"Page", "save", "Button"}, set()),
        ("rust", "use tokio::sync::Mutex;\nstruct Pool { m: Mutex<u8> }\nimpl Pool { fn take(&self) { self.m.lock(); } }\n", {"Mutex", "Pool", "take", "lock"}, {"self", "fn"}),
        ("java", "import java.util.List;\nclass Shop { void sell(Item item) { ledger.record(item); } }\n", {"List", "Shop", "sell", "record", "Item"}, {"void"}),
        ("c", '#include <stdio.h>\nstruct node { int x; };\nint walk(struct node *n) { return visit(n); }\n', {"node", "walk", "visit"}, {"int"}),
        ("cpp", "#include <vector>\nclass Grid { void fill() { rows.resize(3); } };\n", {"Grid", "fill", "resize"}, {"void"}),
        ("elixir", "defmodule Shop do\n  def sell(x), do: Enum.map(x, fn)\nend\n", {"Shop", "sell"}, set()),
    ],
)  # fmt: skip
def test_other_languages_have_functions_types_and_imports(
    language: str, code: str, expected: set[str], missing: set[str]
) -> None:
    found = words(code, language)
    assert expected <= found
    assert not missing & found


@pytest.mark.parametrize("language", ["python", "go", "rust", "cpp", "java", "tsx", "brainfuck", None])
def test_incomplete_code_has_keywords(language: str | None) -> None:
    assert "open_channel" in words("x = open_channel(broker, [1, 2", language)


def test_the_language_is_guessed_if_the_editor_gives_none() -> None:
    assert "RetryPolicy" in words("from ferry import RetryPolicy\n\ndef main():\n    pass\n")
    assert "ServeMux" in words("package main\n\nfunc main() {\n\tvar m http.ServeMux\n}\n")


def test_javascript_that_plays_patterns_is_strudel() -> None:
    assert "bd" in words('$: s("bd*4").bank("RolandTR808")', "javascript")
    assert "bd" not in words('const s = open("bd"); s.close();', "javascript")


@pytest.mark.parametrize("code", ["", "   \n\t\n"])
def test_an_empty_editor_has_no_keywords(code: str) -> None:
    assert editor_keywords(code) == ()


def test_keywords_are_distinct_regardless_of_case() -> None:
    assert editor_keywords("queue(Queue, QUEUE)", "python") == ("queue",)


def test_words_rare_in_the_corpus_come_first_and_unknown_words_last() -> None:
    shares = {"bd": 0.5, "RolandTR909": 0.01, "lpf": 0.2, "slow": 0.1}
    found = editor_keywords(TUNE, document_share=lambda word: shares.get(word, 0.0))
    assert found[:4] == ("RolandTR909", "slow", "lpf", "bd")
    assert len(found) == 10


def test_the_limit_is_applied_and_checked() -> None:
    assert len(editor_keywords(TUNE, limit=3)) == 3
    assert editor_keywords(TUNE, limit=0) == ()
    with pytest.raises(InvalidInput, match="must not be negative"):
        editor_keywords(TUNE, limit=-1)


@given(code=st.text(max_size=300), language=st.sampled_from([None, "strudel", "python", "rust", "nothing"]))
def test_any_text_has_at_most_ten_distinct_keywords(code: str, language: str | None) -> None:
    found = editor_keywords(code, language)
    assert len(found) <= 10
    assert len({word.casefold() for word in found}) == len(found)
    assert all(word in code for word in found)


@pytest.mark.parametrize(
    "code", ["(" * 50_000, '"' * 50_001, "a." * 50_000, "s(" * 30_000, "/*" * 30_000, "`" * 50_001]
)
def test_hostile_code_is_read_in_linear_time(code: str) -> None:
    for language in ("strudel", "python", ""):
        assert len(editor_keywords(code, language)) <= 10
