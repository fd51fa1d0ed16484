"""The words of a question that are worth finding exactly: quoted, code, names, then what is rare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from sennit.analysis import _tables as tables
from sennit.analysis import is_stop

MAX_KEYWORD: Final = 200
"""Characters; what stands between marks and is longer is no quotation."""

MAX_QUERY: Final = 20_000
"""Characters that are looked at: a pasted page is a question too, but its cost has a limit."""

COMMON: Final = 0.5
"""Share of records above which a word says nothing, unless there is no other."""

Rarity = Callable[[str], float]
"""The share of records that hold a word, from 0 (none that we know of) to 1."""

ASKING: Final = frozenset(
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
"""What questions are made of beside the stop words; left out wherever it stands."""

ORDERS: Final = frozenset(
    """
    check compare count discuss enumerate fetch get give go grep identify investigate list look looking make open
    outline print provide read recall remind return say search see summarise summarize trace walk work works
    """.split()
)
"""Left out where a request begins with it (`list the users`), and kept elsewhere (`the linked list`)."""

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
"""Articles, prepositions and question words of other languages, if they are no words of English. Left out in lower
case, or where they begin a sentence; frequent words that are not here are known by their share of the records."""

OPERATORS: Final = frozenset({"AND", "OR", "NOT"})

_UNUSABLE: Final = re.compile("[\0\ud800-\udfff]")
# Marks that are never closed must not be looked for to the end of the text, again and again.
_INSIDE: Final = f"{{1,{MAX_KEYWORD}}}"
_QUOTED: Final = re.compile(
    rf'"([^"\n]{_INSIDE})"|“([^“”\n]{_INSIDE})”|„([^„“”\n]{_INSIDE})[“”]|«([^«»\n]{_INSIDE})»|'
    rf"「([^「」\n]{_INSIDE})」|『([^『』\n]{_INSIDE})』|(?<!\w)‘([^‘\n]{_INSIDE}?)’(?!\w)|"
    rf"(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w)){_INSIDE})'(?!\w)"
)
_BACKTICKED: Final = re.compile(rf"(`{{1,3}})(?!`)([^`\n]{_INSIDE})\1(?!`)")
_TOKEN: Final = re.compile(r"[^\s()\[\]{}<>,;\"“”„«»!?¡¿…。、，？！：；「」『』（）`|]+")
_WHOLE: Final = 4
"""Characters of a run without spaces that may be one word."""
_SENTENCE_END: Final = re.compile(r"[.?!…\n。？！]")
_POSSESSIVE: Final = re.compile(r"['’]s?\Z")
_JOINED: Final = re.compile(r"\w(?:[._@/\\=#$]|::|->)+\w|\A(?:--?|[@#$~.]|\.{0,2}/)\w|\A[A-Za-z](?:\+\+|#)\Z")
"""Words that something other than a space or a hyphen joins; options, paths, decorators; C++ and C#."""
_CAMEL: Final = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2,}")
_PARTICLE: Final = re.compile("(?:에서|에게|으로|까지|부터|하고|이나|[을를이가은는에의로와과도만])\\Z")
"""What Korean hangs on a noun."""
_CHINESE_GLUE: Final = re.compile(
    "为什么|什么时候|什么|怎么样|怎么办|怎么|怎样|如何|为何|哪里|哪个|哪些|哪儿|多少|是否|是不是|有没有|可不可以|可以|"
    "能不能|我们|你们|他们|它们|这个|那个|这些|那些|请问|告诉|(?<!目)的(?!确)|了(?!解)|[吗呢吧啊]"
)
"""What Chinese asks with and joins with."""


class _Word(NamedTuple):
    """A token of the question."""

    text: str
    opens: bool
    """Whether a sentence begins with it."""
    called: bool
    """Whether brackets follow at once, as in f(x)."""


def extract_keywords(query: str, rarity: Rarity | None = None, limit: int = 8) -> tuple[str, ...]:
    """The keywords of a question, the most telling first, as they are written there.

    Quoted phrases come first, then what looks like code, then capitalised names, then the other words, the rarest
    first. A word that no known record holds comes last: it may be in a file that is not indexed. Without `rarity`
    these words stand in the order of the question.
    """
    query = _UNUSABLE.sub(" ", query[:MAX_QUERY].replace("\r", "\n"))
    phrases, rest = _taken(_QUOTED, query)
    code, rest = _taken(_BACKTICKED, rest)
    words = list(_words(rest))
    shouted = not any(character.islower() for character in rest)
    code += [word.text for word in words if _is_code(word, shouted=shouted)]
    plain = [word for word in words if not _is_code(word, shouted=shouted)]
    names, others = _names(plain, shouted=shouted)
    found = [*phrases, *code, *names, *_ranked(others, rarity)]
    if not found:
        found = [word.text for word in words if not is_stop(_folded(word.text))] or query.strip().split("\n")
    distinct: dict[str, str] = {}
    for word in found:
        if word.strip():
            distinct.setdefault(word.casefold(), word[:MAX_KEYWORD].strip())
    return tuple(distinct.values())[:limit]


