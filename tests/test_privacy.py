"""Privacy: a record that a caller may not see appears in no result, count, trace or error for that caller."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sennit
from sennit import Caller, Record
from sennit.errors import AccessDenied, Conflict, InvalidInput, NotFound, SettingsError
from sennit.filters import matches, parse_filter
from sennit.privacy import OWNER, Policy
from sennit.stores.embedded import vector_segment

WORDS = ("harbour", "lights", "ferry", "timetable", "winter", "Priya", "budget", "salt", "kelp", "tide")
LEVELS = ("normal", "sensitive", "private", "unheard-of")
SCOPES = ("public", "me", "team")
TENANTS = ("", "", "acme")

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    count = draw(st.integers(0, 14))
    out = []
    for number in range(count):
        part = draw(st.booleans())
        whole = draw(st.integers(0, 3))
        out.append(
            Record(
                id=f"r{number:02}",
                text=draw(texts),
                title=draw(st.sampled_from(["", "harbour", "ferry timetable"])),
                collection="artifact_chunks"
                if part
                else draw(st.sampled_from(["artifacts", "memory", "default"])),
                parent=f"r{whole:02}" if part else None,
                position=number if part else None,
                sensitivity=draw(st.sampled_from(LEVELS)),
                scope=draw(st.sampled_from(SCOPES)),
                tenant=draw(st.sampled_from(TENANTS)),
                metadata={"n": number % 3},
            )
        )
    return out


callers = st.builds(
    Caller,
    clearance=st.sampled_from(["", "normal", "sensitive", "private"]),
    scopes=st.sets(st.sampled_from(SCOPES)).map(frozenset),
    tenant=st.sampled_from(TENANTS),
    everything=st.booleans(),
)


def answer(db: sennit.Database, caller: Caller, query: str, recipe: str, **more: Any) -> Any:
    """All that a caller is told, without the times and the id of the search."""
    result = db.search(query, recipe=recipe, caller=caller, explain=True, **more).to_dict()
    # Only the owner sees the number of changes.
    apart = {"milliseconds", "query_id", *(["change"] if caller.everything and not caller.tenant else [])}

    def without(values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name not in apart}

    return json.loads(json.dumps(result), object_hook=without)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    record_lists(),
    callers,
    texts,
    st.sampled_from(["default", "rrf", "keyword", "vector", "artifacts"]),
    st.sampled_from([None, {"n": 1}, 'not n = 2 or collection = "memory"']),
    st.integers(0, 2),
)
def test_result_equals_that_of_a_database_without_the_hidden_records(
    body: list[Record], caller: Caller, query: str, recipe: str, filters: Any, neighbours: int
) -> None:
    audience = Policy().audience(caller)
    with sennit.open(":memory:") as whole, sennit.open(":memory:") as part:
        whole.add(body)
        part.add([record for record in body if matches(audience, record)])
        asked: dict[str, Any] = {"filters": filters, "neighbours": neighbours, "limit": 5}
        assert answer(whole, caller, query, recipe, **asked) == answer(part, caller, query, recipe, **asked)
        for record in body:
            assert _why(whole, query, record.id, recipe, caller) == _why(
                part, query, record.id, recipe, caller
            )
            assert whole.get(record.id, caller=caller) == part.get(record.id, caller=caller)


def test_exact_vectors_equal_those_of_a_database_without_the_hidden_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the lists and codes of the vector index are made from all records."""
    monkeypatch.setattr(vector_segment, "IVFPQ_MIN_VECTORS", 100)
    monkeypatch.setattr(vector_segment, "MAX_RESULT_SHARE", 1.0)
    monkeypatch.setattr(vector_segment, "COPY_MAX_VECTORS", 0)
    words = ["harbour", "crane", "tide", "ledger", "winter", "signal", "copper", "lantern"]
    luck = random.Random(4)
    body = [
        Record(
            id=f"{n:03}",
            text=" ".join(luck.choices(words[: 4 if n % 3 else 8], k=6)),
            sensitivity="normal" if n % 3 else "private",
        )
        for n in range(900)
    ]
    reached: list[bool] = []
    near = vector_segment.VectorSegment.nearest

    def watched(self: vector_segment.VectorSegment, *given: Any, exact: bool = False) -> Any:
        reached.append(exact)
        return near(self, *given, exact=exact)

    monkeypatch.setattr(vector_segment.VectorSegment, "nearest", watched)
    with (
        sennit.open(tmp_path / "whole", privacy__exact_vectors=True) as whole,
        sennit.open(tmp_path / "part", privacy__exact_vectors=True) as part,
    ):
        whole.add(body)
        part.add([record for record in body if record.sensitivity == "normal"])
        for db in (whole, part):
            db.admin.optimise()
        for query in ("crane at the harbour", "copper lantern", "winter"):
            assert answer(whole, Caller(), query, "vector") == answer(part, Caller(), query, "vector")
        assert all(reached)
    with sennit.open(tmp_path / "whole") as whole:
        whole.search("crane", recipe="vector")
        assert not reached[-1]


