"""Extraction of facts that a text states outright, without a language model: few facts, but correct ones.

The rules read Markdown links, and clauses that begin with a name, "I", "we" or "my sister Clara" and one of a few verbs.
They skip questions, negations, conditions, wishes and statements about "she". Each fact says in its metadata how sure
the rule is (`confidence`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, TypeAlias

from sennit.analysis import is_stop_word
from sennit.facts import Fact, is_fact
from sennit.graph.common_words import COMMON_WORDS
from sennit.graph.names import MAX_NAME_WORDS
from sennit.records import Record

WEIGHT: Final = 0.5
"""The weight of an extracted fact; a fact that a user states has 1."""

SURE: Final = 0.9
"""The confidence in a fact that a speaker states about themselves, or a text about somebody it names."""

LIKELY: Final = 0.7
"""The confidence in a rule whose verb has other meanings too."""

SINGLE_VALUED: Final = frozenset(("lives in", "works at", "birthday", "married to", "reports to"))
"""Relations that have one value at a time, as have all favourites: a new one supersedes the former."""

MAX_FACTS_PER_RECORD: Final = 64

_CAPITAL: Final = "A-ZÀ-ÖØ-ÞΑ-ΫА-Я"
_WORD: Final = rf"[{_CAPITAL}][\w’'&-]*(?<!['’]s)(?<![-'’])"
_NAME: Final = rf"{_WORD}(?:[ ](?:(?:of|de|del|van|von|der|den|la|le|bin|al)[ ]){{0,2}}{_WORD}){{0,5}}"
_MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)
_MONTH: Final = "|".join(_MONTHS)

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
"""For each relation, the verb phrases that state it. They stand between two names, or between "I" and a name."""

_VERBS: Final = "|".join(f"(?P<r{at}>{verbs})" for at, verbs in enumerate(RELATIONS.values()))
_STATEMENT: Final = re.compile(
    rf"(?P<subject>{_NAME}|I|We) (?:{_VERBS}) (?:the )?(?P<object>{_NAME})(?P<rest>.*)"
)
_IS_A: Final = re.compile(
    rf"(?P<subject>{_NAME}) (?:is|was) an? (?P<object>[\w’'-]+(?: [\w’'-]+){{0,7}}?)(?= (?:who|which|that|and|but|in|on|at|from|by|with|for|since)\b|[,.;]|$)"
)
_KIN: Final = (
    "mother|mum|mom|father|dad|sister|brother|son|daughter|wife|husband|partner|girlfriend|boyfriend|cousin|aunt|uncle"
    "|niece|nephew|grandmother|grandma|grandfather|grandpa|best friend|manager|boss|teacher|neighbour|neighbor"
)
_PET: Final = "cat|dog|puppy|kitten|rabbit|horse|parrot|hamster|tortoise|guinea pig|goldfish"
_PHRASE: Final = r"[\w’'-]+(?: [\w’'&-]+){0,4}?"
_STOP: Final = r"(?= (?:and|but|because|since|so|which|who|that|these days|now|nobody|with|by the way|when|while|for|to)\b|[,.;:!()]|$)"
_DAY_OF_YEAR: Final = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})|(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?)(?:,? \d{{4}})?"
_BIRTHDAY: Final = re.compile(
    rf"(?:(?P<my>[Mm]y)(?: (?P<kin>{_KIN}))?(?: (?P<named>{_NAME}))?(?P<s1>['’]s)?|(?P<subject>{_NAME})['’]s)"
    rf" birthday (?:is|falls)(?: on)?(?: the)? (?P<object>{_DAY_OF_YEAR})"
)
_PET_NAME: Final = re.compile(
    rf"(?:(?P<subject>I|We|{_NAME}) (?:adopted|got|have|bought|rescued)|[Mm]y|[Oo]ur)(?: an?| the| our| my)?"
    rf"(?: [a-z]+){{0,2}}? (?P<kind>{_PET})(?:,)? (?:is )?(?:called|named|whose name is) (?P<object>{_WORD})"
)
_ALLERGIC: Final = re.compile(
    rf"(?P<subject>I am|I['’]m|{_NAME} is) (?:badly |severely |very |really |also )*allergic to (?P<object>{_PHRASE}){_STOP}"
)
_PREFERS: Final = re.compile(
    rf"(?P<subject>I prefer|{_NAME} prefers) (?P<object>{_PHRASE}(?: to {_PHRASE})?){_STOP}"
)
_SWITCHED: Final = re.compile(
    rf"(?P<subject>I|{_NAME})(?: have|['’]ve| has)? switched to (?P<object>{_PHRASE}){_STOP}"
)
_FAVOURITE: Final = re.compile(
    rf"(?:(?P<my>[Mm]y)|(?P<subject>{_NAME})['’]s) favou?rite (?P<what>[a-z]+(?: [a-z]+)?) (?:is|are) (?P<object>{_NAME}|{_PHRASE}){_STOP}"
)
_PLAYED: Final = "piano|violin|viola|guitar|cello|flute|drums|clarinet|saxophone|trumpet|bass|tennis|chess|football|basketball"
_COUNTED: Final = r"(?:two|three|four|five|six|\d) (?:kids|children|sons|daughters|dogs|cats|brothers|sisters|siblings|pets)"
_LIKED: Final = r"[\w’'-]+(?: [\w’'&-]+){0,8}?"
_LIKED_STOP: Final = (
    r"(?=,? (?:and|but|because|cause|so|when|while|since|as|it['’]s|they['’]re|too)\b| ?[-–—,.;:!()]|$)"
)
_ADVERBS: Final = r"(?:really |absolutely |also |just |always |still |especially |totally |recently |now )*"
_SELF: Final[tuple[tuple[re.Pattern[str], str, float], ...]] = tuple(
    (re.compile(rf"(?:I|I['’]ve|I['’]m|I am|I have been) {_ADVERBS}{pattern}"), relation, sure)
    for pattern, relation, sure in (
        (rf"(?:love|like|enjoy) (?:also )?(?P<object>{_LIKED}){_LIKED_STOP}", "likes", LIKELY),
        (rf"(?:hate|dislike) (?P<object>{_LIKED}){_LIKED_STOP}", "dislikes", LIKELY),
        (rf"(?:come |originally )?from (?P<object>{_NAME})", "comes from", SURE),
        (rf"grew up in (?P<object>{_NAME})", "grew up in", SURE),
        (rf"play (?:the )?(?P<object>{_PLAYED}){_STOP}", "plays", SURE),
        (
            rf"(?:learning|studying) (?:to play )?(?:the )?(?P<object>{_NAME}|{_PLAYED}){_STOP}",
            "is learning",
            SURE,
        ),
        (rf"work as an? (?P<object>{_PHRASE}){_STOP}", "works as", SURE),
        (r"an? (?P<object>vegetarian|vegan|pescatarian)\b", "is a", SURE),
        (rf"have (?P<object>{_COUNTED})\b", "has", SURE),
    )
)
"""What a speaker says after "I", with the relation and the confidence."""

_KIN_NAME: Final = re.compile(
    rf"\b(?:[Mm]y|[Oo]ur) (?:older |younger |little |big |best |old |new )?(?P<kin>{_KIN}|friend|colleague|{_PET}),? (?P<object>{_WORD})(?:['’]s)?(?! [A-Z]|[\w’'-])"
)
_UNSURE: Final = re.compile(
    r"\b(?:not|never|no longer|if|unless|would|could|might|maybe|perhaps|wish|hope|hoping|imagine|want|wanted|wants|used"
    r" to|almost|nearly|pretend|dream|dreamed|said|says|thinks?|think|suppose|probably|whether|wonder|when|should|was"
    r" going|going to|plan|plans|planning|joking|instead of)\b|n['’]t\b",
    re.I,
)
"""A clause after one of these is not stated outright."""

_CLAUSE: Final = re.compile(r"(?:^|[,;:–—] |\b(?:and|but|so|now|From [A-Z]\w+) )")
_FILLERS: Final = re.compile(
    r"^(?:(?:yes|yeah|well|oh|hey|hi|so|actually|today|now|finally|wow|by the way|guess what)[,!]? )+", re.I
)
_NOT_OBJECTS: Final = frozenset(
    """
    a an all any anything both doing each every everything getting having he her hers him his how if in it its me my nothing
    not on one our seeing she so some something spending such that the their them these they this those to us we what
    when where which who you your yours being it's that's talking hearing being making helping knowing watching
    """.split()
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


def supersedes_former(fact: Fact) -> bool:
    """Whether a fact ends the former one of its subject with the same relation."""
    return fact.relation in SINGLE_VALUED or fact.relation.startswith("favourite ")


def _link_facts(record: Record) -> Iterator[Fact]:
    """For a page with a title: one `links to` fact per link, to the link's text."""
    if not record.title:
        return
    for text, target, wiki in _LINK.findall(record.text):
        name = " ".join((wiki or text).replace("*", "").replace("`", "").split())
        if name and name != record.title and not target.startswith("#"):
            yield _make_fact(record, record.title, "links to", name, "", record.timestamp)


