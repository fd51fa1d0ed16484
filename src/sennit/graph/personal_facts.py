"""What people say about themselves, their families and others whom they name: rules for one clause.

A clause has a subject ("I", "my sister Clara", "Tom"), a verb phrase, and an object. Each rule has a verb phrase with its
relation, and a reader for what follows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from sennit.analysis import is_stop_word
from sennit.graph.common_words import COMMON_WORDS
from sennit.graph.names import MAX_NAME_WORDS
from sennit.graph.occupations import OCCUPATIONS
from sennit.graph.statements import Clause
from sennit.period_words import ENGLISH_MONTHS, ENGLISH_WEEKDAYS

SURE: Final = 0.9
"""The confidence in a fact that a speaker states about themselves, or a text about somebody it names."""

LIKELY: Final = 0.7
"""The confidence in a rule whose verb has other meanings too."""


class Stated(NamedTuple):
    """A fact that a clause states."""

    subject: str
    relation: str
    object: str
    text: str
    confidence: float


class Over(NamedTuple):
    """What a clause says is over: facts with one of the relations and this object, or any if it is empty."""

    subject: str
    relations: tuple[str, ...]
    object: str = ""


_CAPITAL: Final = "A-ZÀ-ÖØ-ÞΑ-ΫА-Я"
_WORD: Final = rf"(?!I\b)[{_CAPITAL}][\w’'&-]*(?<!['’]s)(?<![-'’])"
NAME: Final = rf"{_WORD}(?:[ ](?:(?:of|de|del|do|van|von|der|den|la|le|bin|al)[ ]){{0,2}}{_WORD}){{0,5}}"
"""Capitalised words, as a pattern."""

_PARENTS_AND_PARTNERS: Final = (
    "mother|mum|mom|father|dad|wife|husband|partner|girlfriend|boyfriend|fiancée|fiancé|fiancee|fiance"
)
_KIN: Final = (
    rf"{_PARENTS_AND_PARTNERS}|sister|brother|son|daughter|twin|cousin|aunt|uncle|niece|nephew|grandmother|grandma"
    "|grandfather|grandpa|grandson|granddaughter|stepmother|stepfather|mother-in-law|father-in-law|sister-in-law"
    "|brother-in-law|best friend|friend|colleague|flatmate|roommate|housemate|manager|boss|teacher|neighbour|neighbor"
    "|landlord|landlady|dentist|doctor|therapist"
)
_KINS: Final = "sisters|brothers|sons|daughters|kids|children|twins|cats|dogs|rabbits|parents|grandchildren"
_ONE_OF: Final = {"kids": "child", "children": "child", "grandchildren": "grandchild"}
_PET: Final = "cat|dog|puppy|kitten|rabbit|horse|pony|parrot|hamster|tortoise|guinea pig|goldfish|budgie|canary|hen|goat|ferret"
_KINDS_OF_PET: Final = {
    **dict.fromkeys(
        "greyhound terrier labrador poodle beagle spaniel collie dachshund husky bulldog retriever corgi whippet pug"
        " shepherd mongrel chihuahua dalmatian rottweiler setter puppy".split(),
        "dog",
    ),
    **dict.fromkeys("kitten tabby tomcat siamese".split(), "cat"),
    "pony": "horse",
}
"""The usual word, with which questions ask for them."""

_KIND_OF_KIN: Final = (
    r"(?:older |younger |little |big |best |old |new |late |elder |eldest |youngest |twin |step)?"
)
_MY: Final = r"(?:[Mm]y|[Oo]ur)"

_ADVERB: Final = (
    r"(?:(?:now|currently|just|recently|also|still|finally|already|actually|really|officially|always|absolutely|especially"
    r"|totally|both|all|mostly|usually|definitely|certainly|badly|severely|very|so|originally|only|even) )*"
)
_AUXILIARY: Final = rf"{_ADVERB}(?:(?:have|has|am|is|are) (?:been )?)?{_ADVERB}"
_BE: Final = rf"(?:am|is|are|was) {_ADVERB}"

_END: Final = r"(?= ?(?:[,.;:!()\"]|[-–—] )|$)"
_PHRASE: Final = r"[\w'-]+(?: [\w'&-]+){0,4}?"
_PHRASE_END: Final = (
    r"(?= (?:and|but|because|cause|since|so|which|who|that|these days|now|nobody|with|by the way|when|while|for|to|as|if"
    rf"|from|at|until|till|last|this|today|yesterday|instead|during|after|before|over the|until now"
    rf"|(?:\d+|\w+|a few|a couple of) (?:days?|weeks?|months?|years?) ago)\b)|{_END}"
)
_LIKED: Final = r"[\w'-]+(?: [\w'&-]+){0,8}?"
_LIKED_END: Final = (
    rf"(?=,? (?:and|but|because|cause|so|when|while|since|as|it is|they are|too)\b| ?[-–—])|{_END}"
)
_TRAILING: Final = re.compile(
    r"(?: (?:anyway|too|though|tbh|lol|haha|really|actually|now|again|apparently|already|btw|by far|so much|very much|a lot"
    r"|as well|of course|instead|these days|at the moment|lately|recently|myself|ourselves))+$"
)
_NOT_OBJECTS: Final = frozenset(
    """
    a an all any anything both doing each every everything getting having he her hers him his how if in it its me my no not
    nothing on one our seeing she so some something spending such that the their them these they this those to us we what
    when where which who you your yours being it's that's talking hearing making helping knowing watching I
    """.split()
)
_VERBS: Final = frozenset(
    "feel hate love want need have had get got am is are was can cannot will do did carry always never must".split()
)

_NOBODY: Final = frozenset("someone somebody everyone everybody anyone anybody whoever".split())
_DAYS_AND_MONTHS: Final = frozenset((*ENGLISH_MONTHS, *ENGLISH_WEEKDAYS, "Christmas", "Easter"))

Reader = Callable[[str], "list[str]"]
"""Reads the objects at the beginning of what follows a verb phrase."""


def is_name(text: str) -> bool:
    """Whether capitalised words at the beginning of a sentence are a name."""
    first = text.split(" ")[0].casefold() if text else ""
    return (
        bool(first)
        and not is_stop_word(first)
        and first not in COMMON_WORDS
        and first not in _NOBODY
        and len(text.split()) <= MAX_NAME_WORDS
    )


def is_object_name(text: str) -> bool:
    """Whether capitals in the middle of a sentence are a name: "Radio Bremen" is one, "Time" is none."""
    return any(is_name(word) for word in text.split(" "))


def _phrases(words: str, end: str, article: str = "(?:an? |the )?") -> Reader:
    pattern = re.compile(rf"{article}\"?({words})\"?(?:{end})")

    def read(rest: str) -> list[str]:
        found = pattern.match(rest)
        phrase = _TRAILING.sub("", found[1]).strip(" .!") if found else ""
        return [phrase] if phrase and phrase.split()[0] not in _NOT_OBJECTS else []

    return read


_NAMED: Final = re.compile(rf"(?:the )?\"?({NAME})")
_SMALL_NAME: Final = re.compile(
    r"([a-z][\w'-]{2,})(?=(?: (?:last|this|in|on|for|since|now|with|and|but|because|about|over|a|yesterday|today|two|three)\b)"
    rf"|{_END})"
)


def _read_name(rest: str) -> list[str]:
    found = _NAMED.match(rest)
    is_day = found and found[1].split()[0] in _DAYS_AND_MONTHS
    return [found[1]] if found and not is_day and is_object_name(found[1]) else []


def _read_place(rest: str) -> list[str]:
    """Read a name; in a text without capitals a rare word, as "porto" is one."""
    if rest != rest.lower():
        return _read_name(rest)
    found = _SMALL_NAME.match(rest)
    word = found[1] if found else ""
    plain = not word or word in COMMON_WORDS or word in _NOT_OBJECTS or is_stop_word(word)
    return [] if plain or word.endswith(("ing", "ly", "s")) else [word.title()]


_PERSON: Final = rf"(?:(?:Dr|Mr|Mrs|Ms|Miss|Prof|Doctor|Professor)\.? )?{_WORD}"
_NAMES: Final = re.compile(rf"{_PERSON}(?:, {_PERSON})*(?:,? (?:and|&) {_PERSON})?(?![\w'-])")


def _read_names(rest: str) -> list[str]:
    """Read "Samir and Lina" as two names."""
    found = _NAMES.match(rest)
    names = re.split(r",? (?:and|&) |, ", found[0]) if found else []
    return [
        name for name in names if name.casefold() not in COMMON_WORDS and not is_stop_word(name.casefold())
    ]


_read_phrase: Final = _phrases(_PHRASE, _PHRASE_END)
_read_first_item: Final = _phrases(_PHRASE, rf"{_PHRASE_END}|, ")
_read_liked: Final = _phrases(_LIKED, _LIKED_END, article="")
_ITEM: Final = r"[\w'-]+(?: [\w'-]+)?"
_MORE_ITEMS: Final = re.compile(rf"((?:, {_ITEM})*),? and ({_ITEM})(?:{_END})")


def _read_items(rest: str) -> list[str]:
    """Read "nuts, cats and pollen" as three things."""
    first = _read_first_item(rest)
    more = _MORE_ITEMS.match(rest[len(first[0]) :]) if first and rest.startswith(first[0]) else None
    others = [*more[1].split(", ")[1:], more[2]] if more else []
    if any(word.split()[0] in _NOT_OBJECTS | _VERBS for word in others):
        others = []
    return [*first, *others]


_PLACED: Final = "(?:for|in|at|of|on|by|with|from|to)"


def _read_occupation(rest: str) -> list[str]:
    found = re.match(
        # "in coach 261" is a place.
        rf"(?:an? |the |our |my )?(?!{_PLACED} )((?:(?!{_PLACED} )[\w'-]+ ){{0,3}}?([\w'-]+))(?= |[,.;:!)]|$)",
        rest,
    )
    while found and found[2].lower() not in OCCUPATIONS:
        found = re.match(rf"(?:an? |the |our |my )?({re.escape(found[1])} ([\w'-]+))(?= |[,.;:!)]|$)", rest)
        if found and len(found[1].split()) > 4:
            return []
    words = found[1].split() if found else []
    return [" ".join(words)] if words and not {"and", "but", "not"} & set(words) else []


_MONTH: Final = (
    "|".join(ENGLISH_MONTHS)
    + "|"
    + "|".join(rf"{month[:3]}(?:t)?\.?(?!\w)" for month in ENGLISH_MONTHS if month != "May")
)
DAY: Final = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})|(?:{_MONTH}) (?:the )?\d{{1,2}}(?:st|nd|rd|th)?)(?:,? \d{{4}})?(?!\w)"
_DAY_OF_YEAR: Final = re.compile(rf"(?:on )?(?:the )?(?P<day>{DAY})", re.I)


def _read_day(rest: str) -> list[str]:
    found = _DAY_OF_YEAR.match(rest)
    return [re.sub(_MONTH, lambda month: month[0].capitalize(), found["day"], flags=re.I)] if found else []


def _pattern(pattern: str) -> Reader:
    """A reader for objects that a pattern lists."""
    compiled = re.compile(pattern)

    def read(rest: str) -> list[str]:
        found = compiled.match(rest)
        return [found["object"]] if found else []

    return read


_DIETS: Final = "vegetarian|vegan|pescatarian|diabetic|coeliac|celiac"
_PLAYED: Final = "piano|violin|viola|guitar|cello|flute|drums|clarinet|saxophone|trumpet|bass|tennis|chess|football|basketball|volleyball|hockey|cricket|badminton"
_BOUGHT: Final = "car|bike|bicycle|motorbike|scooter|van|boat|house|flat|apartment|cottage|caravan|piano|violin|guitar|camera|laptop|tent|kayak|tractor"
_LANGUAGES: Final = "English|German|French|Spanish|Portuguese|Italian|Dutch|Polish|Russian|Ukrainian|Czech|Greek|Turkish|Arabic|Hebrew|Hindi|Urdu|Bengali|Tamil|Chinese|Mandarin|Cantonese|Japanese|Korean|Vietnamese|Thai|Swedish|Norwegian|Danish|Finnish|Hungarian|Romanian|Welsh|Irish|Catalan|Basque"


class _Rule(NamedTuple):
    relation: str
    verbs: str
    """The verb phrase, without auxiliaries and adverbs."""
    read: Reader
    confidence: float = SURE


_READ_FLOOR: Final = _pattern(
    r"(?:the )?(?P<object>(?:\d{1,2}(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|top"
    r"|ground) floor)\b"
)
_READ_PLAYED: Final = _pattern(rf"(?P<object>{_PLAYED})\b")
_RULES: Final = tuple(
    (re.compile(rf"{_AUXILIARY}(?:{rule.verbs}) {_ADVERB}"), rule)
    for rule in (
        _Rule("lives in", r"lives? in|living in|based in", _read_place),
        _Rule(
            "lives in",
            r"(?:moved|relocated) (?:back |over |out |house )?(?:from [\w' -]{2,30}? )?to",
            _read_place,
        ),
        _Rule("lives on", r"(?:lives?|living) on", _READ_FLOOR),
        _Rule(
            "works at",
            r"(?:works?|working|employed) (?:at|for|by)|(?:started|got) (?:work|working|a (?:new )?job) (?:at|for|with)",
            _read_name,
        ),
        _Rule(
            "works at",
            r"(?:started|start|starting|got|took|taken|have) (?:my|an?|the) (?:new )?job (?:at|with|for)",
            _phrases(_PHRASE, rf"{_PHRASE_END}|(?= (?:on|in|at)\b)", article="(?:the )?"),
        ),
        _Rule("works as", r"(?:works?|working)(?: (?:at|for) [\w' &-]{2,40}?)? as", _read_phrase),
        _Rule("works as", r"am|is|are", _read_occupation),
        _Rule("is a", r"am|is|are", _pattern(rf"(?:an? )?(?P<object>{_DIETS})\b")),
        _Rule("allergic to", "allergic to|an allergy to", _read_items),
        _Rule("does not eat", "(?:do|does) not eat|cannot eat", _read_items),
        _Rule("does not drink", "(?:do|does) not drink", _read_items),
        _Rule("eats", "eats?|eating", _read_phrase, LIKELY),
        _Rule("drinks", "drinks?|drinking", _read_phrase, LIKELY),
        _Rule("prefers", "prefers?", _phrases(rf"{_PHRASE}(?: to {_PHRASE})?", _PHRASE_END), LIKELY),
        _Rule("switched to", r"switched (?:over |back )?(?:from [\w' -]{2,30}? )?to", _read_phrase, LIKELY),
        _Rule("quit", "quit|gave up|given up", _phrases(_PHRASE, _PHRASE_END, article="")),
        _Rule("likes", r"loves?|(?<!am )(?<!is )(?<!are )likes?|enjoys?", _read_liked, LIKELY),
        _Rule("dislikes", "hates?|dislikes?", _read_liked, LIKELY),
        _Rule("comes from", "(?:comes? )?from", _read_name),
        _Rule("grew up in", "grew up in", _read_place),
        _Rule("born in", "was born in", _read_name),
        _Rule("birthday", "was born on", _read_day),
        _Rule("plays", "(?:plays?|playing)(?: the)?", _READ_PLAYED),
        _Rule("sings", "sings?", _pattern(r"(?P<object>alto|tenor|soprano|bass|baritone|mezzo)\b")),
        _Rule(
            "is learning",
            "(?:learning|studying)(?: to play)?(?: the)?",
            lambda rest: _read_name(rest) or _READ_PLAYED(rest),
        ),
        _Rule("speaks", "speaks?(?: fluent)?", _pattern(rf"(?P<object>{_LANGUAGES})\b")),
        _Rule("studied at", "studied at|graduated from", _read_name),
        _Rule("married to", "married(?: to)?", _read_name),
        _Rule("got married", "got married", _read_day),
        _Rule("manages", "manages?", _read_name),
        _Rule("reports to", "reports? to", _read_name),
        _Rule("founded", "founded|co-founded", _read_name),
        _Rule("member of", "a member of|joined", _read_name),
        _Rule("age", "am|is|turned", _pattern(r"(?P<object>\d{1,3})(?= years old\b)")),
        _Rule(
            "has",
            "have|has",
            _pattern(
                r"(?P<object>(?:two|three|four|five|six|seven|\d) (?:(?:grown|little|young|small|adult) )?"
                rf"(?:{_KINS}|siblings|pets))\b"
            ),
        ),
        _Rule("owns", "bought|owns?", _pattern(rf"(?:an? )(?P<object>(?:[a-z-]+ ){{0,3}}?(?:{_BOUGHT}))\b")),
    )
)
"""What follows a subject, with what it means."""

_TASTES: Final = ("likes", "prefers", "switched to", "eats", "drinks")
_ONLY_OVER: Final = frozenset(("eats", "drinks"))
"""What somebody eats is mostly a meal; that they no longer do is about them."""

_I_FORM: Final = re.compile(
    r"(?:love|like|enjoy|hate|dislike|prefer|eat|drink|live|work|play|own|manage|speak|sing|report|have|am|are)\b"
)


def _agrees(verbs: str) -> bool:
    """Whether a verb phrase follows a third person: "Tom likes", not "Sounds like"."""
    return "does not" in verbs or not any(map(_I_FORM.fullmatch, verbs.split()))


_SUBJECT: Final = re.compile(
    rf"(?:(?P<self>I|[Ww]e)|{_MY} {_KIND_OF_KIN}(?P<kin>{_KIN})(?:,? (?P<called>{_WORD}),?)?|(?P<name>{NAME})) "
)
_CALL_ME: Final = re.compile(
    rf"(?:(?:just |please |you can |everyone |everybody |people |friends |my friends )*calls? me|[Mm]y name is|I am called|I go by) (?P<object>{_WORD})"
    r"(?! [A-Z])(?![\w'-])"
)
_BIRTHDAY: Final = re.compile(
    rf"(?:{_MY} (?:{_KIND_OF_KIN}(?P<kin>{_KIN})(?: (?P<called>{NAME}))?(?:'s)? )?|(?P<name>{NAME})'s )"
    rf"birthday (?:is|falls) {_ADVERB}"
)
_FAVOURITE: Final = re.compile(
    rf"(?:{_MY}|(?P<name>{NAME})'s) (?:all-time |absolute )?favou?rite (?P<what>[a-z]+(?: [a-z]+)?) (?:is|are) {_ADVERB}"
)
_ABOUT_MINE: Final = re.compile(
    rf"{_MY} (?:new |home |own )?(?P<what>flat|apartment|house|office|room|desk|address|phone number|shoe size|blood type"
    rf"|email|email address|nickname|middle name|surname|star sign|locker|seat|place|home|postcode|zip code) is {_ADVERB}"
    rf"(?P<object>(?:on|in|at) (?:the )?(?:[a-z]+ floor|\d+(?:st|nd|rd|th) floor|{NAME}(?:,? (?:number )?\d+\w?)?)|\+?[\w.@-]*\d[\w.@+-]*(?: \d[\d ]*)?"
    rf"|[\w.+-]+@[\w.-]+\w|{NAME}(?: \d+\w?)?){_END}"
)
_DATED: Final = re.compile(
    rf"(?:[Tt]he|[Mm]y|[Oo]ur) (?!birthday)(?P<what>[a-z]+(?: [a-z]+){{0,2}}) (?:is|are|was moved to|has moved to|is moved to) {_ADVERB}on "
)
_NAMED_PET: Final = re.compile(
    rf"(?:(?P<self>I|[Ww]e)|(?P<name>{NAME})) {_AUXILIARY}(?:(?:adopted|rescued|have|has|bought)|got(?= [\w -]*?\b(?:{_PET})\b)) "
    rf"(?:an?|the|our|my|another) (?:[a-z-]+ ){{0,3}}?(?P<kind>{_PET}|[a-z-]+),? (?:(?:is|who is|which is) )?(?:called|named) (?P<object>{_WORD})"
)
_NAMES_OF: Final = re.compile(
    rf"{_MY} {_KIND_OF_KIN}(?P<kind>{_KIN}|{_PET}|{_KINS})(?:'s name is|s' names are| is| are)? (?:(?:called|named) )?(?=[A-Z])"
)
_COUNTED_NAMES: Final = re.compile(
    rf"(?:I|[Ww]e) (?:have|adopted|got) (?:an? |two |three |four |five )(?:[a-z]+ )?(?P<kind>{_KIN}|{_KINS})"
    r"(?:,|:| -| called| named|\.) (?=[A-Z])"
)
_IS_MINE: Final = re.compile(
    rf"(?P<object>{_PERSON})(?: is|,) {_MY} {_KIND_OF_KIN}(?P<kind>{_KIN})(?=[,.!;]|$| and\b)"
)
_KIN_NAME: Final = re.compile(
    rf"\b{_MY} {_KIND_OF_KIN}(?P<kind>{_KIN}|{_PET}),? (?P<object>{_PERSON})(?:'s)?(?! [A-Z]|[\w'-])"
)


def read_clause(clause: Clause, speaker: str) -> Iterator[Stated | Over]:
    """Return what a clause says; `speaker` is empty if nobody is known to speak."""
    text = clause.text
    if not clause.is_over:
        yield from _read_endings(text, speaker)
        yield from _read_possessions(text, speaker)
    subject = _SUBJECT.match(text)
    who = _who(subject, speaker) if subject else ""
    if subject is None or not who:
        return
    rest = text[subject.end() :]
    is_self = subject["self"] is not None
    for verbs, rule in _RULES:
        found = verbs.match(rest)
        if found is None or not (is_self or clause.is_over or _agrees(found[0])):
            continue
        for object_ in rule.read(rest[found.end() :]):
            if clause.is_over or rule.relation == "quit":
                ended = _TASTES if rule.relation in (*_TASTES, "quit") else (rule.relation,)
                yield Over(who, ended, object_)
            if not clause.is_over and rule.relation not in _ONLY_OVER:
                yield Stated(who, rule.relation, object_, _say(rule.relation, object_), rule.confidence)


def read_names(sentence: str, speaker: str) -> Iterator[Stated]:
    """Return whom a speaker names as theirs, anywhere in a sentence: "I went with my sister Clara"."""
    for found in _KIN_NAME.finditer(sentence):
        if speaker and _read_names(found["object"]):
            yield _named(speaker, found["kind"], found["object"], LIKELY)


def _say(relation: str, object_: str) -> str:
    if relation == "allergic to":
        return f"is allergic to {object_}"
    if relation == "got married":
        return f"got married on {object_}"
    if relation == "age":
        return f"is {object_} years old"
    if relation == "works as":
        return f"works as {object_}"
    return f"{relation} is {object_}" if relation == "birthday" else f"{relation} {object_}"


def _who(found: re.Match[str], speaker: str) -> str:
    """The name that a subject means; empty if it is none."""
    groups = found.groupdict()
    if name := groups.get("name"):
        return name if is_name(name) else ""
    if called := groups.get("called"):
        return called
    return f"{speaker}'s {groups['kin']}" if groups.get("kin") and speaker else speaker


def _named(speaker: str, kind: str, name: str, confidence: float = SURE) -> Stated:
    """A relative, or a pet, by name."""
    kind = _KINDS_OF_PET.get(kind, kind)
    one = _ONE_OF.get(kind, kind.removesuffix("s") if re.fullmatch(_KINS, kind) else kind)
    relation = one if re.fullmatch(_KIN, one) or one in _ONE_OF.values() else f"has a {one}"
    return Stated(speaker, relation, name, f"{relation} called {name}", confidence)


def _read_possessions(text: str, speaker: str) -> Iterator[Stated]:
    """Read what clauses say that begin with "my", with a name's "'s", or that give a name."""
    if found := _BIRTHDAY.match(text):
        for day in _read_day(text[found.end() :]):
            yield Stated(_who(found, speaker), "birthday", day, f"birthday is {day}", SURE)
    if found := _FAVOURITE.match(text):
        rest, relation = text[found.end() :], f"favourite {found['what']}"
        for object_ in _read_phrase(rest):
            yield Stated(_who(found, speaker), relation, object_, f"{relation} is {object_}", SURE)
    if found := _NAMED_PET.match(text):
        kind = found["kind"]
        yield _named(_who(found, speaker), kind, found["object"], SURE)
    if not speaker:
        return
    if found := _CALL_ME.match(text):
        yield Stated(speaker, "goes by", found["object"], f"goes by {found['object']}", SURE)
    for pattern in (_NAMES_OF, _COUNTED_NAMES):
        if found := pattern.match(text):
            names = _read_names(text[found.end() :])
            for name in names if re.fullmatch(_KINS, found["kind"]) else names[:1]:
                yield _named(speaker, found["kind"], name)
    if (found := _IS_MINE.match(text)) and is_name(found["object"]):
        yield _named(speaker, found["kind"], found["object"])
    if found := _ABOUT_MINE.match(text):
        object_ = found["object"].strip(" ,")
        yield Stated(speaker, found["what"], object_, f"{found['what']} is {object_}", SURE)
    if found := _DATED.match(text):
        for day in _read_day(text[found.end() :]):
            yield Stated(speaker, f"date of {found['what']}", day, f"{found['what']} is on {day}", SURE)