def _why(db: sennit.Database, query: str, record_id: str, recipe: str, caller: Caller) -> Any:
    try:
        return db.why(query, record_id, recipe=recipe, caller=caller).to_dict()
    except NotFound as error:
        return str(error)


def test_change_number_is_shown_only_to_the_owner() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="a", text="harbour"), Record(id="b", text="harbour", sensitivity="private")])
        seen = db.search("harbour", explain=True).trace
        owned = db.search("harbour", explain=True, caller=OWNER).trace
    assert seen is not None
    assert "change" not in seen.state
    assert owned is not None
    assert owned.state["change"]


def test_without_a_caller_only_public_normal_records_are_found() -> None:
    with sennit.open(":memory:") as db:
        db.add(
            [Record(id=f"{s}-{v}", text="harbour", sensitivity=s, scope=v) for s in LEVELS for v in SCOPES]
        )
        assert [hit.id for hit in db.search("harbour")] == ["normal-public"]
        assert len(db) == 1
        assert [record.id for record in db] == ["normal-public"]
        assert db.get("private-public") is None


def test_one_setting_makes_the_default_caller_the_owner() -> None:
    with sennit.open(":memory:", privacy__open=True) as db:
        db.add([Record(id=s, text="harbour", sensitivity=s, scope="me") for s in LEVELS])
        assert {hit.id for hit in db.search("harbour")} == set(LEVELS)
        assert len(db) == len(LEVELS)


def test_a_clearance_reaches_its_level_and_those_below() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id=s, text="harbour", sensitivity=s) for s in LEVELS])
        for clearance, seen in (
            ("", {"normal"}),
            ("normal", {"normal"}),
            ("sensitive", {"normal", "sensitive"}),
            ("private", {"normal", "sensitive", "private"}),
        ):
            assert {hit.id for hit in db.search("harbour", caller=Caller(clearance=clearance))} == seen


def test_levels_and_public_scopes_are_settings() -> None:
    with sennit.open(":memory:", privacy__levels=["open", "secret"], privacy__everyone=["world"]) as db:
        db.add(
            [
                Record(id=f"{s}-{v}", text="x", sensitivity=s, scope=v)
                for s in ("open", "secret")
                for v in ("world", "public")
            ]
        )
        assert [hit.id for hit in db.search("x")] == ["open-world"]
        assert len(db.search("x", caller=Caller(clearance="secret", scopes=frozenset({"public"})))) == 4


def test_an_unknown_clearance_is_refused() -> None:
    with (
        sennit.open(":memory:") as db,
        pytest.raises(InvalidInput, match="lowest first: normal, sensitive, private"),
    ):
        db.search("x", caller=Caller(clearance="cosmic"))
    with pytest.raises((InvalidInput, SettingsError), match="cosmic"):
        sennit.open(":memory:", privacy__clearance="cosmic")


def test_caller_of_another_type_is_refused() -> None:
    with sennit.open(":memory:") as db, pytest.raises(InvalidInput, match=r"sennit\.Caller"):
        db.search("x", caller="root")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="set of names"):
        Caller(scopes="me")  # type: ignore[arg-type]


def test_deployment_rule_can_only_restrict() -> None:
    def weekdays(caller: Caller) -> dict[str, object]:
        return {"kind": "note"} if caller.name != "boss" else {}

    with sennit.open(":memory:", rule=weekdays) as db:
        db.add(
            [
                Record(id="note", text="harbour", kind="note"),
                Record(id="memo", text="harbour", kind="memo"),
                Record(id="secret", text="harbour", kind="note", sensitivity="private"),
            ]
        )
        assert [hit.id for hit in db.search("harbour")] == ["note"]
        assert {hit.id for hit in db.search("harbour", caller=Caller(name="boss"))} == {"memo", "note"}


