"""A table `segments` with a generated tsvector beside a Qdrant collection, both owned by somebody else, for `memory`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from scripts.servers.common import ServerUnavailable
from scripts.servers.postgres import PostgresServer
from scripts.servers.process import running
from scripts.servers.qdrant import QdrantCluster

import sennit
from sennit import Caller, Fact
from sennit.context.briefing import briefing, memory_from_record
from sennit.embedding import EmbeddingSpec, create_embedder
from sennit.settings import load_settings

psycopg = pytest.importorskip("psycopg")
qdrant_client = pytest.importorskip("qdrant_client")

pytestmark = pytest.mark.servers

QUESTION = "What did I tell Priya about vacation?"
GOA = "We should plan that Goa trip, Priya"
TOLD = "I told Priya we can do March for vacation"
DATES = "Priya said she needs to check dates"
FLIGHTS = "Looking at flights to Goa for next month"
SECRET = "I told Priya about the surprise vacation"
FACT = "Rajesh -> Priya: planning vacation to Goa in March"

SEGMENTS = (
    (1, GOA, "vacation", 5, "normal"),
    (2, TOLD, "", 3, "normal"),
    (3, DATES, "", 3, "normal"),
    (4, FLIGHTS, "", 45, "normal"),
    (5, SECRET, "", 1, "private"),
)
"""Number, text, topic, age in days, and level."""

CONFIGURATION = """
[postgres]
url = "{postgres}"

[qdrant]
urls = ["{qdrant}"]

[attached.segments]
server = "postgres"
id = "id"
text = "content"
time = "created_at"
sensitivity = "sensitivity"
keyword = "content_tsvector"
collection = "history"
metadata = ["speaker"]

