"""Periods in German, French and Spanish mean what their English phrases mean."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sennit.period_words import LANGUAGES
from sennit.periods import read_time

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "words", "english"),
    [
        ("Was haben wir letzte Woche besprochen?", "letzte Woche", "last week"),
        ("Worüber sprachen wir im März?", "im März", "in March"),
        ("Was war am 4. Mai 2025?", "am 4. Mai 2025", "on 4 May 2025"),
        ("Was hat Lena vor zwei Wochen gesagt?", "vor zwei Wochen", "two weeks ago"),
        ("Was habe ich gestern über die Katze gesagt?", "gestern", "yesterday"),
        ("Was ist seit dem Sommer 2025 neu?", None, ""),
        ("wo waren wir letzten Sommer", "letzten Sommer", "last summer"),
        ("Wer rief am Montag an?", "am Montag", "on Monday"),
        ("Was hat sich seit 2024 geändert?", "seit 2024", "since 2024"),
        ("De quoi avons-nous parlé la semaine dernière ?", "la semaine dernière", "last week"),
        ("Qu'est-ce que nous avons décidé en mars ?", "en mars", "in March"),
        ("Où étions-nous l'été dernier ?", "l'été dernier", "last summer"),
        ("Qui a appelé hier pour le chat ?", "hier", "yesterday"),
        ("Que s'est-il passé il y a trois mois ?", "il y a trois mois", "three months ago"),
        ("Le rendez-vous du vendredi dernier", "vendredi dernier", "last Friday"),
        ("¿De qué hablamos la semana pasada?", "la semana pasada", "last week"),
        ("¿Qué decidimos en marzo de 2025?", "en marzo de 2025", "in March 2025"),
        ("¿Dónde estuvimos el verano pasado?", "el verano pasado", "last summer"),
        ("¿Quién llamó ayer por el gato?", "ayer", "yesterday"),
        ("¿Qué pasó hace dos años?", "hace dos años", "two years ago"),
        ("los últimos tres días", "los últimos tres días", "the last three days"),
        ("Was ist hier passiert?", None, ""),
        ("Was machen wir nächste Woche im März?", None, ""),
        ("Was war im März und im April?", None, ""),
        ("the meeting mars landing en 2020 was about", None, ""),
    ],
)
def test_a_period_in_another_language_is_the_english_one(
    question: str, words: str | None, english: str
) -> None:
    period = read_time(question, NOW).period
    if words is None:
        assert period is None
        return
    expected = read_time(f"what did we say {english}", NOW).period
    assert period is not None
    assert expected is not None
    assert (period.words, period.start, period.end) == (words, expected.start, expected.end)


@pytest.mark.parametrize(
    "question",
    ["Was habe ich zuletzt gegessen?", "Qu'est-ce que j'ai lu récemment ?", "¿Qué he leído últimamente?"],
)
def test_what_is_recent_is_known_in_other_languages(question: str) -> None:
    assert read_time(question, NOW).recent


def test_every_language_has_all_months_and_weekdays() -> None:
    for language in LANGUAGES:
        assert (len(language.months), len(language.weekdays)) == (12, 7)
