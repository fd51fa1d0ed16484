"""Count tokens with a real tokenizer if one is installed, else with a marked estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

CHARACTERS_PER_TOKEN: Final = 4
"""For the estimate; English prose and code have between 3 and 5."""

ESTIMATE: Final = "estimate"


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Counts tokens. Plans record its name."""

    name: str
    count: Callable[[str], int]

    @property
    def is_estimate(self) -> bool:
        return self.name == ESTIMATE


def estimate_tokens(text: str) -> int:
    """Return one token for every four characters, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@lru_cache(maxsize=1)
def load_tokenizer() -> Tokenizer:
    """Load o200k_base from the extra `tokens`, or return the estimate."""
    try:
        from rs_bpe.bpe import openai
    except ImportError:
        return Tokenizer(ESTIMATE, estimate_tokens)
    return Tokenizer("o200k_base", openai.o200k_base().count)