# What is over


_PARTNERS: Final = ("partner", "girlfriend", "boyfriend", "fiancé", "fiancée", "fiance", "fiancee")
_SPOUSES: Final = ("husband", "wife", "married to", "got married")

_NOT_FOR_THE_DAY: Final = r"(?! (?:at|around|by|before|after|early|late|to|on)\b| for (?!good\b))"
_ENDINGS: Final = tuple(
    (re.compile(rf"(?:I|[Ww]e|{_WORD} and I) {_AUXILIARY}(?:{pattern})"), relations)
    for pattern, relations in (
        (rf"(?:left|quit|resigned from|retired from) (?:the )?(?P<object>{NAME})(?![\w'-]){_NOT_FOR_THE_DAY}", ("works at", "member of")),
        (r"(?:quit|left|lost|gave up) (?:my|our) jobs?\b", ("works at", "works as")),
        (r"(?:got |was )?(?:fired|laid off|made redundant|let go)\b", ("works at", "works as")),
        (rf"retired(?= last\b| in\b| this\b|{_END})", ("works at", "works as")),
        (rf"moved out of (?:the )?(?P<object>{NAME})", ("lives in",)),
        (rf"(?:broke|split) up(?= with\b| last\b| yesterday\b| in\b| a\b| two\b|{_END})", _PARTNERS),
        (rf"(?:got )?(?:divorced|separated)(?= last\b| in\b|{_END})", (*_PARTNERS, *_SPOUSES)),
        (rf"(?:sold|scrapped|gave away) (?:the|my|our) (?P<object>{_PHRASE})(?:{_PHRASE_END})", ("owns",)),
    )
)  # fmt: skip
"""What ends facts without being a fact of its own."""


def _read_endings(text: str, speaker: str) -> Iterator[Over]:
    for pattern, relations in _ENDINGS:
        if speaker and (found := pattern.match(text)):
            yield Over(speaker, relations, found.groupdict().get("object") or "")
