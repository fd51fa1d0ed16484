"""What a question says about time: the period that it names, and whether it asks for what is recent.

The rules know English, and phrases of German, French and Spanish that `sennit.period_words` says in English. They prefer to miss a period over finding a wrong one: a month needs a preposition or a year
("in March", "March 2026"), "may" and "march" need a capital, a question about plans names no past period, and two
periods in one question cancel each other. Days begin at midnight in the time zone of `now`; seasons are those of the
northern hemisphere, by whole months.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from sennit.period_words import ENGLISH_MONTHS, ENGLISH_WEEKDAYS, find_recent, translate

MAX_QUERY_CHARACTERS: Final = 2000
"""Only this much of a question is read; longer ones are pasted texts, whose dates mean something else."""


@dataclass(frozen=True, slots=True)
class Period:
    """A span of time that a question names, from `start` up to but not including `end`; None means open."""

    words: str
    """As the question says it."""
    start: datetime | None
    end: datetime | None

    def contains(self, when: datetime) -> bool:
        """Whether a time lies in the period."""
        return (self.start is None or self.start <= when) and (self.end is None or when < self.end)

    def is_named_in(self, text: str) -> bool:
        """Whether a text says the same words, apart from the preposition: "in March" is named in "March or April"."""
        words = _PREPOSITION.sub("", self.words)
        return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.I) is not None

    def __str__(self) -> str:
        first = "" if self.start is None else f"from {_show(self.start)}"
        last = "" if self.end is None else f"until {_show(self.end)}"
        return f"{self.words!r} ({' '.join(part for part in (first, last) if part)})"


@dataclass(frozen=True, slots=True)
class QueryTime:
    """What a question says about time."""

    period: Period | None = None
    recent: str = ""
    """The words that ask for what is recent; empty if none do."""
    has_topic: bool = True
    """Whether it asks about something besides time, facts and conversations."""
    names: tuple[str, ...] = ()
    """If it has no topic: the capitalised words that are left, such as names of speakers."""
    asks_for_facts: bool = False
    """Whether it has no topic and asks for facts."""
    asks_for_present: bool = False
    """Whether it asks for what holds now: "Where does Mira live?", "wifi password"."""

    @property
    def lists_recent(self) -> bool:
        """Whether it asks for whatever was said, recently or in a period, without a topic."""
        return not self.has_topic and (bool(self.recent) or self.period is not None)


NO_TIME: Final = QueryTime()

_MONTHS: Final = tuple(month.lower() for month in ENGLISH_MONTHS)
_WEEKDAYS: Final = tuple(day.lower() for day in ENGLISH_WEEKDAYS)
_SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each season; a season has three."""

_NUMBERS: Final = {
    **dict.fromkeys(("a", "an", "one"), 1),
    **{
        word: n
        for n, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), 2)
    },
    "a couple of": 2,
}
_MONTH: Final = "|".join(
    (*_MONTHS, *("jan", "feb", "mar", "apr", "jun", "jul", "aug", "sept", "sep", "oct", "nov", "dec"))
)
_DAY: Final = "|".join(_WEEKDAYS)
_HOLIDAYS: Final = {
    "christmas": (12, 24, 3),
    "boxing": (12, 26, 1),
    "new year": (12, 31, 2),
    "halloween": (10, 31, 1),
    "valentine": (2, 14, 1),
}
"""Month, first day and number of days of each holiday with a fixed date, by how its name begins."""

FEW: Final = 7
"""At most as many as "a few"."""

_PHRASES: Final = {
    "half a year ago": (182 + 45, 91),
    "the other ": (14, 14),
    "this time last year": (365 + 17, 35),
}
"""How many days ago each begins, and how many days it has."""

_YEAR: Final = r"(?:19|20)\d\d"
_NUMBER: Final = rf"\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))}"
_SEASON: Final = "|".join(_SEASONS)
_EDGE: Final = r"(?P<edge>since|after|until|till|before)"

