"""The parameters of a search: what each means and which values it takes, declared once for every interface.

The library, the command line, HTTP, MCP and the terminal interface take their help texts, their JSON Schema and their
checks from here, so a value is accepted everywhere or refused everywhere with the same words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, SupportsIndex

from sennit.errors import InvalidInput
from sennit.records import MAX_ID_BYTES, is_unicode

MAX_LOGGED_CHARACTERS: Final = 2000
"""Of a longer query, feedback keeps the beginning. Thousands of queries are held in memory, so a limit is needed."""

MAX_SHOWN: Final = 100
"""Hits of a search that feedback keeps: nobody looks at more, and metrics look no deeper."""

MAX_QUOTED_CHARACTERS: Final = 80
"""Characters of a refused value that an error shows."""


class Parameter(Protocol):
    """A declared parameter."""

    @property
    def name(self) -> str: ...

    @property
    def help(self) -> str:
        """What it means, for help texts and schemas."""

    @property
    def bounds(self) -> str:
        """Which values it takes, in words, for help texts."""

    @property
    def schema(self) -> dict[str, Any]:
        """Which values it takes, as keywords of JSON Schema."""

    def check(self, value: Any) -> Any:
        """Return a valid value; raise InvalidInput for another."""


@dataclass(frozen=True, slots=True)
class Text:
    """A string with a maximum length."""

    name: str
    help: str
    max_characters: int
    advice: str = ""
    """What to do about a value that is too long."""

    @property
    def bounds(self) -> str:
        return f"at most {self.max_characters:,} characters"

    @property
    def schema(self) -> dict[str, Any]:
        return {"maxLength": self.max_characters}

    def check(self, value: object) -> str:
        if not isinstance(value, str):
            raise InvalidInput(f"The {self.name} must be a string, not {type(value).__name__}")
        if len(value) > self.max_characters:
            raise InvalidInput(
                f"The {self.name} has {len(value):,} characters; the limit is {self.max_characters:,}.{self.advice}"
            )
        if not is_unicode(value):
            raise InvalidInput(f"The {self.name} has a lone surrogate; it is not valid Unicode")
        return value


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number within a range."""

    name: str
    help: str
    minimum: int
    maximum: int

    @property
    def bounds(self) -> str:
        return f"from {self.minimum:,} to {self.maximum:,}"

    @property
    def schema(self) -> dict[str, Any]:
        return {"minimum": self.minimum, "maximum": self.maximum}

    def check(self, value: object) -> int:
        number = _whole_number(value)
        if number is None or not self.minimum <= number <= self.maximum:
            raise InvalidInput(f"{self.name} must be a whole number {self.bounds}, not {_quote(value)}")
        return number


@dataclass(frozen=True, slots=True)
class Texts:
    """A list of strings, limited in number and length."""

    name: str
    help: str
    max_items: int
    max_characters: int
    min_characters: int = 0
    items: str = "strings"
    """What the strings are."""

    @property
    def bounds(self) -> str:
        return f"at most {self.max_items:,}, each of at most {self.max_characters:,} characters"

    @property
    def schema(self) -> dict[str, Any]:
        item: dict[str, Any] = {"type": "string", "maxLength": self.max_characters}
        if self.min_characters:
            item["minLength"] = self.min_characters
        return {"maxItems": self.max_items, "items": item}

    def check(self, value: object) -> tuple[str, ...]:
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise InvalidInput(f"{self.name} must be a list of {self.items}, not {_quote(value)}")
        items = tuple(value)
        if len(items) > self.max_items:
            raise InvalidInput(f"{self.name} has {len(items):,} entries; the limit is {self.max_items:,}.")
        for item in items:
            if not isinstance(item, str):
                raise InvalidInput(f"{self.name} must be a list of {self.items}; {_quote(item)} is none.")
            if not self.min_characters <= len(item) <= self.max_characters:
                raise InvalidInput(
                    f"{self.name} has an entry of {len(item):,} characters; an entry has from {self.min_characters} "
                    f"to {self.max_characters:,}."
                )
            if not is_unicode(item):
                raise InvalidInput(f"{self.name} has an entry with a lone surrogate; it is not valid Unicode")
        return items


