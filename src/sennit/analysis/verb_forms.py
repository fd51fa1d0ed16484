"""Irregular English verbs: a question says "lose" where the answer says "lost", which no stemmer brings together."""

from __future__ import annotations

from functools import cache
from typing import Final

from sennit.analysis import query_terms

_VERBS: Final = """
    bear bore borne|beat beaten|become became|begin began begun|bend bent|bet|bite bit bitten|bleed bled|blow blew blown
    |break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen
    |come came|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven
    |eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fly flew flown flight
    |forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten
    |give gave given gift|go went gone|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept
    |kneel knelt|know knew known|lead led|lean leant|learn learnt|leave left|lend lent|lie lay lain|light lit
    |lose lost loss|make made|mean meant|meet met|mistake mistook mistaken|pay paid|ride rode ridden|ring rang rung
    |rise rose risen|run ran|see saw seen|seek sought|sell sold sale|send sent|sew sewn|shake shook shaken|shine shone
    |shoot shot|show shown|shrink shrank shrunk|sing sang sung song|sink sank sunk|sit sat|sleep slept|slide slid
    |speak spoke spoken|spell spelt|spend spent|spill spilt|spin spun|spoil spoilt|stand stood|steal stole stolen
    |stick stuck|sting stung|strike struck|swear swore sworn|sweep swept|swell swollen|swim swam swum|swing swung
    |take took taken|teach taught|tear tore torn|throw threw thrown|understand understood|wake woke woken
    |wear wore worn|weave wove woven|weep wept|weigh weight|win won|wind wound|write wrote written
    """
"""The forms of each verb that do not share a stem, with a few nouns for the same act."""


@cache
def _other_forms() -> dict[int, tuple[int, ...]]:
    out: dict[int, tuple[int, ...]] = {}
    for verb in _VERBS.split("|"):
        forms = tuple(dict.fromkeys(term.hash for term in query_terms(verb)))
        for form in forms:
            out[form] = (*out.get(form, ()), *(other for other in forms if other != form))
    return out


def other_forms(term: int) -> tuple[int, ...]:
    """Return the hashes of the other forms of a verb; none for a term that is no form of an irregular verb."""
    return _other_forms().get(term, ())
