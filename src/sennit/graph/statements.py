"""What a text states outright: its clauses, without questions, quotes, conditions, wishes and reported speech.

Chat is brought to one spelling first: "i’m", "im" and "I am" are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

MAX_SENTENCE_CHARACTERS: Final = 1000
"""A longer sentence is no chat; rules with several wildcards take long on it."""


class Clause(NamedTuple):
    """A clause up to the end of its sentence, and whether it says that this no longer holds."""

    text: str
    is_over: bool = False


_MARKS: Final = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "…": "."})
_SPELLINGS: Final = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        (r"\b[iI]'?m\b", "I am"),
        (r"\b[iI]'?ve\b", "I have"),
        (r"\b[iI]'d\b", "I would"),
        (r"\b[iI]'ll\b", "I will"),
        (r"\bi\b(?!\.)", "I"),
        (r"\b([Ww]e|[Yy]ou|[Tt]hey)'?re\b(?<!\bwere)", r"\1 are"),
        (r"\b([Ww]e|[Yy]ou|[Tt]hey)'?ve\b", r"\1 have"),
        (r"\b([Ww]e|[Yy]ou|[Tt]hey|[Hh]e|[Ss]he|[Ii]t)'d\b", r"\1 would"),
        (r"\b([Hh]e|[Ss]he|[Ii]t|[Tt]hat|[Tt]here)'s\b", r"\1 is"),
        (
            r"\b([A-Z]\w+)'s (?=(?:an?|allergic|called|vegan|vegetarian|living|based|married|now)\b)",
            r"\1 is ",
        ),
        (r"\b([A-Z]\w+)'s (?=(?:moved|joined|started|switched)\b)", r"\1 has "),
        (r"\b(?:wo|ca)n'?t\b", "cannot"),
        (r"\b(is|are|was|were|do|does|did|have|has|had|would|should|could)n'?t\b", r"\1 not"),
        (r"\b(have|has) got\b", r"\1"),
        (r"\bgonna\b", "going to"),
        (r"\bwanna\b", "want to"),
        (r"\banymore\b", "any more"),
        # A chat leaves out "I" where a sentence begins.
        (
            r"(?m:(^|[.!] )(?:[Jj]ust |[Ff]inally )?(?=(?i:quit|gave up|adopted|moved (?:back )?to|switched to|sold (?:the|my|our)|bought an?) ))",
            r"\1I ",
        ),
        # "We adopted a greyhound, she is called Juno"
        (
            r"(\b(?:adopted|rescued|got|bought|have) an? (?:[a-z-]+ ){0,3}?[a-z-]+)(?=[.,!;]| (?:with|from|for|in|on|today|last)\b)"
            r"([^.,!;]*)[.,!;]+ (?:[Hh]e|[Ss]he|[Ii]t) is (?:called|named) ([A-Z]\w+)",
            r"\1 called \3\2",
        ),
        # "The beta is not on 4 May but on 18 May" states the second date.
        (r"\b(am|is|are) not ((?:on |in |at )?)[^,.;]{1,40},? (?:but|it is|it's) (?:\2)?", r"\1 \2"),
    )
)
_QUOTE: Final = re.compile(r'"[^"\n]*\b(?:[Ii]|[Ww]e|[Mm]y|[Oo]ur)\b[^"\n]*(?:"|$)|(?m:^\s*>.*$)')
"""Somebody's words within those of the speaker."""

_SENTENCE_BREAK: Final = re.compile(
    r"(?<=[^\W_][.!?])(?<!\b[A-Z]\.)(?<!\b[DMS][rst]\.)(?<!\bMrs\.)(?<!\.\w\.)(?:[.!?]*[\"')]?)\s+|\n+|(?<=[.!?][.!?])\s+"
)
_QUESTION: Final = re.compile(
    r"(?:(?:and|but|so|hey|btw|oh)[, ]+)*(?:(?:did|do|does|have|has|had|is|are|am|was|were|can|could|would|will|should|may)"
    r" (?:not )?(?:I|you|we|he|she|it|they|any|the|my|your|this|that)|who|what|where|when|why|how|which|whose)\b",
    re.I,
)
"""How a question begins that has lost its question mark."""