_RECENT: Final = re.compile(
    r"\b(?:lately|recently|(?:most )?recent|latest|newest|these days|this (?:week|month)"
    r"|(?:the )?(?:last|past) (?:few|couple of) (?:hours|days|weeks)|what(?:['’]s| is) new|any news)\b",
    re.I,
)
_PRESENT: Final = re.compile(
    r"(?:[^\W\d_]+ ){0,6}?(?:is|are|am|do|does|has|have|can|should|will)(?:n['’]t)?\b|(?:what|who|where|when|how)['’]s\b",
    re.I,
)
"""How a question begins whose verb is in the present tense."""

_PAST: Final = re.compile(
    r"\b(?:did|was|were|had|been|ago|before|earlier|first|former|formerly|once|old|original|originally|previous|previously"
    r"|used to)\b",
    re.I,
)
"""Words of a question about what was."""

MAX_KEYWORDS: Final = 4
"""A query of so many words without a verb is the name of something, as it is now."""

_FUTURE: Final = re.compile(
    r"\b(?:next|upcoming|will|plan|plans|planned|planning|going to|tomorrow|scheduled|coming)\b", re.I
)
"""What is planned for March was not said in March."""

_RELATIVE_TO: Final = re.compile(
    r"\b(?:day|night|week|weekend|month|year|days|weeks|months|years) (?:before(?! yesterday| last)|after|prior to|following)\b",
    re.I,
)
"""The week before a date is not the date."""

_GENERIC_WORDS: Final = frozenset(
    """
    a about again all am an and any anything are as at be been being brief briefing by can catch chat chats chatted
    conversation conversations could dialogue did discuss doing discussed discussion discussions do does else ever everything
    fact facts for from get give had happen happened happening has have he hear heard her him his hot i important in
    into is it items its just key know known last learn learned learnt list main major matter me memories memory
    mention mentioned messages most my need new news now of on or our past please questions recall recap recent
    remember remembered remind said say saying says session sessions share shared she should show since so some speak
    spoke spoken still subject subjects summarise summarize summary talk talked talking tell than that the their them
    then there these they thing things this those to told topic topics turns up update updates us was we went were
    what when where which who will with words would write wrote you your yours
    """.split()
)
"""Words of questions that ask for conversations and facts as such. What is left is the topic."""

_PREPOSITION: Final = re.compile(
    rf"^(?:on|in|during|throughout|back in|im|am|seit|en|le|depuis|el|durante|desde|{_EDGE})\s+(?:the\s+)?",
    re.I,
)
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

_Span: TypeAlias = tuple[datetime, datetime]
_Reader: TypeAlias = Callable[[re.Match[str], datetime], "_Span | None"]


def read_time(query: str, now: datetime) -> QueryTime:
    """Return what a question says about time, as of `now`."""
    text = query[:MAX_QUERY_CHARACTERS]
    found = _RECENT.search(text)
    recent = found[0] if found is not None else find_recent(text)
    period, rest = _find_period(text, now)
    if period is None:
        period, rest = _find_translated_period(text, now)
    if not recent and period is None:
        topic = _topic(rest)
        # "key facts" alone, without a word about time, asks for facts too.
        asks = not topic and _asks_for_facts(text)
        return QueryTime(has_topic=not asks, asks_for_facts=asks, asks_for_present=_asks_for_present(text))
    topic = _topic(_RECENT.sub(" ", rest))
    names = tuple(word for word, is_name in topic if is_name)
    # "What did I say about Miso?" is about Miso; "What did Lena say?" is about anything.
    is_about_a_name = any(re.search(rf"\babout\b.*\b{re.escape(name)}\b", rest, re.I) for name in names)
    has_topic = len(names) < len(topic) or is_about_a_name
    return QueryTime(
        period,
        recent,
        has_topic,
        () if has_topic else names,
        not has_topic and _asks_for_facts(text),
    )


def _asks_for_present(text: str) -> bool:
    if _PAST.search(text):
        return False
    words = text.split()
    return bool(_PRESENT.match(text.strip())) or (len(words) <= MAX_KEYWORDS and "?" not in text)


def _asks_for_facts(text: str) -> bool:
    return re.search(r"\bfacts\b", text, re.I) is not None


