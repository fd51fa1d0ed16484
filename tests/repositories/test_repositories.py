"""Repositories work over the transactions of any backend: here SQLite and the naive one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.errors import InvalidInput, NotFound
from sennit.places import Folder, Revision
from sennit.privacy import Caller
from sennit.repositories.episodes import EpisodeStore
from sennit.repositories.folders import IndexedFolders
from sennit.repositories.keys import encode_key, key_range, last_number, last_text
from sennit.repositories.tokens import TokenStore
from sennit.stores.contract import RecordsRole
from sennit.stores.open import open_backend
from sennit.testing.naive import naive_backend

_parts = st.lists(st.one_of(st.text(max_size=4), st.integers(0, 1 << 40)), max_size=3)


@pytest.fixture(params=["sqlite", "naive"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordsRole]:
    backend = naive_backend() if request.param == "naive" else open_backend(tmp_path / "db")
    yield backend.records
    backend.records.close()


@given(_parts, _parts)
def test_keys_sort_as_their_tuples_do(one: list[str | int], other: list[str | int]) -> None:
    # A text sorts before a number, as an order of unlike parts has to be chosen.
    ranked = [[(isinstance(part, int), part) for part in parts] for parts in (one, other)]
    assert (encode_key(*one) < encode_key(*other)) == (ranked[0] < ranked[1])
    assert (encode_key(*one) == encode_key(*other)) == (one == other)


@given(_parts, st.one_of(st.text(max_size=4), st.integers(0, 1 << 40)), _parts)
def test_a_range_has_exactly_the_keys_with_its_prefix(
    prefix: list[str | int], part: str | int, other: list[str | int]
) -> None:
    low, high = key_range(*prefix)
    assert low <= encode_key(*prefix, part) < high
    inside = other[: len(prefix)] == prefix and len(other) > len(prefix)
    assert (low <= encode_key(*other) < high) == inside


@given(st.text(max_size=8), st.integers(0, 1 << 60))
def test_the_last_part_of_a_key_is_read_back(text: str, number: int) -> None:
    assert last_text(encode_key("a", text), "a") == text
    assert last_number(encode_key("a", text, number)) == number


def test_a_token_is_found_until_it_is_revoked(records: RecordsRole) -> None:
    tokens = TokenStore(records)
    caller = Caller(clearance="normal", scopes=frozenset({"team", "me"}), tenant="acme", name="reader")
    token = tokens.issue("reader", caller, write=True)
    other = tokens.issue("another", Caller(everything=True))
    with pytest.raises(InvalidInput, match="exists"):
        tokens.issue("reader", caller)
    found = tokens.find(token)
    assert found is not None
    assert (found.name, found.caller, found.write) == ("reader", caller, True)
    assert [one.name for one in tokens.all()] == ["another", "reader"]
    tokens.revoke("reader")
    assert tokens.find(token) is None
    assert tokens.find_caller(other) == Caller(everything=True)
    with pytest.raises(NotFound):
        tokens.revoke("reader")


def test_no_token_is_stored(records: RecordsRole) -> None:
    token = TokenStore(records).issue("reader", Caller())
    with records.state() as state:
        stored = b"".join(key + value for key, value in state.scan(b"", b"\xff"))
    assert token.encode() not in stored


def test_indexed_folders_keep_their_options_and_when_they_were_indexed(records: RecordsRole) -> None:
    folders = IndexedFolders(records, "/home")
    odd = Folder("é", "/else", whole=False, tenant="acme", collection="c", metadata={"team": "search"})
    with records.transaction() as transaction:
        for folder in (Folder("a", "/home/a"), odd):
            folders.put(transaction, folder)
    folders.mark_indexed({"a": Revision("1" * 40), "unknown": None}, complete=True)
    with records.transaction() as transaction:
        folders.put(transaction, Folder("a", "/home/b"))
    assert sorted(folders.places().folders, key=lambda one: one.key) == [Folder("a", "/home/b"), odd]
    assert [str(one.revision) for one in folders.places().folders if one.key == "a"] == ["1" * 8]
    assert IndexedFolders(records, "/moved").places().get("a") == Folder("a", "/moved/b")
    seconds = folders.indexed_at()
    assert seconds["é"] is None
    assert seconds["a"] is not None
    with records.transaction() as transaction:
        folders.delete(transaction, "a")
    assert folders.places().folders == (odd,)


def test_an_episode_numbers_its_turns_and_remembers_keys_latest_first(records: RecordsRole) -> None:
    episodes = EpisodeStore(records)
    for turn, keys in enumerate((["a", "b"], ["b", "c"], []), 1):
        assert episodes.add_plan("", "e", lambda turn: f"plan {turn}", keys, "audience") == turn
    assert episodes.add_plan("acme", "e", str, ["x"], "") == 1
    assert episodes.turns("", "e") == [1, 2, 3]
    assert episodes.turns("", "never") == []
    assert episodes.hydrated_keys("", "e", 4) == ["b", "c", "a"]
    assert episodes.hydrated_keys("", "e", 2) == ["a", "b"]
    assert episodes.hydrated_keys("", "e", 1) == []
    stored = episodes.plan("", "e", 2)
    assert stored is not None
    assert (stored.turn, stored.plan, stored.audience) == (2, "plan 2", "audience")
    assert episodes.plan("", "e", 4) is None
    assert episodes.plan("", "e", -1) is None
