"""The words for periods in German, French and Spanish, as tables: each phrase has an English one that means the same.

`translate` finds the phrase of a question and says it in English, which `sennit.periods` reads. A language is known by
its function words, so "hier" is yesterday in a French question and here in a German one. Accents do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

ENGLISH_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
ENGLISH_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
DAY: Final = r"(?P<day>\d{1,2})"


@dataclass(frozen=True, slots=True)
class Language:
    """The words of a language. Every key is a regular expression without accents."""

    function_words: str
    months: tuple[str, ...]
    weekdays: tuple[str, ...]
    seasons: Mapping[str, str]
    units: Mapping[str, str]
    """To the singular in English."""
    numbers: Mapping[str, str]
    edges: Mapping[str, str]
    """To since, after, until and before."""
    phrases: tuple[tuple[str, str], ...]
    """Patterns with <month>, <weekday>, <season>, <unit>, <count>, <edge>, <day> and <year>, and what they mean."""
    recent: str
    future: str
    """What is planned for March was not said in March."""


class Translation(NamedTuple):
    """A phrase of a question in another language."""

    start: int
    end: int
    english: str


GERMAN: Final = Language(
    function_words="der die das den dem ein eine einen ich wir ihr mir mich uns und oder nicht ist war hat haben habe"
    " was wer wann wo wie welche welches mit von zu zum zur im am beim uber auf fur",
    months=(
        *(
            "januar|janner",
            "februar|feber",
            "marz|maerz",
            "april",
            "mai",
            "juni",
            "juli",
            "august",
            "september",
        ),
        *("oktober", "november", "dezember"),
    ),
    weekdays=("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag|sonnabend", "sonntag"),
    seasons={"fruhling|fruhjahr": "spring", "sommer": "summer", "herbst": "autumn", "winter": "winter"},
    units={
        "stunden?": "hour",
        "tage?n?": "day",
        "wochenendes?": "weekend",
        "wochen?": "week",
        "monate?n?": "month",
        "jahre?n?": "year",
    },
    numbers={
        "einem|einer": "one",
        "zwei": "two",
        "drei": "three",
        "vier": "four",
        "funf": "five",
        "sechs": "six",
        "sieben": "seven",
        "acht": "eight",
        "neun": "nine",
        "zehn": "ten",
    },
    edges={
        "seit(?: dem)?": "since",
        "nach(?: dem)?": "after",
        "bis(?: zum)?": "until",
        "vor(?: dem)?": "before",
    },
    phrases=(
        (rf"(?:am |<edge> ){DAY}\. <month>(?: {YEAR})?", "<edge> <day> <month> <year>"),
        (rf"(?:im|<edge>) <month>(?: {YEAR})?", "<edge|in> <month> <year>"),
        (rf"<month> {YEAR}", "<month> <year>"),
        (r"(?:im )?(?:letzt|vergangen|vorig)e[nmrs]? <month>", "last <month>"),
        (r"(?:am )?(?:letzt|vergangen|vorig)e[nmrs]? <weekday>", "last <weekday>"),
        (r"am <weekday>", "on <weekday>"),
        (r"(?:im |in )?(?:letzt|vergangen|vorig)e[nmrs]? <season>", "last <season>"),
        (rf"im <season>(?: {YEAR})?", "in <season> <year>"),
        (r"(?:in den |den |die )?(?:letzt|vergangen)en <count> <unit>", "the last <count> <unit>s"),
        (r"(?:am |im |in der )?(?:letzt|vergangen|vorig)e[nmrs]? <unit>", "last <unit>"),
        (r"vor <count> <unit>", "<count> <unit>s ago"),
        (r"dieses jahr", "this year"),
        (rf"(?:im jahre? |in |<edge> ){YEAR}", "<edge|in> <year>"),
        (r"vorgestern", "the day before yesterday"),
        (r"gestern", "yesterday"),
        (r"heute", "today"),
    ),
    recent="zuletzt|kurzlich|neulich|in letzter zeit|neueste[nrs]?|aktuellste[nrs]?",
    future="nachste[nrms]?|kommende[nrms]?|werden?|wirst|wird|geplant|plan|plane|morgen|ubermorgen|vorhabe?n?",
)

FRENCH: Final = Language(
    function_words="le la les un une des du de je nous vous il elle on et ou ne pas est etait ont avons ai que qui quoi"
    " quand comment quel quelle avec pour dans sur au aux ce cette mon ma mes",
    months=(
        *("janvier", "fevrier", "mars", "avril", "mai", "juin", "juillet", "aout", "septembre", "octobre"),
        *("novembre", "decembre"),
    ),
    weekdays=("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
    seasons={"printemps": "spring", "ete": "summer", "automne": "autumn", "hiver": "winter"},
    units={
        "heures?": "hour",
        "jours?": "day",
        "semaines?": "week",
        "mois": "month",
        "ans?|annees?": "year",
        "week-?end": "weekend",
    },
    numbers={
        "une?": "one",
        "deux": "two",
        "trois": "three",
        "quatre": "four",
        "cinq": "five",
        "six": "six",
        "sept": "seven",
        "huit": "eight",
        "neuf": "nine",
        "dix": "ten",
    },
    edges={"depuis": "since", "apres": "after", "jusqu['’](?:en|au|a)": "until", "avant": "before"},
    phrases=(
        (rf"(?:le |<edge> (?:le )?){DAY}(?:er)? <month>(?: {YEAR})?", "<edge> <day> <month> <year>"),
        (rf"(?:en|au mois de|au mois d['’]|<edge>) <month>(?: {YEAR})?", "<edge|in> <month> <year>"),
        (rf"<month> {YEAR}", "<month> <year>"),
        (r"<month> (?:dernier|passe)", "last <month>"),
        (r"<weekday> (?:dernier|passe)", "last <weekday>"),
        (r"(?:au |l['’])?<season> (?:dernier|passe)", "last <season>"),
        (rf"(?:en|au) <season>(?: {YEAR})?", "in <season> <year>"),
        (r"(?:ces |les |des |pendant les )?<count> derni(?:ers|eres) <unit>", "the last <count> <unit>s"),
        (r"(?:la |le |l['’])?<unit> (?:derniere?|passee?)", "last <unit>"),
        (r"il y a <count> <unit>", "<count> <unit>s ago"),
        (r"cette annee", "this year"),
        (rf"(?:en|<edge>) {YEAR}", "<edge|in> <year>"),
        (r"avant-hier", "the day before yesterday"),
        (r"hier", "yesterday"),
        (r"aujourd['’]hui", "today"),
    ),
    recent="recemment|dernierement|ces derniers (?:temps|jours)|les plus recente?s?|quoi de neuf",
    future="prochaine?s?|demain|prevue?s?|prevoit|prevoyons|planifiee?s?|va|vais|allons|vont",
)

SPANISH: Final = Language(
    function_words="el la los las un una de del yo nosotros me nos y o no es era fue ha han hemos he que quien cuando"
    " como cual donde con para en por sobre mi mis se lo",
    months=(
        *("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre|setiembre"),
        *("octubre", "noviembre", "diciembre"),
    ),
    weekdays=("lunes", "martes", "miercoles", "jueves", "viernes", "sabado", "domingo"),
    seasons={"primavera": "spring", "verano": "summer", "otono": "autumn", "invierno": "winter"},
    units={
        "horas?": "hour",
        "dias?": "day",
        "fin de semana": "weekend",
        "semanas?": "week",
        "mes(?:es)?": "month",
        "anos?": "year",
    },
    numbers={
        "una?": "one",
        "dos": "two",
        "tres": "three",
        "cuatro": "four",
        "cinco": "five",
        "seis": "six",
        "siete": "seven",
        "ocho": "eight",
        "nueve": "nine",
        "diez": "ten",
    },
    edges={"desde": "since", "despues de": "after", "hasta": "until", "antes de": "before"},
    phrases=(
        (rf"(?:el |<edge> (?:el |l )?){DAY} de <month>(?: del? {YEAR})?", "<edge> <day> <month> <year>"),
        (rf"(?:en|durante|<edge>) <month>(?:(?: del?)? {YEAR})?", "<edge|in> <month> <year>"),
        (rf"<month>(?: del?)? {YEAR}", "<month> <year>"),
        (r"(?:el )?(?:<month> pasado|pasado <month>)", "last <month>"),
        (r"(?:el )?(?:<weekday> pasado|pasado <weekday>)", "last <weekday>"),
        (r"(?:el |la )?(?:<season> pasad[oa]|pasad[oa] <season>)", "last <season>"),
        (rf"en (?:el |la )?<season>(?:(?: del?)? {YEAR})?", "in <season> <year>"),
        (
            r"(?:en )?(?:los |las )?(?:ultim[oa]s <count> <unit>|<count> ultim[oa]s <unit>)",
            "the last <count> <unit>s",
        ),
        (r"(?:el |la )?(?:<unit> pasad[oa]|pasad[oa] <unit>)", "last <unit>"),
        (r"hace <count> <unit>", "<count> <unit>s ago"),
        (r"este ano", "this year"),
        (rf"(?:en|<edge>) {YEAR}", "<edge|in> <year>"),
        (r"anteayer|antes de ayer", "the day before yesterday"),
        (r"ayer", "yesterday"),
        (r"hoy", "today"),
    ),
    recent="ultimamente|recientemente|hace poco|mas recientes?|que hay de nuevo",
    future="proxim[oa]s?|manana|planead[oa]s?|previst[oa]s?|va a|voy a|vamos a|van a|planes",
)

LANGUAGES: Final = (GERMAN, FRENCH, SPANISH)


class _Reader:
    """Finds the phrases of one language."""

    def __init__(self, language: Language) -> None:
        self._words: dict[str, list[tuple[re.Pattern[str], str]]] = {
            name: [(re.compile(pattern, re.I), english) for pattern, english in table]
            for name, table in (
                ("month", zip(language.months, ENGLISH_MONTHS, strict=True)),
                ("weekday", zip(language.weekdays, ENGLISH_WEEKDAYS, strict=True)),
                ("season", language.seasons.items()),
                ("unit", language.units.items()),
                ("count", language.numbers.items()),
                ("edge", language.edges.items()),
            )
        }
        self._phrases = [(self._compile(pattern), english) for pattern, english in language.phrases]
        self._future = re.compile(rf"\b(?:{language.future})\b", re.I)
        self.recent = re.compile(rf"\b(?:{language.recent})\b", re.I)

    def _compile(self, phrase: str) -> re.Pattern[str]:
        """Put the words in place of their names; the second use of a name gets no group of its own."""
        used: set[str] = set()

        def words(match: re.Match[str]) -> str:
            name = match[1]
            patterns = [pattern.pattern for pattern, _ in self._words[name]]
            if name == "count":
                patterns.append(r"\d{1,3}")
            # A group needs a name of its own; `pasado martes` and `martes pasado` are two places for one.
            group = name if name not in used else f"{name}_again"
            used.add(name)
            return f"(?P<{group}>{'|'.join(patterns)})"

        pattern = re.sub(r"(?<!P)<(\w+)>", words, phrase)
        return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])".replace(" ", r"\s+"), re.I)

    def find(self, text: str, *, only_phrases: bool) -> list[Translation]:
        """Return the periods that a text without accents names; those of several words only, if so asked."""
        if self._future.search(text):
            return []
        found: list[Translation] = []
        for pattern, english in self._phrases:
            for match in pattern.finditer(text):
                if any(match.start() < other.end and other.start < match.end() for other in found):
                    continue
                if only_phrases and " " not in match[0]:
                    continue
                found.append(Translation(*match.span(), self._say(match, english)))
        return found

    def _say(self, match: re.Match[str], english: str) -> str:
        """Fill an English phrase with what was found; `<edge|in>` is "in" without an edge."""
        groups = {name.removesuffix("_again"): value for name, value in match.groupdict().items() if value}

        def word(place: re.Match[str]) -> str:
            name, default = place[1], place[2] or ""
            value = groups.get(name)
            if value is None:
                return default
            known = self._words.get(name, ())
            return next((word for pattern, word in known if pattern.fullmatch(value)), value)

        return " ".join(re.sub(r"<(\w+)(?:\|(\w+))?>", word, english).split())


@lru_cache(maxsize=len(LANGUAGES))
def _reader(at: int) -> _Reader:
    """Return the reader of a language, whose patterns are compiled on first use."""
    return _Reader(LANGUAGES[at])


_FUNCTION_WORDS: Final = tuple(frozenset(language.function_words.split()) for language in LANGUAGES)
_ENGLISH: Final = frozenset(
    "the a an i we you he she it they is are was were did do does has have had what who when where which how and or not"
    " in on at to of for with about my our".split()
)


def translate(text: str) -> list[Translation]:
    """Return the periods that a question in German, French or Spanish names."""
    plain = _without_accents(text)
    readers, only_phrases = _choose(plain)
    for reader in readers:
        found = reader.find(plain, only_phrases=only_phrases)
        if found:
            return found
    return []


def find_recent(text: str) -> str:
    """Return the words of a question in German, French or Spanish that ask for what is recent; empty if none do."""
    plain = _without_accents(text)
    for reader in _choose(plain)[0]:
        match = reader.recent.search(plain)
        if match is not None:
            return text[match.start() : match.end()]
    return ""


def _choose(text: str) -> tuple[Iterator[_Reader], bool]:
    """Return the readers for a text, and whether its language is unknown, so that single words mean nothing."""
    words = re.findall(r"[^\W\d_]+", text.casefold())
    counts = [sum(word in known for word in words) for known in _FUNCTION_WORDS]
    most, english = max(counts), sum(word in _ENGLISH for word in words)
    if english > most:
        return iter(()), True
    return (_reader(at) for at, count in enumerate(counts) if count == most), not most


def _without_accents(text: str) -> str:
    """Return a text of the same length without accents."""
    return "".join(unicodedata.normalize("NFD", character)[0] for character in text)
