"""Extraction of facts that a text states outright, without a language model: few facts, but correct ones.

The rules read Markdown links, plain statements such as "Priya works at Acme", and in turns of conversations
[what people say about themselves](personal_facts.py). They skip what is [not stated outright](statements.py). Each fact
says in its metadata how sure the rule is (`confidence`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from sennit.facts import Fact, FactEnding, is_fact
from sennit.graph.personal_facts import (
    DAY,
    NAME,
    SURE,
    Over,
    Stated,
    is_name,
    is_object_name,
    read_clause,
    read_names,
)
from sennit.graph.statements import plain_text, split_sentences, stated_clauses
from sennit.period_words import ENGLISH_MONTHS
from sennit.records import Record

WEIGHT: Final = 0.5
"""The weight of an extracted fact; a fact that a user states has 1."""

SINGLE_VALUED: Final = frozenset(
    """lives in|lives on|works at|works as|birthday|age|married to|reports to|goes by|flat|apartment|house|office|room|desk
    |address|phone number|shoe size|blood type|email|email address|nickname|locker|seat|postcode|zip code""".replace(
        "\n    ", ""
    ).split("|")
)
"""Relations that have one value at a time, as have all favourites and dates: a new one supersedes the former."""

SINGLE_VALUED_PREFIXES: Final = ("favourite ", "date of ")

MAX_FACTS_PER_RECORD: Final = 64

_MONTH: Final = "|".join(ENGLISH_MONTHS)

RELATIONS: Final = {
    "works at": r"(?:now )?works? (?:at|for)|is employed (?:at|by)|started (?:work|working|a (?:new )?job) (?:at|for|with)",
    "lives in": r"(?:now )?lives? in|(?:just |have |has |'ve )?moved (?:back )?to",
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
"""For each relation, the verb phrases that state it. They stand between two names."""

_VERBS: Final = "|".join(f"(?P<r{at}>{verbs})" for at, verbs in enumerate(RELATIONS.values()))
_STATEMENT: Final = re.compile(rf"(?P<subject>{NAME}) (?:{_VERBS}) (?:the )?(?P<object>{NAME})(?P<rest>.*)")
_IS_A: Final = re.compile(
    rf"(?P<subject>{NAME}) (?:is|was) an? (?P<object>[\w’'-]+(?: [\w’'-]+){{0,7}}?)(?= (?:who|which|that|and|but|in|on|at|from|by|with|for|since)\b|[,.;]|$)"
)
_LINK: Final = re.compile(
    r"(?<!!)\[([^\[\]\n]{1,200})\]\(([^()\s]{1,500})\)|\[\[([^\[\]|\n]{1,200})(?:\|[^\[\]\n]*)?\]\]"
)
_DATE: Final = re.compile(
    rf"\b(?:(?P<y1>\d{{4}})-(?P<m1>\d\d)-(?P<d1>\d\d)|(?P<d2>\d{{1,2}}) (?P<m2>{_MONTH}) (?P<y2>\d{{4}})"
    rf"|(?P<m3>{_MONTH}) (?P<d3>\d{{1,2}}),? (?P<y3>\d{{4}})|(?P<m4>{_MONTH}) (?P<y4>\d{{4}}))\b"
)


class Statements(NamedTuple):
    """What a text states: facts, and facts that are over."""

    facts: list[Fact]
    endings: list[FactEnding]


def extract_stated_facts(record: Record) -> list[Fact]:
    """The facts that a record's text states. The record is their source."""
    return read_statements(record).facts


def read_statements(record: Record, earlier: Sequence[Fact] = ()) -> Statements:
    """What a record's text states. `earlier` has the facts of the conversation so far, which it may correct."""
    if is_fact(record):
        return Statements([], [])
    facts: dict[str, Fact] = {}
    endings: dict[FactEnding, None] = {}
    for one in (*_link_facts(record), *_text_statements(record, earlier)):
        if isinstance(one, FactEnding):
            endings[one] = None
        elif len(facts) < MAX_FACTS_PER_RECORD:
            facts.setdefault(one.id, one)
    return Statements(list(facts.values()), list(endings))


def read_conversations(records: Iterable[Record]) -> Statements:
    """What the texts of records state, in the order of time, so that a turn can correct an earlier one."""
    facts: dict[str, Fact] = {}
    endings: list[FactEnding] = []
    said: dict[object, list[Fact]] = {}
    for record in sorted(records, key=_time_of):
        earlier = said.setdefault((record.tenant, record.parent), []) if record.parent else []
        found = read_statements(record, earlier)
        earlier += found.facts
        facts.update((fact.id, fact) for fact in found.facts)
        endings += found.endings
    return Statements(list(facts.values()), endings)


