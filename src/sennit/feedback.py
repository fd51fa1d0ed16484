"""Feedback: what was shown for a query, and what people did with it, in the terms of User Behavior Insights (UBI) 1.3.

A search that is recorded is a `LoggedQuery`; what happens to one of its results is a `FeedbackEvent`. `Feedback` is what
a caller gives. Neither holds text of a record: a removed record leaves its id behind, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from sennit.errors import InvalidInput, suggest
from sennit.records import MAX_ID_BYTES, Json, as_utc, is_unicode
from sennit.search_parameters import MAX_LOGGED_CHARACTERS, MAX_SHOWN

ACTIONS: Final[Mapping[str, str]] = {
    "impression": "it was shown",
    "click": "it was chosen or opened",
    "cite": "an answer cites it",
    "use": "it was put into a prompt",
    "reject": "it was marked as wrong",
    "judge": "a person graded it; needs a grade",
}
"""The actions that feedback may have. The first two have the names that UBI suggests."""

POSITIVE_ACTIONS: Final = frozenset({"click", "cite", "use"})
"""The actions that say that a result helped."""

MAX_GRADE: Final = 3
"""The grades are those of TREC: 0 is not relevant, 1 related, 2 relevant, 3 exactly what was asked for."""

MAX_NAME_CHARACTERS: Final = 100
"""The limit of UBI for ids of queries, sessions and clients, and for names of actions and applications."""

MAX_MESSAGE_CHARACTERS: Final = 1024
"""The limit of UBI."""


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A result as it was shown; its place in the list is its position."""

    object_id: str
    score: float = 0.0
    relevance: float = 0.0
    team: str = ""
    """The side of an experiment that put it into the list; empty without one."""
    features: tuple[float, ...] = ()
    """What a ranker can learn from, in the order of `ranking.features.FEATURE_NAMES`; empty unless kept."""

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "object_id": self.object_id,
            "score": self.score,
            "relevance": self.relevance,
        }
        if self.team:
            out["team"] = self.team
        if self.features:
            # JSON has no nan.
            out["features"] = [None if math.isnan(value) else value for value in self.features]
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedQuery:
    """A search that was recorded: what was asked, how, and what was shown."""

    query_id: str
    query: str
    recipe: str = ""
    shown: tuple[ShownHit, ...] = ()
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    session_id: str = ""
    client_id: str = ""
    application: str = ""
    user_id: str = ""
    """The name of the caller."""
    tenant: str = ""
    experiment: str = ""
    features_version: int = 0
    """The version of the features of what was shown; 0 if none were kept."""
    reported: bool = False
    """Whether the caller reported the query, because no process here knew it."""

    @property
    def object_ids(self) -> tuple[str, ...]:
        """What was shown, best first."""
        return tuple([hit.object_id for hit in self.shown])

    def position_of(self, object_id: str) -> int | None:
        """Return the position of a record in what was shown, from 1; None if it was not shown."""
        shown = self.object_ids
        return shown.index(object_id) + 1 if object_id in shown else None

    def to_ubi(self) -> dict[str, Json]:
        """Return the query as UBI has it. What UBI has no field for is in `query_attributes`."""
        attributes: dict[str, Json] = {
            "recipe": self.recipe,
            "shown": [hit.to_dict() for hit in self.shown],
        }
        if self.features_version:
            attributes["features_version"] = self.features_version
        for name in ("session_id", "user_id", "tenant", "experiment", "reported"):
            if value := getattr(self, name):
                attributes[name] = value
        return {
            **_filled(self, "application", "client_id"),
            "query_id": self.query_id,
            "user_query": self.query,
            "timestamp": self.timestamp.isoformat(),
            "query_response_hit_ids": list(self.object_ids),
            "query_attributes": attributes,
        }

    @classmethod
    def from_ubi(cls, values: Mapping[str, Any], where: str = "A query") -> LoggedQuery:
        """Return the query of UBI JSON, of sennit or of another program; `where` begins the message of an error."""
        attributes = _object(values, "query_attributes", where)
        ids = _list(values, "query_response_hit_ids", where)
        given = _list(attributes, "shown", where)
        shown = tuple(_shown(hit, where) for hit in (given or [{"object_id": one} for one in ids]))
        return cls(
            query_id=check_name(values.get("query_id"), f"{where}: query_id"),
            query=_text(values.get("user_query"), f"{where}: user_query")[:MAX_LOGGED_CHARACTERS],
            recipe=_text(attributes.get("recipe"), f"{where}: recipe"),
            shown=shown[:MAX_SHOWN],
            timestamp=_time(values, where),
            session_id=_name(attributes, "session_id", where),
            client_id=_name(values, "client_id", where),
            application=_name(values, "application", where),
            user_id=_text(attributes.get("user_id"), f"{where}: user_id"),
            tenant=_text(attributes.get("tenant"), f"{where}: tenant"),
            experiment=_text(attributes.get("experiment"), f"{where}: experiment"),
            features_version=_count(attributes.get("features_version"), f"{where}: features_version"),
            reported=attributes.get("reported") is True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackEvent:
    """What somebody did with one result, or with the answer to a query as a whole."""

    query_id: str
    action_name: str
    object_id: str = ""
    """The id of the record; empty if it is about the whole answer."""
    position: int | None = None
    """Where it was shown, from 1; None if it was not."""
    grade: int | None = None
    """From 0 to 3, for the action `judge`."""
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    session_id: str = ""
    client_id: str = ""
    application: str = ""
    user_id: str = ""
    message: str = ""

    @property
    def is_positive(self) -> bool:
        """Whether it says that the result helped."""
        return self.action_name in POSITIVE_ACTIONS or bool(self.grade)

    def to_ubi(self) -> dict[str, Json]:
        """Return the event as UBI has it. An ordinal of 0 stands for a record that was not shown."""
        out: dict[str, Json] = {
            "action_name": self.action_name,
            "query_id": self.query_id,
            "timestamp": self.timestamp.isoformat(),
            **_filled(self, "session_id", "client_id", "application", "user_id", "message"),
        }
        if self.object_id:
            attributes: dict[str, Json] = {
                "object": {"object_id": self.object_id},
                "position": {"ordinal": self.position or 0},
            }
            if self.grade is not None:
                attributes["grade"] = self.grade
            out["event_attributes"] = attributes
        return out

    @classmethod
    def from_ubi(cls, values: Mapping[str, Any], where: str = "An event") -> FeedbackEvent:
        """Return the event of UBI JSON, of sennit or of another program; `where` begins the message of an error."""
        attributes = _object(values, "event_attributes", where)
        item = _object(attributes, "object", where)
        object_id = item.get("object_id", "")
        ordinal = _object(attributes, "position", where).get("ordinal")
        grade = attributes.get("grade")
        return cls(
            query_id=check_name(values.get("query_id"), f"{where}: query_id"),
            action_name=check_name(values.get("action_name"), f"{where}: action_name"),
            object_id=str(object_id) if type(object_id) is int else check_object_id(object_id, where),
            position=_count(ordinal, f"{where}: ordinal") or None,
            grade=None if grade is None else check_grade(grade),
            timestamp=_time(values, where),
            session_id=_name(values, "session_id", where),
            client_id=_name(values, "client_id", where),
            application=_name(values, "application", where),
            user_id=_text(values.get("user_id"), f"{where}: user_id"),
            message=_text(values.get("message"), f"{where}: message")[:MAX_MESSAGE_CHARACTERS],
        )


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a caller reports: an action on a result of a search, which its `query_id` names."""

    query_id: str
    action_name: str
    object_id: str = ""
    """The id of the record; empty for the whole answer."""
    _: KW_ONLY
    grade: int | None = None
    """From 0 (not relevant) to 3 (exactly what was asked for), for the action `judge` alone."""
    position: int | None = None
    """Where it was seen, from 1; None for its place in the answer."""
    session_id: str = ""
    client_id: str = ""
    application: str = ""
    message: str = ""
    query: str = ""
    """The query, for a search that no process here may remember, with what it showed."""
    recipe: str = ""
    shown: Sequence[str] = ()
    """The ids that were shown, best first; for such a search alone."""

    def __post_init__(self) -> None:
        check_name(self.query_id, "query_id")
        if self.action_name not in ACTIONS:
            raise InvalidInput(
                f"There is no action {self.action_name!r}. {suggest(str(self.action_name), ACTIONS)}"
                f"Actions: {', '.join(ACTIONS)}"
            )
        check_object_id(self.object_id, "object_id")
        if (self.action_name == "judge") != (self.grade is not None):
            raise InvalidInput("The action judge needs a grade from 0 to 3, and no other action has one")
        if self.grade is not None:
            check_grade(self.grade)
            if not self.object_id:
                raise InvalidInput("A grade is about one record; give its id as object_id")
        if self.position is not None and (type(self.position) is not int or not 1 <= self.position < 1 << 31):
            raise InvalidInput(f"position must be a whole number from 1, not {self.position!r}")
        for name in ("session_id", "client_id", "application"):
            check_name(getattr(self, name), name, required=False)
        _bounded(self.message, "message", MAX_MESSAGE_CHARACTERS)
        _text(self.query, "query")
        _text(self.recipe, "recipe")
        if isinstance(self.shown, str) or len(self.shown) > MAX_SHOWN:
            raise InvalidInput(f"shown must be a list of at most {MAX_SHOWN} ids")
        for one in self.shown:
            check_object_id(one, "shown", required=True)
        object.__setattr__(self, "shown", tuple(self.shown))
        if self.shown and not self.query:
            raise InvalidInput("shown tells what a query showed; give the query with it")


def check_name(value: object, what: str, *, required: bool = True) -> str:
    """Return an id or name of UBI; raise InvalidInput if it is none."""
    text = _bounded(value, what, MAX_NAME_CHARACTERS)
    if required and not text:
        raise InvalidInput(f"{what} must not be empty")
    return text


def check_object_id(value: object, what: str, *, required: bool = False) -> str:
    """Return the id of a record; raise InvalidInput if it is none."""
    if not isinstance(value, str) or not is_unicode(value) or len(value.encode()) > MAX_ID_BYTES:
        raise InvalidInput(f"{what}: the id of a record is a text of at most {MAX_ID_BYTES:,} bytes")
    if required and not value:
        raise InvalidInput(f"{what}: the id of a record must not be empty")
    return value


def check_grade(value: object) -> int:
    """Return a grade; raise InvalidInput if it is none."""
    if type(value) is not int or not 0 <= value <= MAX_GRADE:
        raise InvalidInput(f"A grade is a whole number from 0 to {MAX_GRADE}, not {value!r}")
    return value


def _filled(values: object, *names: str) -> dict[str, Json]:
    return {name: value for name in names if (value := getattr(values, name))}


def _bounded(value: object, what: str, limit: int) -> str:
    text = _text(value, what)
    if len(text) > limit:
        raise InvalidInput(f"{what} has {len(text):,} characters; the limit is {limit:,}")
    return text


def _text(value: object, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not is_unicode(value):
        raise InvalidInput(f"{what} must be a text of valid Unicode")
    return value


def _name(values: Mapping[str, Any], name: str, where: str) -> str:
    return check_name(values.get(name), f"{where}: {name}", required=False)


def _count(value: object, what: str) -> int:
    if value is None:
        return 0
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise InvalidInput(f"{what} must be a whole number from 0")
    return value


def _time(values: Mapping[str, Any], where: str) -> datetime:
    given = values.get("timestamp")
    if given is None:
        return datetime.now(UTC)
    try:
        return as_utc(given)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error


def _object(values: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    value = values.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{where}: {name} must be an object, not {type(value).__name__}")
    return value


def _list(values: Mapping[str, Any], name: str, where: str) -> Sequence[Any]:
    value = values.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidInput(f"{where}: {name} must be a list, not {type(value).__name__}")
    return value


def _shown(value: object, where: str) -> ShownHit:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{where}: each hit that was shown must be an object")
    features = _list(value, "features", where)
    return ShownHit(
        check_object_id(value.get("object_id"), where, required=True),
        _number(value.get("score"), where),
        _number(value.get("relevance"), where),
        _text(value.get("team"), f"{where}: team"),
        tuple(math.nan if one is None else _number(one, where) for one in features),
    )


def _number(value: object, where: str) -> float:
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidInput(f"{where}: {value!r} must be a number")
    return float(value)
