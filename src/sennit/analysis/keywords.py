"""Extracts the keywords of a question for an exact search: quoted phrases, code, names, then rare words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from sennit.analysis import is_stop_word
from sennit.analysis import tables as tables

MAX_KEYWORD_CHARS: Final = 200
"""A longer text between quotation marks is not a quotation."""

MAX_QUERY_CHARS: Final = 20_000
"""The rest of a query is ignored. This limits the cost of a whole pasted page."""

COMMON_SHARE: Final = 0.5
"""A word in a larger share of the records is not a keyword, unless there is no other word."""

DocumentShare = Callable[[str], float]
"""Returns the share of records that contain a word, from 0 (none) to 1."""

QUESTION_WORDS: Final = frozenset(
    """
    actually also anybody anyone anything currently describe describes described difference differences exactly explain explained explains
    find finds finding happen happened happening happens help helps instead just know known knows like locate maybe
    mean meaning means mention mentioned mentions need needed needs please possible show showing shown shows somebody
    someone something somehow somewhere tell telling tells thanks thing things told want wanted wants way ways wonder
    about after all another anywhere because before between both each either else every everything few whats heres
    how'd its lets many more most much neither never often only other out others over same several since still though
    through under until up us use used uses using very via vs whether while within without yet ever e.g i.e etc
    """.split()
)
"""Frequent words of questions that are not stop words. They are never keywords."""

REQUEST_VERBS: Final = frozenset(
    """
    check compare count discuss enumerate fetch get give go grep identify investigate list look looking make open
    outline print provide read recall remind return say search see summarise summarize trace walk work works
    """.split()
)
"""Not keywords at the start of a request (`list the users`), but elsewhere (`the linked list`)."""

FUNCTION_WORDS: Final = frozenset(
    """
    wie warum wieso weshalb wo wohin woher wann welche welcher welches welchen wer wen wem wessen ist sind der das den
    dem des ein eine einen einem einer und oder nicht mit für von zu zum zur im auf bei nach aus ich wir sie mein meine
    où pourquoi quand quel quelle quels quelles qui quoi combien est sont la le les un une du de et ou dans sur pour avec
    je nous vous mon ma mes il elle ce cette ces
    cómo qué dónde cuándo cuál cuáles quién quiénes cuánto cuánta es el los las una unos del al y con para por en mi
    dove perché quando quale quali cosa è sono lo gli di da nel nella della degli
    como onde quem qual quais porquê são uma dos das
    hoe waar waarom wanneer welke zijn het een voor
    어디 어디서 어디에 어느 얼마나 무엇 무엇을 무엇이 무슨 누가 누구 언제 왜 어떻게 수 있나요 있습니까 인가요 하나요 되나요
    """.split()
)
"""Articles, prepositions and question words of other languages that are not English words. They are not keywords in
lower case or at the start of a sentence. Other frequent words are recognised by their share of the records."""

OPERATORS: Final = frozenset({"AND", "OR", "NOT"})

_UNUSABLE: Final = re.compile("[\0\ud800-\udfff]")
# The bound keeps the scan linear if the text has many opening marks that are never closed.
_INSIDE: Final = f"{{1,{MAX_KEYWORD_CHARS}}}"
_QUOTED: Final = re.compile(
    rf'"([^"\n]{_INSIDE})"|“([^“”\n]{_INSIDE})”|„([^„“”\n]{_INSIDE})[“”]|«([^«»\n]{_INSIDE})»|'
    rf"「([^「」\n]{_INSIDE})」|『([^『』\n]{_INSIDE})』|(?<!\w)‘([^‘\n]{_INSIDE}?)’(?!\w)|"
    rf"(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w)){_INSIDE})'(?!\w)"
)
_BACKTICKED: Final = re.compile(rf"(`{{1,3}})(?!`)([^`\n]{_INSIDE})\1(?!`)")
_TOKEN: Final = re.compile(r"[^\s()\[\]{}<>,;\"“”„«»!?¡¿…。、，？！：；「」『』（）`|]+")
_MAX_WHOLE_RUN_CHARS: Final = 4
"""A longer run without spaces is not taken as one word."""
_SENTENCE_END: Final = re.compile(r"[.?!…\n。？！]")
_POSSESSIVE: Final = re.compile(r"['’]s?\Z")
_JOINED: Final = re.compile(r"\w(?:[._@/\\=#$]|::|->)+\w|\A(?:--?|[@#$~.]|\.{0,2}/)\w|\A[A-Za-z](?:\+\+|#)\Z")
"""Words joined by something other than a space or a hyphen; options, paths, decorators; C++ and C#."""
_CAMEL: Final = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2,}")
_PARTICLE: Final = re.compile("(?:에서|에게|으로|까지|부터|하고|이나|[을를이가은는에의로와과도만])\\Z")
"""Particles that Korean attaches to a noun."""
_CHINESE_FUNCTION_WORD: Final = re.compile(
    "为什么|什么时候|什么|怎么样|怎么办|怎么|怎样|如何|为何|哪里|哪个|哪些|哪儿|多少|是否|是不是|有没有|可不可以|可以|"
    "能不能|我们|你们|他们|它们|这个|那个|这些|那些|请问|告诉|(?<!目)的(?!确)|了(?!解)|[吗呢吧啊]"
)
"""Chinese question words and particles."""