def _statement_facts(record: Record) -> Iterator[Fact]:
    given = record.metadata.get("speaker")
    speaker = given if isinstance(given, str) else ""
    text = _LINK.sub(lambda link: link[1] or link[3], record.text)
    if speaker:
        text = text.removeprefix(f"{speaker}: ")
    for sentence in _SENTENCE_BREAK.split(text):
        sentence = " ".join(sentence.split())
        if len(sentence) > 1000 or sentence.endswith("?"):
            continue
        yield from _plain_facts(record, sentence, speaker)
        yield from _personal_facts(record, sentence, speaker)


def _clauses(sentence: str) -> Iterator[str]:
    """The clauses of a sentence that are stated outright, each up to the end of the sentence."""
    for start in _CLAUSE.finditer(sentence):
        if not _UNSURE.search(sentence[: start.end()]):
            yield _FILLERS.sub("", sentence[start.end() :])


_Stated: TypeAlias = tuple[str, str, str, str, float]
"""Subject, relation, object, text and confidence of a fact."""


def _who(subject: str | None, speaker: str) -> str:
    """The name that a subject means; empty if it is none."""
    word = re.split(r"[ '’]", subject or "I", maxsplit=1)[0]
    if word in ("I", "We", "My", "Our"):
        return speaker
    return subject if subject and _is_name(subject) else ""