def _topic(text: str) -> list[tuple[str, bool]]:
    """Return the words that are about something, and whether each looks like a name."""
    uses_capitals = text != text.upper()
    out = []
    for found in _WORD.finditer(text):
        word = re.sub(r"['’]s$", "", found[0])
        if word.casefold() not in _GENERIC_WORDS:
            out.append((word, uses_capitals and word[0].isupper()))
    return out


def _find_period(text: str, now: datetime) -> tuple[Period | None, str]:
    """Return the only period of a text, and the text without it; None if there is none or more than one."""
    found: list[tuple[re.Match[str], _Span | None]] = []
    for pattern, read, past_only in _PATTERNS:
        for match in pattern.finditer(text):
            if any(match.start() < other.end() and other.start() < match.end() for other, _ in found):
                continue  # an earlier pattern has these words
            if past_only and _FUTURE.search(text):
                continue
            try:
                found.append((match, read(match, now)))
            except (ValueError, OverflowError):  # 31 February, or before the year 1
                found.append((match, None))
    spans = [(match, span) for match, span in found if span is not None]
    if len(spans) != 1 or _RELATIVE_TO.search(text):
        return None, text
    match, (start, end) = spans[0]
    edge = (match.groupdict().get("edge") or "").casefold()
    words = match[0].strip()
    rest = text[: match.start()] + " " + text[match.end() :]
    if edge in ("until", "till", "before"):
        return Period(words, None, start), rest
    if edge in ("since", "after"):
        return Period(words, start if edge == "since" else end, None), rest
    return Period(words, start, end), rest


def _find_translated_period(text: str, now: datetime) -> tuple[Period | None, str]:
    """Return the only period that a text names in another language, and the text without it."""
    found = translate(text)
    if len(found) != 1:
        return None, text
    start, end, english = found[0]
    period, _ = _find_period(english, now)
    if period is None:
        return None, text
    return replace(period, words=text[start:end]), f"{text[:start]} {text[end:]}"


# Days and spans.


def _midnight(when: datetime) -> datetime:
    return when.replace(hour=0, minute=0, second=0, microsecond=0)


def _days(first: datetime, count: int = 1) -> _Span:
    return first, first + timedelta(days=count)


