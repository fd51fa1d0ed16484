"""How a question is put to the sources beside its own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sennit.records import Json

HINT_WEIGHT: Final = 0.3
"""What all hints together count in meaning, and each of them in words; the question counts 1."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What is embedded instead of the question, and words that count a little beside it.

    The search by words is always asked the question itself.
    """

    vector_text: str | None = None
    hints: tuple[str, ...] = ()
    hint_weight: float = HINT_WEIGHT
    transform: Mapping[str, Json] = field(default_factory=dict)
    """How `vector_text` came about: original, used, by, milliseconds and perhaps error. For the trace."""

    def to_dict(self) -> dict[str, Json]:
        """What the trace says of it; empty when nothing was changed."""
        out = dict(self.transform)
        if self.vector_text is not None:
            out.setdefault("used", self.vector_text)
        if self.hints:
            out |= {"hints": list(self.hints), "hint_weight": self.hint_weight}
        return out


AS_ASKED: Final = Wording()
