"""The experiments of a database: two recipes that are compared on live searches."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal, get_args

from sennit.errors import Conflict, InvalidInput, NotFound
from sennit.records import Json
from sennit.repositories.feedback import FeedbackOwner
from sennit.repositories.keys import EXPERIMENT, encode_key, key_range
from sennit.stores.contract import RecordsRole

Unit = Literal["user", "session"]

MAX_EXPERIMENT_NAME: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Two recipes whose results are interleaved in the searches of some users or sessions."""

    name: str
    control: str
    """The recipe that searches use now. A search with another recipe is no part of the experiment."""
    treatment: str
    """The recipe that is tried."""
    unit: Unit = "user"
    """By what searches are assigned, and which searches count as one."""
    share: float = 1.0
    """The share of users or sessions that take part."""
    alpha: float = 0.05
    """The chance that a winner is called although the recipes are equally good."""
    seed: str = ""
    """Random, so that the assignments of different experiments are independent."""
    started: str = ""
    stopped: str = ""
    """Empty while it runs. Both are times in ISO 8601."""

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable() or len(self.name) > MAX_EXPERIMENT_NAME:
            raise InvalidInput(
                f"The name of an experiment has from 1 to {MAX_EXPERIMENT_NAME} printable characters"
            )
        if self.control == self.treatment:
            raise InvalidInput(f"An experiment compares two recipes; both are {self.control!r}")
        if self.unit not in get_args(Unit):
            raise InvalidInput(f"The unit of an experiment is user or session, not {self.unit!r}")
        if (
            isinstance(self.share, bool)
            or not isinstance(self.share, (int, float))
            or not 0 < self.share <= 1
        ):
            raise InvalidInput(f"share must be a number above 0 and at most 1, not {self.share!r}")
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, (int, float)) or not 0 < self.alpha < 1:
            raise InvalidInput(f"alpha must be a number between 0 and 1, not {self.alpha!r}")

    @property
    def is_active(self) -> bool:
        return not self.stopped

    def unit_of(self, owner: FeedbackOwner, user: str, session_id: str) -> str:
        """Return the user or session of a search; empty if it names none. Then each search is a unit of its own."""
        if self.unit == "session":
            return f"{owner.tenant}\0{owner.identity}\0{session_id}" if session_id else ""
        return f"{owner.tenant}\0{owner.identity}" if user else ""

    def takes_part(self, unit: str) -> bool:
        """Return whether a user or session takes part; always the same for the same one."""
        return self._hash("share", unit) < self.share * 2**64

    def coins(self, unit: str, query: str) -> Iterator[bool]:
        """Yield the coins of the draft; the same for the same unit and query, so that a repeated search is stable."""
        number = 0
        while True:
            bits = self._hash("coins", unit, normalise_query(query), str(number))
            for at in range(64):
                yield bool(bits >> at & 1)
            number += 1

    def _hash(self, *parts: str) -> int:
        text = json.dumps([self.seed, *parts])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")

    def to_dict(self) -> dict[str, Json]:
        return {name: value for name, value in asdict(self).items() if name != "seed"}


def normalise_query(query: str) -> str:
    """Return a query without differences of case and blanks."""
    return " ".join(query.casefold().split())


class ExperimentStore:
    """The experiments of one database. At most one of them runs."""

    def __init__(self, records: RecordsRole) -> None:
        self._records = records

    def start(self, experiment: Experiment) -> Experiment:
        """Store an experiment, which runs from now on."""
        begun = replace(experiment, seed=secrets.token_hex(16), started=_now(), stopped="")
        with self._records.transaction() as transaction:
            state = transaction.state
            for _, value in state.scan(*key_range(EXPERIMENT)):
                other = _decode(value)
                if other.name == begun.name:
                    raise Conflict(f"There is an experiment {begun.name!r} already; choose another name")
                if other.is_active:
                    raise Conflict(f"The experiment {other.name!r} runs; stop it first")
            state.put([(encode_key(EXPERIMENT, begun.name), _encode(begun))])
        return begun

    def stop(self, name: str) -> Experiment:
        """End an experiment; its report stays. One that has ended stays as it is."""
        with self._records.transaction() as transaction:
            found = transaction.state.get(encode_key(EXPERIMENT, name))
            if found is None:
                raise NotFound(f"There is no experiment {name!r}")
            experiment = _decode(found)
            if experiment.is_active:
                experiment = replace(experiment, stopped=_now())
                transaction.state.put([(encode_key(EXPERIMENT, name), _encode(experiment))])
        return experiment

    def all(self) -> list[Experiment]:
        """Every experiment, the first first."""
        with self._records.state() as state:
            found = state.scan(*key_range(EXPERIMENT))
        return sorted((_decode(value) for _, value in found), key=lambda one: (one.started, one.name))


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _encode(experiment: Experiment) -> bytes:
    return json.dumps(asdict(experiment)).encode()


def _decode(stored: bytes) -> Experiment:
    return Experiment(**json.loads(stored))