class _Word(NamedTuple):
    """A token of the question."""

    text: str
    starts_sentence: bool
    is_call: bool
    """Whether a parenthesis follows directly, as in f(x)."""


def extract_keywords(
    query: str, document_share: DocumentShare | None = None, limit: int = 8
) -> tuple[str, ...]:
    """Return the keywords of a question as they are written there, the most specific first.

    Quoted phrases come first, then code, then capitalised names, then the other words, the rarest first. A word that
    no record contains comes last: it may be in a file that is not indexed. Without `document_share` the other words
    keep their order.
    """
    query = _UNUSABLE.sub(" ", query[:MAX_QUERY_CHARS].replace("\r", "\n"))
    phrases, rest = _extract_marked(_QUOTED, query)
    code, rest = _extract_marked(_BACKTICKED, rest)
    words = list(_split_words(rest))
    all_caps = not any(character.islower() for character in rest)
    code += [word.text for word in words if _is_code(word, all_caps=all_caps)]
    plain = [word for word in words if not _is_code(word, all_caps=all_caps)]
    names, others = _separate_names(plain, all_caps=all_caps)
    keywords = [*phrases, *code, *names, *_sort_by_share(others, document_share)]
    if not keywords:
        content = [word.text for word in words if not is_stop_word(_fold(word.text))]
        keywords = content or query.strip().split("\n")
    distinct: dict[str, str] = {}
    for keyword in keywords:
        if keyword.strip():
            distinct.setdefault(keyword.casefold(), keyword[:MAX_KEYWORD_CHARS].strip())
    return tuple(distinct.values())[:limit]


def _extract_marked(pattern: re.Pattern[str], text: str) -> tuple[list[str], str]:
    """Return the parts of a text between marks, and the rest of the text."""
    parts = [next(filter(None, reversed(match.groups()))).strip() for match in pattern.finditer(text)]
    return [part for part in parts if part], pattern.sub(" , ", text)


def _split_words(text: str) -> Iterator[_Word]:
    end, starts_sentence = 0, True
    for match in _TOKEN.finditer(text):
        starts_sentence = starts_sentence or _SENTENCE_END.search(text, end, match.start()) is not None
        end = match.end()
        raw = (
            match[0].strip("'’‘*:^&%").rstrip(".-+=/\\").strip("'’‘*:") if match[0][-2:] != "++" else match[0]
        )
        token = _POSSESSIVE.sub("", raw)
        if token and any(map(str.isalnum, token)):
            yield _Word(token[:MAX_KEYWORD_CHARS], starts_sentence, text[end : end + 1] == "(")
            starts_sentence = match[0].endswith((".", ":"))


