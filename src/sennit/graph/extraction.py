"""Extraction of facts that a text states outright, without a language model: few facts, but correct ones.

The rules read Markdown links, and sentences that begin with a name followed by one of a few verbs. They skip
questions, negations, conditions and statements about "she".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from sennit.analysis import is_stop_word
from sennit.facts import Fact, is_fact
from sennit.graph.common_words import COMMON_WORDS
from sennit.graph.names import MAX_NAME_WORDS
from sennit.records import Record

WEIGHT: Final = 0.5
"""The weight of an extracted fact; a fact that a user states has 1."""

MAX_FACTS_PER_RECORD: Final = 64

_CAPITAL: Final = "A-ZÀ-ÖØ-ÞΑ-ΫА-Я"
_WORD: Final = rf"[{_CAPITAL}][\w’'&-]*(?<!['’]s)(?<![-'’])"
_NAME: Final = rf"{_WORD}(?:[ ](?:(?:of|de|del|van|von|der|den|la|le|bin|al)[ ]){{0,2}}{_WORD}){{0,5}}"
_MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)
_MONTH: Final = "|".join(_MONTHS)

RELATIONS: Final = {
    "works at": r"works (?:at|for)|is employed (?:at|by)|work (?:at|for)",
    "lives in": r"lives in|moved to|live in",
    "born in": r"was born in",
    "studied at": r"studied at|graduated from",
    "married to": r"is married to|married",
    "child of": r"is the (?:son|daughter|child) of",
    "parent of": r"is the (?:father|mother|parent) of",
    "founded": r"founded|co-founded",
    "founded by": r"was (?:co-)?founded by",
    "directed by": r"was directed by",
    "written by": r"was written by",
    "member of": r"is a member of|joined",
    "part of": r"is (?:a )?part of",
    "located in": r"is (?:located|situated|based) in",
    "capital of": r"is the capital of",
    "manages": r"manages",
    "reports to": r"reports to",
    "owns": r"owns",
}
"""For each relation, the verb phrases that state it. They stand between two names, or between "I" and a name."""

_VERBS: Final = "|".join(f"(?P<r{at}>{verbs})" for at, verbs in enumerate(RELATIONS.values()))
_STATEMENT: Final = re.compile(
    rf"(?P<subject>{_NAME}|I) (?:{_VERBS}) (?:the )?(?P<object>{_NAME})(?P<rest>.*)"
)
_IS_A: Final = re.compile(
    rf"(?P<subject>{_NAME}) (?:is|was) an? (?P<object>[\w’'-]+(?: [\w’'-]+){{0,7}}?)(?= (?:who|which|that|and|but|in|on|at|from|by|with|for|since)\b|[,.;]|$)"
)
_LINK: Final = re.compile(
    r"(?<!!)\[([^\[\]\n]{1,200})\]\(([^()\s]{1,500})\)|\[\[([^\[\]|\n]{1,200})(?:\|[^\[\]\n]*)?\]\]"
)
_SENTENCE_BREAK: Final = re.compile(r"(?<=[^.][^\W\d_]{1}[.!?])\s+|\n+")
_DATE: Final = re.compile(
    rf"\b(?:(?P<y1>\d{{4}})-(?P<m1>\d\d)-(?P<d1>\d\d)|(?P<d2>\d{{1,2}}) (?P<m2>{_MONTH}) (?P<y2>\d{{4}})"
    rf"|(?P<m3>{_MONTH}) (?P<d3>\d{{1,2}}),? (?P<y3>\d{{4}})|(?P<m4>{_MONTH}) (?P<y4>\d{{4}}))\b"
)


def extract_stated_facts(record: Record) -> list[Fact]:
    """The facts that a record's text states. The record is their source."""
    if is_fact(record):
        return []
    found: dict[str, Fact] = {}
    for fact in (*_link_facts(record), *_statement_facts(record)):
        if len(found) < MAX_FACTS_PER_RECORD:
            found.setdefault(fact.id, fact)
    return list(found.values())


def _link_facts(record: Record) -> Iterator[Fact]:
    """For a page with a title: one `links to` fact per link, to the link's text."""
    if not record.title:
        return
    for text, target, wiki in _LINK.findall(record.text):
        name = " ".join((wiki or text).replace("*", "").replace("`", "").split())
        if name and name != record.title and not target.startswith("#"):
            yield _make_fact(record, record.title, "links to", name, "", record.timestamp)


def _statement_facts(record: Record) -> Iterator[Fact]:
    speaker = record.metadata.get("speaker")
    for sentence in _SENTENCE_BREAK.split(_LINK.sub(lambda link: link[1] or link[3], record.text)):
        sentence = " ".join(sentence.split())
        if len(sentence) > 1000 or sentence.endswith("?"):
            continue
        if stated := _STATEMENT.match(sentence):
            relation = next(name for at, name in enumerate(RELATIONS) if stated[f"r{at}"] is not None)
            subject = stated["subject"]
            if subject == "I":
                subject = speaker if isinstance(speaker, str) else ""
            object_ = stated["object"]
        elif (stated := _IS_A.match(sentence)) and stated["subject"] != "I":
            relation, subject, object_ = "is", stated["subject"], stated["object"]
        else:
            continue
        if _is_name(subject) and (relation == "is" or _is_name(object_)):
            when = _find_date(sentence) or record.timestamp
            words = sentence[stated.end("subject") :].strip(" .!")
            yield _make_fact(record, subject, relation, object_, words, when)


def _is_name(text: str) -> bool:
    first = text.split(" ")[0].casefold() if text else ""
    return (
        bool(first)
        and not is_stop_word(first)
        and first not in COMMON_WORDS
        and len(text.split()) <= MAX_NAME_WORDS
    )


def _find_date(sentence: str) -> datetime | None:
    """The only date in a sentence; None when there are several, or the date does not exist."""
    found = list(_DATE.finditer(sentence))
    if len(found) != 1:
        return None
    parts = found[0].groupdict()
    year, month, day = ([value for key, value in parts.items() if key[0] == kind and value] for kind in "ymd")
    number = int(month[0]) if month[0].isdecimal() else _MONTHS.index(month[0]) + 1
    try:
        return datetime(int(year[0]), number, int(day[0]) if day else 1, tzinfo=UTC)
    except ValueError:
        return None


def _make_fact(
    record: Record, subject: str, relation: str, object_: str, text: str, when: datetime | None
) -> Fact:
    return Fact(
        subject=subject,
        relation=relation,
        object=object_,
        text=text,
        weight=WEIGHT,
        timestamp=when,
        sources=(record.id,),
        sensitivity=record.sensitivity,
        scope=record.scope,
        tenant=record.tenant,
        metadata={"extracted": True},
    )