def _months(now: datetime, year: int, month: int, count: int = 1) -> _Span:
    """Return `count` months from this one, whose number may be beyond 12."""

    def first(number: int) -> datetime:
        return _midnight(now).replace(year=year + (number - 1) // 12, month=(number - 1) % 12 + 1, day=1)

    return first(month), first(month + count)


def _month_number(name: str) -> int:
    return next(n for n, month in enumerate(_MONTHS, 1) if month.startswith(name.casefold()[:3]))


def _is_name_of_month(match: re.Match[str]) -> bool:
    """Whether a match means a month: "may" and "march" are verbs, but not after "in"; "mar" and "dec" need a capital."""
    word = match["month"]
    if word[0].isupper():
        return True
    is_placed = match[0].casefold().startswith(("in", "during", "since", "last"))
    return word in _MONTHS and (is_placed or word not in ("march", "may"))


def _last_year_with(now: datetime, month: int, day: int = 1) -> int:
    """Return the year of the last such day that is not in the future."""
    return now.year if (month, day) <= (now.month, now.day) else now.year - 1


def _show(when: datetime) -> str:
    return when.date().isoformat() if when == _midnight(when) else when.isoformat(" ", "minutes")


# Readers: a match becomes a span, or None if the words mean something else.


def _read_iso(match: re.Match[str], now: datetime) -> _Span | None:
    year, month, day = int(match["year"]), int(match["month"]), match["day"]
    if not day:
        return _months(now, year, month) if 1 <= month <= 12 else None
    return _days(_midnight(now).replace(year=year, month=month, day=int(day)))


def _read_date(match: re.Match[str], now: datetime) -> _Span | None:
    if not _is_name_of_month(match):
        return None
    month, day, year = _month_number(match["month"]), int(match["day"]), match["year"]
    number = int(year) if year else _last_year_with(now, month, day)
    return _days(_midnight(now).replace(year=number, month=month, day=day))


def _read_month(match: re.Match[str], now: datetime) -> _Span | None:
    if not _is_name_of_month(match):
        return None
    month, year = _month_number(match["month"]), match["year"]
    which = (match.groupdict().get("which") or "").casefold()
    number = int(year) if year else _last_year_with(now, month)
    # In March, "last March" is that of the year before.
    return _months(now, number - (not year and which == "last" and month == now.month), month)


def _read_year(match: re.Match[str], now: datetime) -> _Span | None:
    return _months(now, int(match["year"]), 1, 12)


def _read_between(match: re.Match[str], now: datetime) -> _Span | None:
    spans = []
    last_year = re.search(rf"\b{_YEAR}\b", match["last"])
    first = match["first"]
    if last_year is not None and not re.search(_YEAR, first):
        first = f"{first} {last_year[0]}"
    for part in (first, match["last"]):
        inner = _DATE.fullmatch(part) or _DATE_REVERSED.fullmatch(part) or _ISO.fullmatch(part)
        month = re.fullmatch(rf"(?P<month>{_MONTH})(?: (?P<year>{_YEAR}))?", part, re.I)
        if inner is not None:
            span = (_read_iso if inner.re is _ISO else _read_date)(inner, now)
        else:
            span = _read_month(month, now) if month is not None else None
        if span is None:
            return None
        spans.append(span)
    (start, _), (_, end) = spans
    if start >= end and last_year is None:  # "between November and February" crosses a new year
        start = start.replace(year=start.year - 1)
    return (start, end) if start < end else None


def _read_day_word(match: re.Match[str], now: datetime) -> _Span | None:
    today = _midnight(now)
    words = " ".join(match[0].casefold().split())
    if words == "last night":
        return today - timedelta(hours=6), today + timedelta(hours=6)
    if "day before yesterday" in words:
        return _days(today - timedelta(days=2))
    return _days(today - timedelta(days=1) if "yesterday" in words else today)


def _read_weekday(match: re.Match[str], now: datetime) -> _Span | None:
    back = (now.weekday() - _WEEKDAYS.index(match["weekday"].casefold())) % 7
    return _days(_midnight(now) - timedelta(days=back or 7))


def _read_calendar(match: re.Match[str], now: datetime) -> _Span | None:
    """Read "last week", "last month", "last year", "this year" and "last weekend"."""
    today, unit = _midnight(now), match["unit"].casefold()
    monday = today - timedelta(days=today.weekday())
    if unit == "weekend":
        # On a Saturday or Sunday, the last weekend is that of the week before.
        return _days(monday - timedelta(days=2), 2)
    if unit.startswith("week"):
        return _days(monday - timedelta(days=14 if unit.endswith("before last") else 7), 7)
    if unit == "month":
        return _months(now, now.year - 1, now.month + 11)
    return _months(now, now.year - (match["which"].casefold() != "this"), 1, 12)


def _read_season(match: re.Match[str], now: datetime) -> _Span | None:
    first, year = _SEASONS[match["season"].casefold()], match["year"]
    if year:
        return _months(now, int(year), first, 3)
    start, end = _months(now, now.year, first, 3)
    is_last = (match["which"] or "").casefold() in ("last", "past")
    # The last spring has ended; "in spring" may still last.
    if start > now or (is_last and end > now):
        start, end = _months(now, now.year - 1, first, 3)
    if is_last and end > now:
        start, end = _months(now, now.year - 2, first, 3)
    return start, end


_UNIT_DAYS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else _NUMBERS[" ".join(text.casefold().split())]


def _read_ago(match: re.Match[str], now: datetime) -> _Span | None:
    """Read "two weeks ago": that day, with half a unit on each side, because nobody counts exactly."""
    count, unit = _count(match["count"]), match["unit"].casefold()
    if unit == "hour":
        return _days(_midnight(now - timedelta(hours=count)))
    days = _UNIT_DAYS[unit]
    centre = _midnight(now) - timedelta(days=count * days)
    return _days(centre - timedelta(days=days // 2), 1 + 2 * (days // 2))


def _read_phrase(match: re.Match[str], now: datetime) -> _Span | None:
    """Read "half a year ago", "the other day" and "this time last year"."""
    words = " ".join(match[0].casefold().split())
    days, count = next(span for phrase, span in _PHRASES.items() if phrase in words)
    return _days(_midnight(now) - timedelta(days=days), count)


def _read_a_few(match: re.Match[str], now: datetime) -> _Span | None:
    """Read "a few weeks ago" and "in the last few months": from seven units back, up to one unit back or to now."""
    days = _UNIT_DAYS[match["unit"].casefold()]
    until = now + timedelta(days=1) if match["ago"] is None else _midnight(now) - timedelta(days=days // 2)
    return _midnight(now) - timedelta(days=FEW * days), until


def _easter(year: int) -> tuple[int, int]:
    """Return month and day of Easter Sunday, by the Gregorian calculation of Meeus, Jones and Butcher."""
    a, b, c = year % 19, year // 100, year % 100
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    days = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    m = (a + 11 * h + 22 * days) // 451
    month, day = divmod(h + days - 7 * m + 114, 31)
    return month, day + 1


def _read_holiday(match: re.Match[str], now: datetime) -> _Span | None:
    """Read "at Christmas": the last that has begun, with its days."""
    name, given = match["holiday"].casefold(), match["year"]

    def days_of(year: int) -> _Span:
        if name.startswith("easter"):
            month, day = _easter(year)
            return _days(_midnight(now).replace(year=year, month=month, day=day) - timedelta(days=2), 4)
        month, day, count = next(days for start, days in _HOLIDAYS.items() if name.startswith(start))
        return _days(_midnight(now).replace(year=year, month=month, day=day), count)

    if given:
        return days_of(int(given))
    start, end = days_of(now.year)
    return (start, end) if start <= now else days_of(now.year - 1)


def _read_last_units(match: re.Match[str], now: datetime) -> _Span | None:
    """Read "the last three weeks": up to now and a day more, for clocks that differ."""
    count, unit = _count(match["count"]), match["unit"].casefold()
    length = timedelta(hours=count) if unit == "hour" else timedelta(days=count * _UNIT_DAYS[unit])
    return now - length, now + timedelta(days=1)


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(" ", r"\s+"), re.I)


_ORDINAL: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_ISO: Final = _compile(
    rf"(?:(?:on|in|{_EDGE}) )?(?<![\w-])(?P<year>{_YEAR})-(?P<month>\d\d)(?:-(?P<day>\d\d))?(?![\w-])"
)
_DATE: Final = _compile(
    rf"(?:(?:on|{_EDGE}) )?(?:the )?(?<![\w.]){_ORDINAL}(?: of)? (?P<month>{_MONTH})\b\.?(?:,? ?(?P<year>{_YEAR})\b)?"
)
_DATE_REVERSED: Final = _compile(
    rf"(?:(?:on|{_EDGE}) )?\b(?P<month>{_MONTH})\.? (?:the )?{_ORDINAL}\b(?![:.]\d)(?:,? ?(?P<year>{_YEAR})\b)?"
)
_PLACED: Final = rf"(?:in|during|over|throughout|back in|{_EDGE})"
_PART_OF: Final = (
    "(?:beginning|start|middle|end|(?:first|second|third|last) (?:week|half|days|few days|couple of weeks))"
)
_PATTERNS: Final[tuple[tuple[re.Pattern[str], _Reader, bool], ...]] = (
    (
        _compile(
            r"\b(?:between|from) (?P<first>[\w ,-]{3,25}?) (?:and|to|until|till) (?P<last>[\w ,-]{3,25}?)(?=[?.!;]|$)"
        ),
        _read_between,
        False,
    ),
    (_ISO, _read_iso, False),
    (_DATE, _read_date, False),
    (_DATE_REVERSED, _read_date, False),
    (
        _compile(
            rf"\b(?:{_PLACED}|at|towards) (?:early |late |mid[ -]|the {_PART_OF} of )?(?:(?P<which>last|this) )?"
            rf"(?P<month>{_MONTH})\b(?:,? (?P<year>{_YEAR})\b)?"
        ),
        _read_month,
        True,
    ),
    (_compile(rf"\b(?P<which>last|this) (?P<month>{_MONTH})\b(?P<year>)"), _read_month, True),
    (_compile(rf"\b(?P<month>{_MONTH}) (?P<year>{_YEAR})\b"), _read_month, True),
    (
        _compile(
            rf"\b(?:{_PLACED} (?:(?:the|early|late) )?)?(?:(?P<which>last|past|this) )?(?P<season>{_SEASON})(?: of)? (?P<year>{_YEAR})\b"
        ),
        _read_season,
        True,
    ),
    (
        _compile(rf"\b(?:{_PLACED} )?(?P<which>last|past|this) (?P<season>{_SEASON})\b(?P<year>)"),
        _read_season,
        True,
    ),
    (
        _compile(
            rf"\b{_PLACED} (?:the )?(?P<season>spring|summer|autumn|winter)\b(?! \w+ing\b)(?! (?:holiday|break))(?P<which>)(?P<year>)"
        ),
        _read_season,
        True,
    ),
    (_compile(rf"\b{_PLACED} (?P<year>{_YEAR})\b"), _read_year, True),
    (
        _compile(
            rf"\b(?:{_EDGE} )?(?:the day before yesterday|yesterday|last night|(?:earlier )?today|this (?:morning|afternoon|evening)|tonight)\b"
        ),
        _read_day_word,
        False,
    ),
    (
        _compile(
            rf"\b(?:on|last|this past|{_EDGE}(?: last)?) (?P<weekday>{_DAY})(?: (?:morning|afternoon|evening|night))?\b"
        ),
        _read_weekday,
        True,
    ),
    (_compile(r"\b(?:at |around |about )?this time last year\b"), _read_phrase, True),
    (_compile(r"\b(?P<which>(?:in )?the) (?P<unit>week before last)\b"), _read_calendar, True),
    (
        _compile(
            rf"\b(?:(?:in|at|towards) the {_PART_OF} of |{_EDGE} )?(?P<which>last|the past|the previous|previous) (?P<unit>week|month|year|weekend)\b"
        ),
        _read_calendar,
        True,
    ),
    (
        _compile(r"\b(?P<which>(?:on|at|over) the) (?P<unit>weekend)(?=[?.!,]| with\b| and\b|$)"),
        _read_calendar,
        True,
    ),
    (_compile(rf"\b(?:earlier |{_EDGE} )?(?P<which>this) (?P<unit>year)\b"), _read_calendar, True),
    (_compile(r"\bhalf a year ago\b"), _read_phrase, True),
    (_compile(r"\bthe other (?:day|night|evening|morning)\b"), _read_phrase, True),
    (
        _compile(r"\b(?:a few|several|some) (?P<unit>day|week|month|year)s (?P<ago>ago)\b"),
        _read_a_few,
        True,
    ),
    (
        _compile(
            r"\b(?:in |over |during )?the (?:last|past) (?:few|several) (?P<unit>month|year)s\b(?P<ago>ago)?"
        ),
        _read_a_few,
        True,
    ),
    (
        _compile(
            rf"\b(?:(?:at|on|over|around|during|this past|last|{_EDGE}(?: last)?) )(?P<holiday>christmas(?: eve| day)?|boxing day|easter"
            rf"(?: sunday| monday)?|new year(?:['’]s(?: eve| day)?)?|halloween|valentine(?:['’]s)?(?: day)?)\b(?: (?P<year>{_YEAR}))?"
        ),
        _read_holiday,
        True,
    ),
    (_compile(rf"\b(?P<count>{_NUMBER}) (?P<unit>hour|day|week|month|year)s? ago\b"), _read_ago, True),
    (
        _compile(
            rf"\b(?:in |over |during )?(?:the )?(?:last|past) (?P<count>{_NUMBER}) (?P<unit>hour|day|week|month|year)s?\b"
        ),
        _read_last_units,
        True,
    ),
)
"""Each pattern with its reader, and whether a question about plans turns it off. The first to match words has them."""