def _read_relation(clause: str, speaker: str) -> _Stated | None:
    found = _STATEMENT.match(clause)
    if found is None or found["subject"] not in ("I", "We") or not _is_object_name(found["object"]):
        return None
    relation = next(name for at, name in enumerate(RELATIONS) if found[f"r{at}"] is not None)
    return speaker, relation, found["object"], f"{relation} {found['object']}", SURE


def _read_birthday(clause: str, speaker: str) -> _Stated | None:
    found = _BIRTHDAY.match(clause)
    if found is None:
        return None
    mine = found["named"] or (f"{speaker}'s {found['kin']}" if found["kin"] and speaker else speaker)
    subject = mine if found["my"] else _who(found["subject"], speaker)
    return subject, "birthday", found["object"], f"birthday is {found['object']}", SURE


def _read_pet(clause: str, speaker: str) -> _Stated | None:
    found = _PET_NAME.match(clause)
    if found is None:
        return None
    relation = f"has a {found['kind']}"
    return (
        _who(found["subject"], speaker),
        relation,
        found["object"],
        f"{relation} called {found['object']}",
        SURE,
    )


def _read_taste(clause: str, speaker: str) -> _Stated | None:
    """Read allergies, preferences and favourites."""
    if found := _ALLERGIC.match(clause):
        subject = _who(re.sub(r"(?: is| am|['’]m)$", "", found["subject"]), speaker)
        return subject, "allergic to", found["object"], f"is allergic to {found['object']}", SURE
    if found := _PREFERS.match(clause):
        subject = _who(re.sub(r" prefers?$", "", found["subject"]), speaker)
        return subject, "prefers", found["object"], f"prefers {found['object']}", LIKELY
    if found := _SWITCHED.match(clause):
        subject = _who(found["subject"], speaker)
        return subject, "switched to", found["object"], f"switched to {found['object']}", LIKELY
    if found := _FAVOURITE.match(clause):
        relation = f"favourite {found['what']}"
        subject = speaker if found["my"] else _who(found["subject"], speaker)
        return subject, relation, found["object"], f"{relation} is {found['object']}", SURE
    return None


def _read_self(clause: str, speaker: str) -> _Stated | None:
    for pattern, relation, confidence in _SELF:
        if found := pattern.match(clause):
            return speaker, relation, found["object"], f"{relation} {found['object']}", confidence
    return None


_READERS: Final = (_read_relation, _read_birthday, _read_pet, _read_taste, _read_self)
"""Each reads one kind of statement from the beginning of a clause; the first that finds one counts."""


def _personal_facts(record: Record, sentence: str, speaker: str) -> Iterator[Fact]:
    """What people say about themselves and their families, in any clause of a sentence."""
    when = _find_date(sentence) or record.timestamp

    def make(subject: str, relation: str, object_: str, text: str, confidence: float) -> Iterator[Fact]:
        object_ = object_.strip(" .!")
        words = object_.casefold().split()
        if subject and words and words[0] not in _NOT_OBJECTS:
            yield _make_fact(record, subject, relation, object_, text, when, confidence)

    for clause in _clauses(sentence):
        for read in _READERS:
            if stated := read(clause, speaker):
                yield from make(*stated)
                break
    for found in _KIN_NAME.finditer(sentence):
        kin, name = found["kin"], found["object"]
        if name.casefold() not in COMMON_WORDS and not is_stop_word(name.casefold()):
            relation = f"has a {kin}" if re.fullmatch(_PET, kin) else kin
            yield from make(speaker, relation, name, f"{relation} called {name}", LIKELY)


def _plain_facts(record: Record, sentence: str, speaker: str) -> Iterator[Fact]:
    """What a sentence that begins with a name states about it; in conversations, "X is a Y" is mostly an opinion."""
    if stated := _STATEMENT.match(sentence):
        relation = next(name for at, name in enumerate(RELATIONS) if stated[f"r{at}"] is not None)
        subject, object_ = stated["subject"], stated["object"]
        if subject in ("I", "We"):
            return
    elif not speaker and (stated := _IS_A.match(sentence)) and stated["subject"] != "I":
        relation, subject, object_ = "is", stated["subject"], stated["object"]
    else:
        return
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


def _is_object_name(text: str) -> bool:
    """Whether capitals in the middle of a sentence are a name: "Radio Bremen" is one, "Time" is none."""
    return any(_is_name(word) for word in text.split(" "))


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