def _taken(pattern: re.Pattern[str], text: str) -> tuple[list[str], str]:
    """What is inside the marks, and the text without it."""
    found = [next(filter(None, reversed(match.groups()))).strip() for match in pattern.finditer(text)]
    return [inside for inside in found if inside], pattern.sub(" , ", text)


def _words(text: str) -> Iterator[_Word]:
    end, opens = 0, True
    for match in _TOKEN.finditer(text):
        opens = opens or _SENTENCE_END.search(text, end, match.start()) is not None
        end = match.end()
        raw = (
            match[0].strip("'’‘*:^&%").rstrip(".-+=/\\").strip("'’‘*:") if match[0][-2:] != "++" else match[0]
        )
        token = _POSSESSIVE.sub("", raw)
        if token and any(map(str.isalnum, token)):
            yield _Word(token[:MAX_KEYWORD], opens, text[end : end + 1] == "(")
            opens = match[0].endswith((".", ":"))


def _is_code(word: _Word, *, shouted: bool) -> bool:
    text = word.text
    letters = text.replace("-", "")
    # Capitals alone: an acronym, also where it reads like a stop word (IT, US).
    if not shouted and len(letters) > 1 and letters.isalpha() and letters.isupper():
        return text not in OPERATORS
    if _is_glue(word):
        return False
    if word.called or _CAMEL.search(text) or _JOINED.search(text):
        return True
    return len(text) > 1 and any(map(str.isdigit, text))


def _is_glue(word: _Word) -> bool:
    """Whether a word only holds the question together."""
    folded = _folded(word.text)
    if all(is_stop(part) for part in folded.split("/")) or folded in ASKING:
        return True
    return (folded if word.opens else word.text) in FUNCTION_WORDS


def _names(words: list[_Word], *, shouted: bool) -> tuple[list[str], list[str]]:
    """Capitalised words inside a sentence, those that stand together as one, and the words that are none."""
    names: list[str] = []
    others: list[str] = []
    run: list[_Word] = []

    def close() -> None:
        # The first word of a sentence is capitalised anyway: it is a name when another one follows.
        if len(run) == 1 and run[0].opens:
            others.append(run[0].text)
        elif run:
            names.append(" ".join(word.text for word in run))
        run.clear()

    asked = False
    for word in words:
        if word.opens:
            close()
            asked = False
        if _is_glue(word) or (not asked and _folded(word.text) in ORDERS):
            close()
            continue
        asked = True
        if word.text[:1].isupper() and not shouted:
            run.append(word)
        else:
            close()
            others += _parts(word.text)
    close()
    return names, others


def _ranked(words: list[str], rarity: Rarity | None) -> list[str]:
    words = list(dict.fromkeys(word for word in words if len(word) > 1 or not word.isascii()))
    if rarity is None:
        return words
    shares = {word: rarity(word) for word in words}
    telling = [word for word in words if shares[word] <= COMMON] or words
    return sorted(telling, key=lambda word: (shares[word] <= 0, shares[word]))


def _folded(word: str) -> str:
    return word.lower().replace("'", "").replace("’", "")


@cache
def _scripts() -> re.Pattern[str]:
    """Runs of one script: Han, katakana, hiragana, Hangul, other scripts without spaces, and all others."""
    return re.compile(
        rf"(?P<han>[{tables.HAN}]+)|(?P<katakana>[\u30a1-\u30ff\uff66-\uff9f]+)|(?P<hiragana>[\u3041-\u309f]+)"
        rf"|(?P<hangul>[\u1100-\u11ff\u3131-\u318e\uac00-\ud7fb]+)|(?P<other>[{tables.UNSPACED}]+)|(?P<spaced>[^{tables.UNSPACED}]+)"
    )


def _parts(word: str) -> list[str]:
    """The keywords of a word: itself, or its pieces where words are not written apart."""
    if word.isascii():
        return [word]
    found = [(match.lastgroup, match[0]) for match in _scripts().finditer(word)]
    japanese = any(script in ("katakana", "hiragana") for script, _ in found)
    out: list[str] = []
    for script, run in found:
        if script == "han":
            out += [
                piece for part in ([run] if japanese else _CHINESE_GLUE.split(run)) for piece in _pairs(part)
            ]
        elif script == "hangul":
            noun = _PARTICLE.sub("", run)
            out.append(noun if len(noun) > 1 else run)
        elif script != "hiragana":
            out.append(run)
    longer = [part for part in out if len(part) > 1]
    return longer or out or [word]


def _pairs(run: str) -> list[str]:
    """A short run whole; of a longer one the pairs of characters, as most words have two and the index has them."""
    if len(run) <= _WHOLE:
        return [run] if run else []
    return [run[at : at + 2] for at in range(len(run) - 1)]