[attached.segment_vectors]
server = "qdrant"
source = "segments"
id = "segment_id"
vector = "dense"
sensitivity = "sensitivity"
records_of = "segments"
collection = "history"
"""


@pytest.fixture(scope="module")
def postgres(leave_out: Callable[[str], NoReturn]) -> Iterator[str]:
    """The table, which its owner has filled. A topic weighs more than the words of a segment."""
    try:
        with running(PostgresServer()) as server:
            with psycopg.connect(server.dsn(), autocommit=True) as owner:
                owner.execute(
                    "CREATE TABLE segments (id int PRIMARY KEY, content text, topic text, speaker text, "
                    "created_at timestamptz, sensitivity text, content_tsvector tsvector GENERATED ALWAYS AS "
                    "(setweight(to_tsvector('english', topic), 'A') || to_tsvector('english', content)) STORED)"
                )
                for number, text, topic, days, level in SEGMENTS:
                    written = datetime.now(UTC) - timedelta(days=days)
                    owner.execute(
                        "INSERT INTO segments VALUES (%s, %s, %s, 'Rajesh', %s, %s)",
                        (number, text, topic, written, level),
                    )
            yield server.dsn()
    except ServerUnavailable as error:
        leave_out(str(error))


@pytest.fixture(scope="module")
def qdrant(leave_out: Callable[[str], NoReturn]) -> Iterator[QdrantCluster]:
    """The collection. Its owner embeds in the background, and has not come to the third segment yet."""
    models = qdrant_client.models
    try:
        with running(QdrantCluster(1)) as cluster:
            client = qdrant_client.QdrantClient(url=cluster.urls[0], check_compatibility=False)
            size = models.VectorParams(size=256, distance=models.Distance.COSINE)
            client.create_collection("segments", {"dense": size})
            embedder = create_embedder(EmbeddingSpec())
            assert embedder is not None
            points = [
                models.PointStruct(
                    id=number,
                    vector={"dense": embedder.embed_documents([text])[0].tolist()},
                    payload={"segment_id": number, "sensitivity": level},
                )
                for number, text, _, _, level in SEGMENTS
                if text != DATES
            ]
            client.upsert("segments", points)
            yield cluster
    except ServerUnavailable as error:
        leave_out(str(error))


@pytest.fixture
def db(postgres: str, qdrant: QdrantCluster, tmp_path: Path) -> Iterator[sennit.Database]:
    config = tmp_path / "sennit.toml"
    config.write_text(CONFIGURATION.format(postgres=postgres, qdrant=qdrant.urls[0]))
    settings = load_settings(config, overrides={"privacy.open": False})
    with sennit.open(tmp_path / "db", settings=settings) as db:
        fact = Fact(
            subject="Rajesh", relation="planning", object="Priya", text="planning vacation to Goa in March"
        )
        db.add_facts([fact])
        yield db


NORMAL = Caller(clearance="normal")


def test_the_worked_example_has_its_figures_in_one_answer(db: sennit.Database) -> None:
    result = db.search(QUESTION, recipe="memory", recency=1, explain=True, caller=NORMAL)
    assert not result.degraded
    hits = {hit.text: hit for hit in result}
    assert set(hits) == {GOA, TOLD, DATES, FLIGHTS, FACT}
    told, flights = hits[TOLD].explanation, hits[FLIGHTS].explanation
    assert told is not None
    assert told.fused == pytest.approx(1 / 62 + 1 / 61)
    assert round(told.fused, 4) == 0.0325
    assert round(hits[TOLD].score, 4) == 0.0303
    assert flights is not None
    assert round(flights.fused, 4) == 0.0159
    assert round(hits[FLIGHTS].score, 4) == 0.0056
    assert hits[FACT].score == pytest.approx(1 / 61)
    assert hits[TOLD].id == "segments/2"
    assert db.store.count() == 1, "only the fact is a record; nothing was copied"


def test_the_prompt_block_is_that_of_the_example(db: sennit.Database) -> None:
    result = db.search(QUESTION, recipe="memory", caller=NORMAL)
    lines = briefing([memory_from_record(hit.record) for hit in result]).splitlines()
    assert set(lines[3:-1]) == {
        *(f'- Rajesh said: "{text}"' for text in (GOA, TOLD, DATES, FLIGHTS)),
        f"- {FACT}",
    }


def test_who_may_not_see_a_segment_does_not_find_it_by_either_server(db: sennit.Database) -> None:
    seen = {hit.text for hit in db.search(QUESTION, recipe="memory", caller=Caller(clearance="private"))}
    assert SECRET in seen
    for recipe in ("memory", "keyword", "vector"):
        found = db.search(QUESTION, recipe=recipe, caller=NORMAL, explain=True)
        assert SECRET not in {hit.text for hit in found}
        assert "surprise" not in str(found.trace)


def test_a_period_and_a_field_narrow_both(db: sennit.Database) -> None:
    since = (datetime.now(UTC) - timedelta(days=4)).isoformat()
    found = db.search(QUESTION, recipe="memory", caller=NORMAL, filters=f'timestamp >= "{since}"')
    assert {hit.text for hit in found} >= {TOLD, DATES}
    assert not {hit.text for hit in found} & {GOA, FLIGHTS}
    assert not db.search(QUESTION, recipe="vector", caller=NORMAL, filters={"speaker": "Priya"}).hits


def test_doctor_has_nothing_to_say_against_it(db: sennit.Database) -> None:
    found = [one for one in db.admin.check(quick=True) if one.check.startswith("attached.")]
    assert [(one.check, one.level) for one in found] == [
        ("attached.segments", "ok"),
        ("attached.segment_vectors", "ok"),
    ]


def test_a_server_that_is_killed_is_named_and_used_again_without_a_restart(
    db: sennit.Database, qdrant: QdrantCluster
) -> None:
    qdrant.nodes[0].kill()
    try:
        result = db.search(QUESTION, recipe="memory", caller=NORMAL)
        assert {hit.text for hit in result} >= {GOA, TOLD, DATES}
        assert any("segment_vectors" in one.reason and "Qdrant" in one.reason for one in result.degraded)
    finally:
        qdrant.nodes[0].start()
    result = db.search(QUESTION, recipe="memory", caller=NORMAL)
    assert not result.degraded
    assert FLIGHTS in {hit.text for hit in result}