def supersedes_former(fact: Fact) -> bool:
    """Whether a fact ends the former one of its subject with the same relation."""
    return fact.relation in SINGLE_VALUED or fact.relation.startswith(SINGLE_VALUED_PREFIXES)


def _time_of(record: Record) -> datetime:
    return record.timestamp or datetime.min.replace(tzinfo=UTC)


def _link_facts(record: Record) -> Iterator[Fact]:
    """For a page with a title: one `links to` fact per link, to the link's text."""
    if not record.title:
        return
    for text, target, wiki in _LINK.findall(record.text):
        name = " ".join((wiki or text).replace("*", "").replace("`", "").split())
        if name and name != record.title and not target.startswith("#"):
            yield _make_fact(record, record.title, "links to", name, "", record.timestamp)


def _text_statements(record: Record, earlier: Sequence[Fact]) -> Iterator[Fact | FactEnding]:
    given = record.metadata.get("speaker")
    speaker = given if isinstance(given, str) else ""
    text = _LINK.sub(lambda link: link[1] or link[3], record.text)
    if speaker:
        text = text.removeprefix(f"{speaker}: ")
    for sentence in split_sentences(plain_text(text)):
        yield from _plain_facts(record, sentence, speaker)
        dated = _find_date(sentence) or record.timestamp
        for one in _personal_statements(sentence, speaker, earlier):
            if isinstance(one, Stated):
                # The date of a birth is not the time from which it is known.
                when = record.timestamp if one.relation == "birthday" else dated
                yield _make_fact(
                    record, one.subject, one.relation, one.object, one.text, when, one.confidence
                )
            elif dated is not None:
                yield FactEnding(one.subject, one.relations, one.object, dated, record.tenant)


def _personal_statements(sentence: str, speaker: str, earlier: Sequence[Fact]) -> Iterator[Stated | Over]:
    if corrected := _read_correction(sentence, earlier):
        yield corrected
        return
    for clause in stated_clauses(sentence):
        yield from read_clause(clause, speaker)
    yield from read_names(sentence, speaker)


_CORRECTION: Final = re.compile(
    rf"(?:(?:no|oops|wait|sorry|actually|correction)[,.:]? )*(?:it is|that is|I meant?|make that|it was)?(?: actually)?(?: on)?"
    rf" ?(?P<new>{DAY}|{NAME}),? (?:and )?not (?:on )?(?:the )?(?P<old>\w[\w ]*)\W*$",
    re.I,
)


def _read_correction(sentence: str, earlier: Sequence[Fact]) -> Stated | None:
    """Read "it's 5 May, not 4": the last fact of the conversation with the wrong value gets the right one."""
    found = _CORRECTION.match(sentence)
    if found is None:
        return None
    wrong = set(found["old"].casefold().split())
    for fact in reversed(earlier):
        if supersedes_former(fact) and wrong <= set(fact.object.casefold().split()):
            text = fact.text.replace(fact.object, found["new"])
            return Stated(fact.subject, fact.relation, found["new"], text, SURE)
    return None


def _plain_facts(record: Record, sentence: str, speaker: str) -> Iterator[Fact]:
    """What a sentence that begins with a name states about it; in conversations, "X is a Y" is mostly an opinion."""
    if stated := _STATEMENT.match(sentence):
        relation = next(name for at, name in enumerate(RELATIONS) if stated[f"r{at}"] is not None)
        subject, object_ = stated["subject"], stated["object"]
    elif not speaker and (stated := _IS_A.match(sentence)):
        relation, subject, object_ = "is", stated["subject"], stated["object"]
    else:
        return
    if is_name(subject) and (relation == "is" or is_object_name(object_)):
        when = _find_date(sentence) or record.timestamp
        words = sentence[stated.end("subject") :].strip(" .!")
        yield _make_fact(record, subject, relation, object_, words, when)


def _find_date(sentence: str) -> datetime | None:
    """The only date in a sentence; None when there are several, or the date does not exist."""
    found = list(_DATE.finditer(sentence))
    if len(found) != 1:
        return None
    parts = found[0].groupdict()
    year, month, day = ([value for key, value in parts.items() if key[0] == kind and value] for kind in "ymd")
    number = int(month[0]) if month[0].isdecimal() else ENGLISH_MONTHS.index(month[0]) + 1
    try:
        return datetime(int(year[0]), number, int(day[0]) if day else 1, tzinfo=UTC)
    except ValueError:
        return None


def _make_fact(
    record: Record,
    subject: str,
    relation: str,
    object_: str,
    text: str,
    when: datetime | None,
    confidence: float = SURE,
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
        metadata={"extracted": True, "confidence": confidence},
    )