@dataclass(frozen=True, slots=True)
class Hours:
    """A time window in hours; True takes it from the settings, False has none."""

    name: str
    help: str
    maximum: float

    @property
    def bounds(self) -> str:
        return f"above 0 and at most {self.maximum:,.0f}"

    @property
    def schema(self) -> dict[str, Any]:
        return {"exclusiveMinimum": 0, "maximum": self.maximum}

    def check(self, value: object) -> float | bool:
        # Not a number is neither above 0 nor below the maximum.
        if isinstance(value, bool) or (isinstance(value, (int, float)) and 0 < value <= self.maximum):
            return value
        raise InvalidInput(
            f"{self.name} must be True or a number of hours {self.bounds}, not {_quote(value)}"
        )


@dataclass(frozen=True, slots=True)
class Share:
    """A number from 0 to 1."""

    name: str
    help: str

    @property
    def bounds(self) -> str:
        return "from 0 to 1"

    @property
    def schema(self) -> dict[str, Any]:
        return {"minimum": 0, "maximum": 1}

    def check(self, value: object) -> float:
        # Not a number is neither 0 or more nor 1 or less.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise InvalidInput(f"{self.name} must be a number {self.bounds}, not {_quote(value)}")
        return float(value)


@dataclass(frozen=True, slots=True)
class AutoShare:
    """A number from 0 to 1, or `auto`."""

    name: str
    help: str

    @property
    def bounds(self) -> str:
        return "from 0 to 1, or auto"

    @property
    def schema(self) -> dict[str, Any]:
        return {"minimum": 0, "maximum": 1}

    def check(self, value: object) -> float | Literal["auto"]:
        if value == "auto":
            return "auto"
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
            return float(value)
        raise InvalidInput(f"{self.name} must be a number {self.bounds}, not {_quote(value)}")


def _whole_number(value: object) -> int | None:
    """Return an int, also of the kinds of numpy; None for anything else, also for True."""
    if type(value) is int:
        return value
    return value.__index__() if isinstance(value, SupportsIndex) and not isinstance(value, bool) else None


def _quote(value: object) -> str:
    return repr(value)[:MAX_QUOTED_CHARACTERS]


QUERY: Final = Text(
    "query", "A question or a few words, in any language.", 100_000, " Search for a part of it."
)
"""A longer text is a document, and belongs in the database."""

RECIPE: Final = Text("recipe", "How to search.", 200)

LIMIT: Final = Count("limit", "Maximum number of results. Default: the recipe's limit.", 1, 1000)
"""A recipe may allow fewer: the field `max_limit`."""

PROJECT: Final = Text(
    "project",
    "Search only this project: the name or the path of an indexed folder; `all` for every one.",
    4096,
)

COLLECTIONS: Final = Texts(
    "collections",
    "Search only these collections.",
    max_items=100,
    max_characters=MAX_ID_BYTES,
    min_characters=1,
    items="collection names",
)

KEYWORDS: Final = Texts(
    "keywords",
    "Texts to match exactly. Default: extracted from the query.",
    max_items=100,
    max_characters=1000,
)

INCLUDE: Final = Texts(
    "include",
    "Optional collections of the recipe to search as well.",
    max_items=100,
    max_characters=MAX_ID_BYTES,
    min_characters=1,
    items="collection names",
)

NEIGHBOURS: Final = Count("neighbours", "Chunks to add before and after each chunk that is found.", 0, 50)

EDITOR: Final = Text(
    "editor",
    "Code open in the user's editor; its keywords are added to the query.",
    500_000,
    " Give a part of it.",
)
"""Escaped as JSON, a character takes at most twelve bytes, so this much always fits into the body of a request."""

LANGUAGE: Final = Text("language", "The programming language of that code. Default: detected.", 100)

LOOK_BACK: Final = Hours(
    "look_back", "Leave out what is older than this many hours, where the recipe uses it.", 1_000_000.0
)

SESSION_ID: Final = Text("session_id", "The session of the user, for feedback and experiments.", 100)
"""The limit is that of User Behavior Insights; so the next."""

CLIENT_ID: Final = Text("client_id", "The browser or program that searches, for feedback.", 100)

MIN_RELEVANCE: Final = Share("min_relevance", "Leave out what is less likely than this to answer the query.")

RECENCY: Final = AutoShare(
    "recency",
    "How much age counts, where the recipe uses it: 0 ignores it, 1 multiplies a score by its decay factor.",
)