def test_a_rule_that_fails_fails_the_search() -> None:
    def broken(_: Caller) -> dict[str, object]:
        raise RuntimeError("the directory is down")

    with pytest.raises(RuntimeError, match="directory is down"):
        sennit.open(":memory:", rule=broken)


def test_tenants_share_neither_records_nor_ids() -> None:
    ours, theirs = Caller(tenant="ours", everything=True), Caller(tenant="theirs", everything=True)
    with sennit.open(":memory:", privacy__open=True) as db:
        db.add(
            [
                Record(id="a", text="harbour one", tenant="ours"),
                Record(id="a", text="harbour two", tenant="theirs"),
            ]
        )
        assert [hit.text for hit in db.search("harbour", caller=ours)] == ["harbour one"]
        assert [hit.text for hit in db.search("harbour", caller=theirs, filters='id = "a"')] == [
            "harbour two"
        ]
        assert len(db.search("harbour")) == 0
        assert db.search("harbour", caller=ours, filters={"tenant": "theirs"}).hits == ()
        assert db.remove(["a"], caller=ours) == 1
        found = db.get("a", caller=theirs)
        assert found is not None
        assert found.text == "harbour two"


@pytest.mark.parametrize("name", ["a\x1fb", "\x1f", "a\x1f\x1fb"])
def test_id_cannot_address_another_tenant(name: str) -> None:
    with sennit.open(":memory:", privacy__open=True) as db:
        db.add([Record(id="b", text="theirs", tenant="a"), Record(id=name, text="harbour")])
        found = db.get(name)
        assert found is not None
        assert (found.id, found.text, found.tenant) == (name, "harbour", "")
        theirs = db.get("b", caller=Caller(tenant="a"))
        assert theirs is not None
        assert theirs.text == "theirs"
    with pytest.raises(InvalidInput, match=r"U\+001F"):
        Record(id="x", text="", tenant=name)


def test_a_caller_removes_only_what_it_sees() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="a", text="x"), Record(id="b", text="x", sensitivity="private")])
        assert db.remove(["a", "b"], caller=Caller()) == 1
        assert db.get("b", caller=OWNER) is not None


def test_hidden_collection_behaves_as_unknown() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="a", text="x", collection="diary", sensitivity="private")])
        said = []
        for name in ("diary", "dairy"):
            with pytest.raises(NotFound) as error:
                db.search("x", recipe="artifacts", include=[name])
            said.append(str(error.value).replace(name, ""))
        assert said[0] == said[1]
        assert [hit.id for hit in db.search("x", recipe="artifacts", include=["diary"], caller=OWNER)] == [
            "a"
        ]


def test_remembered_record_has_provenance_and_is_visible_to_its_writer() -> None:
    caller = Caller(scopes=frozenset({"me"}), name="assistant")
    with sennit.open(":memory:") as db:
        record = db.remember(
            "The ferry leaves at nine", caller=caller, source="chat", metadata={"topic": "travel"}
        )
        assert (record.scope, record.sensitivity, record.collection) == ("me", "normal", "memory")
        assert record.metadata == {"topic": "travel", "source": "chat", "remembered_by": "assistant"}
        assert record.timestamp is not None
        assert [hit.id for hit in db.search("ferry", caller=caller)] == [record.id]
        assert not db.search("ferry")
        with pytest.raises(AccessDenied, match="could not read"):
            db.remember("secret", caller=caller, sensitivity="private")


# Tokens