_UNSURE: Final = re.compile(
    r"\b(?:if|unless|would|could|might|maybe|perhaps|wish|hope|hoping|imagine|almost|nearly|pretend\w*|dream|dreamed|dreamt"
    r"|said|says|told|asked|claims?|claimed|thinks?|think|thought|believes?|guess|heard|suppose|supposed|assume|reckons?"
    r"|probably|whether|wonder|when|should|joking|kidding|instead of|as though|feels? like|want|wanted|wants|once)\b",
    re.I,
)
"""What follows one of these in a sentence is not stated outright."""

_TAKEN_BACK: Final = re.compile(
    r"\b(?:if|unless|kidding|joking|in (?:my|a|the) dreams?|one day|some ?day"
    r"|I (?:think|guess|suppose|believe)|not (?:really|yet)|isn't it|or (?:maybe|so|something)|supposedly|allegedly)\b"
    r"|\bnot!",
    re.I,
)
"""A sentence that goes on so takes back what it stated."""

_CLAUSE: Final = re.compile(
    r"(?:^|(?:[,;:–—(]|\.\.| -) ?|\b(?:and|but|so|now|because|since|though|plus|From [A-Z]\w+) )"
)
_FILLERS: Final = re.compile(
    r"^(?:(?:yes|yeah|yep|yup|no|nope|well|oh|hey|hi|so|ok|okay|actually|today|now|also|btw|by the way|finally|wow|haha"
    r"|lol|honestly|anyway|fyi|tbh|good news|big news|news|sorry|correction|and|but|since (?:then|\w+day)|guess what"
    r"|last (?:week|month|year|spring|summer|autumn|winter|weekend)|yesterday|this (?:week|month|year|morning))[,!:]? )+",
    re.I,
)
_STARTS_STATEMENT: Final = (
    r"(?P<who>(?:I|[Ww]e)|(?:[Mm]y|[Oo]ur) [\w' -]{2,40}?|[A-Z][\w'-]*(?: [A-Z][\w'-]*)?)"
)
_OVER: Final = (
    re.compile(rf"{_STARTS_STATEMENT} (?:do|does) not (?P<rest>.+?) (?:any ?more|any longer)\b.*"),
    re.compile(rf"{_STARTS_STATEMENT} (?P<be>am|is|are) not (?P<rest>.+?) (?:any ?more|any longer)\b.*"),
    re.compile(rf"{_STARTS_STATEMENT} (?:(?P<be>am|is|are) )?no longer (?P<rest>.+)"),
    re.compile(
        rf"{_STARTS_STATEMENT} used to (?P<rest>(?:live|work|play|love|like|prefer|enjoy|eat|drink)\b.+)"
    ),
    re.compile(
        rf"{_STARTS_STATEMENT} (?:have |has )?(?:quit|stopped) (?P<rest>(?:living|working|playing|learning|eating|drinking)\b.+)"
    ),
)
"""Ways to say that something is over; without them, the clause states it."""


def plain_text(text: str) -> str:
    """Return a text in one spelling, without quoted speech."""
    text = text.translate(_MARKS)
    text = _QUOTE.sub(' "" ', text)
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    return text


def split_sentences(text: str) -> Iterator[str]:
    """Return the sentences of a plain text that state something."""
    for sentence in _SENTENCE_BREAK.split(text):
        sentence = " ".join(sentence.split())
        is_question = sentence.rstrip("\"') ").endswith("?") or _QUESTION.match(sentence)
        if sentence and len(sentence) <= MAX_SENTENCE_CHARACTERS and not is_question:
            yield sentence


def stated_clauses(sentence: str) -> Iterator[Clause]:
    """Return the clauses of a sentence that are stated outright, each up to the end of the sentence."""
    seen: set[str] = set()
    for start in _CLAUSE.finditer(sentence):
        if _UNSURE.search(sentence[: start.end()]):
            return
        text = _FILLERS.sub("", sentence[start.end() :].lstrip())
        if text in seen or _TAKEN_BACK.search(text):
            continue
        seen.add(text)
        for pattern in _OVER:
            if over := pattern.match(text):
                be = (over.groupdict().get("be") or "") + " "
                yield Clause(f"{over['who']} {be.lstrip()}{over['rest']}", is_over=True)
                break
        else:
            yield Clause(text)
