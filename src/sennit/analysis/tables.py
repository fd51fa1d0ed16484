"""The stop words and the character classes of the analysis. A change to any of them changes `ANALYSIS_ID`."""

from __future__ import annotations

from typing import Final

STOP_WORDS: Final = frozenset(
    """
    a am an and any are as at be been being but by can could did do does for from had has have having he her
    here hers him his how i if in into is it its me my no nor not of on or our ours she should so some such
    than that the their theirs them then there these they this those to too was we were what when where which
    who whom whose why will with would you your yours
    arent cant cannot couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont wouldnt
    """.split()
)
"""Articles, prepositions, pronouns, auxiliaries and question words. The question words make the list longer than
the usual thirty-odd words; on conversations they add 4 points of recall@5. Not included, although frequent: words
that are also names, dates or acronyms (us, may, might, one), and comparisons (more, before, under), which did not
improve anything."""

FOLDED_LETTERS: Final = str.maketrans(
    {
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "ħ": "h",
        "ŧ": "t",
        "ı": "i",
        "ĸ": "k",
        "ŋ": "n",
        "æ": "ae",
        "œ": "oe",
        "þ": "th",
        "ƒ": "f",
        # Letters that look like apostrophes are removed.
        "ʼ": None,
        "ʻ": None,
        "ʹ": None,
        # Arabic tatweel only makes a word longer on paper.
        "ـ": None,
    }
)
"""Letters that Unicode does not decompose into a base letter and a mark. Applied after case folding."""

ACCENTS: Final = (
    "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"  # Latin, Greek, Cyrillic
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew points
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"  # Arabic vowel signs and hamza
)
"""Marks that people leave out. Vowel signs of Indic scripts and kana voicing marks are letters, so they stay."""

INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef"
)
"""Zero-width characters, direction marks and variation selectors. They do not change the word."""

UNSPACED: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\uaa60-\uaa7b"  # Burmese
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa0-\uffdc"  # Hangul
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3105-\u312f\u31a0-\u31bf\u3200-\u33ff\ua000-\ua48c"  # Bopomofo, squared forms, Yi
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Scripts written without spaces, or with particles attached (Korean). They are indexed by pairs of characters."""

HAN: Final = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

FOLD_INVARIANT: Final = "\u3005\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fff\uac00-\ud7a3"
"""The part of `UNSPACED` that normalisation and folding do not change. Runs of it skip both."""

SYMBOLS: Final = (
    "\u231a\u231b\u23cf\u23e9-\u23fa\u2600-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
"""Emoji and pictographs. Skin tones (1F3FB to 1F3FF) are left out, so that they do not matter in a search."""

REGIONAL_INDICATORS: Final = "\U0001f1e6-\U0001f1ff"
"""Two of these make a flag, which is one term."""

COMBINING_MARK_BLOCKS: Final = (
    range(0x0300, 0x3400),
    range(0xA000, 0xAC00),
    range(0xFB00, 0x12000),
    range(0x16000, 0x17000),
    range(0x1B000, 0x1F000),
)
"""The blocks with combining marks. Scanning ideographs, Hangul and private use as well would take longer."""