def test_token_admits_its_caller_and_is_stored_as_a_hash(tmp_path: Path) -> None:
    caller = Caller(clearance="sensitive", scopes=frozenset({"team"}), tenant="acme", name="bot")
    with sennit.open(tmp_path / "db", embedding__provider="none") as db:
        token = db.admin.tokens.issue("bot", caller)
        assert token.startswith("sennit_")
        assert db.admin.tokens.find_caller(token) == caller
        for wrong in ("", "sennit_", token[:-1], token + "x", "' OR 1=1 --", "\ud800"):
            assert db.admin.tokens.find_caller(wrong) is None
        assert [known.name for known in db.admin.tokens.all()] == ["bot"]
        with pytest.raises(InvalidInput, match="exists; revoke it first"):
            db.admin.tokens.issue("bot", caller)
    kept = b"".join(file.read_bytes() for file in (tmp_path / "db").iterdir() if file.is_file())
    assert token.encode() not in kept
    assert token.removeprefix("sennit_").encode() not in kept
    with sennit.open(tmp_path / "db", embedding__provider="none") as db:
        db.admin.tokens.revoke("bot")
        assert db.admin.tokens.find_caller(token) is None
        with pytest.raises(NotFound, match="no token"):
            db.admin.tokens.revoke("bot")


def test_levels_of_a_policy() -> None:
    policy = Policy(("a", "b", "c"))
    assert policy.levels_up_to("") == ("a",)
    assert policy.levels_up_to("b") == ("a", "b")


# Writing for a caller.


def test_a_caller_cannot_write_a_record_that_it_could_not_read(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        caller = sennit.Caller(clearance="normal", scopes=frozenset({"me"}))
        with pytest.raises(AccessDenied, match="could not read"):
            db.add([Record(id="a", text="secret", sensitivity="private")], caller=caller)
        with pytest.raises(AccessDenied, match="could not read"):
            db.add_turns([sennit.Turn(session="s", text="secret", scope="team")], caller=caller)
        assert len(db) == 0


def test_a_caller_cannot_replace_a_record_that_it_may_not_see(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db", privacy__open=True) as db:
        db.add([Record(id="a", text="the owner's", sensitivity="private")])
        caller = sennit.Caller(clearance="normal")
        with pytest.raises(Conflict, match="'a' is taken"):
            db.add([Record(id="a", text="mine")], caller=caller)
        stored = db.get("a")
        assert stored is not None
        assert stored.text == "the owner's"
        assert db.remove(["a"], caller=caller) == 0


def test_a_caller_cannot_supersede_a_fact_that_it_may_not_see_and_learns_nothing(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db", privacy__open=True) as db:
        hidden = sennit.Fact(
            subject="Ana", relation="lives in", object="Porto", id="hidden", sensitivity="private"
        )
        db.add_facts([hidden])
        caller = sennit.Caller(clearance="normal")
        errors = []
        for name in ("hidden", "absent"):
            newer = sennit.Fact(subject="Ana", relation="lives in", object="Faro", supersedes=(name,))
            with pytest.raises(NotFound) as caught:
                db.add_facts([newer], caller=caller)
            errors.append(str(caught.value).replace(name, "?"))
        assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("metadata", "allowed"),
    [
        ({"visibility_scope": "me"}, Caller(scopes={"me"})),
        ({"sensitivity": "private"}, Caller(clearance="private")),
        (
            {"sensitivity": "sensitive", "visibility_scope": "team"},
            Caller(clearance="private", scopes={"team"}),
        ),
    ],
)
def test_a_level_or_scope_that_only_the_metadata_states_protects(
    metadata: dict[str, Any], allowed: Caller
) -> None:
    with sennit.open(":memory:") as db:
        db.add([{"id": "diary", "text": "harbour lights", "metadata": metadata}])
        assert not db.search("harbour")
        assert [hit.id for hit in db.search("harbour", caller=allowed)] == ["diary"]
        assert [hit.id for hit in db.search("harbour", caller=allowed, filters=metadata)] == ["diary"]


def test_the_metadata_cannot_loosen_the_scope_of_a_record() -> None:
    record = Record(id="a", text="harbour", scope="me", metadata={"visibility_scope": "public"})
    assert record.scope == "me"


def test_the_filter_field_visibility_scope_is_the_scope() -> None:
    record = Record(id="a", text="harbour", scope="me")
    assert matches(parse_filter('visibility_scope = "me"'), record)
    assert not matches(parse_filter({"visibility_scope": "team"}), record)


@pytest.mark.parametrize("scope", [["me", "team"], 3, "", True])
def test_a_visibility_scope_that_is_no_name_is_refused(scope: object) -> None:
    with pytest.raises(InvalidInput, match="visibility_scope must be the name of one scope"):
        Record(id="a", text="harbour", metadata={"visibility_scope": scope})  # type: ignore[dict-item]
