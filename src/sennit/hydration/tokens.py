"""How many tokens a text is: by a real tokenizer where one is installed, else an estimate that says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

CHARACTERS_PER_TOKEN: Final = 4
"""Of an estimate; English prose and code have between 3 and 5."""

ESTIMATE: Final = "estimate"


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Counts tokens, and has a name that plans repeat."""

    name: str
    count: Callable[[str], int]

    @property
    def estimates(self) -> bool:
        """Whether it only guesses."""
        return self.name == ESTIMATE


def estimated(text: str) -> int:
    """A token for every four characters, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@lru_cache(maxsize=1)
def tokenizer() -> Tokenizer:
    """o200k_base from the extra `tokens`, or the estimate."""
    try:
        from rs_bpe.bpe import openai
    except ImportError:
        return Tokenizer(ESTIMATE, estimated)
    return Tokenizer("o200k_base", openai.o200k_base().count)