def _is_code(word: _Word, *, all_caps: bool) -> bool:
    text = word.text
    letters = text.replace("-", "")
    # A word in capitals is an acronym, even if it is spelled like a stop word (IT, US).
    if not all_caps and len(letters) > 1 and letters.isalpha() and letters.isupper():
        return text not in OPERATORS
    if _is_function_word(word):
        return False
    if word.is_call or _CAMEL.search(text) or _JOINED.search(text):
        return True
    return len(text) > 1 and any(map(str.isdigit, text))


def _is_function_word(word: _Word) -> bool:
    """Return whether a word says nothing about the topic of the question."""
    folded = _fold(word.text)
    if all(is_stop_word(part) for part in folded.split("/")) or folded in QUESTION_WORDS:
        return True
    return (folded if word.starts_sentence else word.text) in FUNCTION_WORDS


def _separate_names(words: list[_Word], *, all_caps: bool) -> tuple[list[str], list[str]]:
    """Return the names and the other words. Adjacent capitalised words are one name."""
    names: list[str] = []
    others: list[str] = []
    run: list[_Word] = []

    def close_run() -> None:
        # Every sentence starts with a capital, so its first word is a name only if another capitalised word follows.
        if len(run) == 1 and run[0].starts_sentence:
            others.append(run[0].text)
        elif run:
            names.append(" ".join(word.text for word in run))
        run.clear()

    request_started = False
    for word in words:
        if word.starts_sentence:
            close_run()
            request_started = False
        if _is_function_word(word) or (not request_started and _fold(word.text) in REQUEST_VERBS):
            close_run()
            continue
        request_started = True
        if word.text[:1].isupper() and not all_caps:
            run.append(word)
        else:
            close_run()
            others += _split_scripts(word.text)
    close_run()
    return names, others


def _sort_by_share(words: list[str], document_share: DocumentShare | None) -> list[str]:
    words = list(dict.fromkeys(word for word in words if len(word) > 1 or not word.isascii()))
    if document_share is None:
        return words
    shares = {word: document_share(word) for word in words}
    specific = [word for word in words if shares[word] <= COMMON_SHARE] or words
    return sorted(specific, key=lambda word: (shares[word] <= 0, shares[word]))


def _fold(word: str) -> str:
    return word.lower().replace("'", "").replace("’", "")


@cache
def _script_runs() -> re.Pattern[str]:
    """Match runs of one script: Han, katakana, hiragana, Hangul, other scripts without spaces, and all others."""
    return re.compile(
        rf"(?P<han>[{tables.HAN}]+)|(?P<katakana>[\u30a1-\u30ff\uff66-\uff9f]+)|(?P<hiragana>[\u3041-\u309f]+)"
        rf"|(?P<hangul>[\u1100-\u11ff\u3131-\u318e\uac00-\ud7fb]+)|(?P<other>[{tables.UNSPACED}]+)|(?P<spaced>[^{tables.UNSPACED}]+)"
    )


def _split_scripts(word: str) -> list[str]:
    """Return the keywords of a word: the word itself, or its pieces if its script has no spaces."""
    if word.isascii():
        return [word]
    runs = [(match.lastgroup, match[0]) for match in _script_runs().finditer(word)]
    japanese = any(script in ("katakana", "hiragana") for script, _ in runs)
    pieces: list[str] = []
    for script, run in runs:
        if script == "han":
            parts = [run] if japanese else _CHINESE_FUNCTION_WORD.split(run)
            pieces += [piece for part in parts for piece in _split_run(part)]
        elif script == "hangul":
            noun = _PARTICLE.sub("", run)
            pieces.append(noun if len(noun) > 1 else run)
        elif script != "hiragana":
            pieces.append(run)
    longer = [piece for piece in pieces if len(piece) > 1]
    return longer or pieces or [word]


def _split_run(run: str) -> list[str]:
    """Return a short run whole, and the pairs of characters of a longer one: most words have two characters."""
    if len(run) <= _MAX_WHOLE_RUN_CHARS:
        return [run] if run else []
    return [run[at : at + 2] for at in range(len(run) - 1)]
