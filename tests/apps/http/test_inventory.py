"""What the service says about what it holds, by whom it is asked, and removing more than one record."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from .conftest import Service, assert_error


def test_status_and_collections_count_what_the_token_may_see(service: Service) -> None:
    reader = service.get("/v1/status", "reader").json()
    owner = service.get("/v1/status", "owner").json()
    assert owner["records"] == reader["records"] + 1
    assert "database" not in reader
    assert reader["roles"]["records"] == "sqlite"
    listed = service.get("/v1/collections", "reader").json()["collections"]
    assert listed == reader["collections"]
    assert sum(one["records"] for one in listed) == reader["records"]
    assert service.get("/v1/collections", "other").json()["collections"] == [
        {"name": "default", "records": 2}
    ]


def test_records_are_listed_page_by_page_and_by_filter(service: Service) -> None:
    first = service.get("/v1/records?limit=1", "reader").json()
    assert len(first["records"]) == 1
    assert first["next"] == first["records"][0]["id"]
    rest = service.get(f"/v1/records?after={quote(first['next'])}", "reader").json()
    assert rest["next"] is None
    assert 1 + len(rest["records"]) == first["total"] == rest["total"]
    where = quote("kind = 'report'")
    assert [one["id"] for one in service.get(f"/v1/records?filter={where}").json()["records"]] == ["harvest"]
    assert [one["id"] for one in service.get("/v1/records?collection=history").json()["records"]] == [
        "said/1"
    ]
    assert service.get(f"/v1/records?filter={quote('sensitivity = ')}", "reader").status_code == 422
    hidden = quote("sensitivity = 'private'")
    assert service.get(f"/v1/records?filter={hidden}", "reader").json()["total"] == 0


def test_a_record_is_fetched_by_id_short_id_or_location(service: Service) -> None:
    assert service.get("/v1/records/harvest").json()["title"] == "Harvest report"
    assert service.get("/v1/records/harves").json()["id"] == "harvest"
    assert service.get("/v1/records/said/1").json()["id"] == "said/1"
    service.post("/v1/records", {"id": "note", "text": "x", "path": "docs/a.md", "lines": [3, 9]})
    assert service.get("/v1/records/docs/a.md:5").json()["id"] == "note"
    assert service.get("/v1/why?query=x&id=docs/a.md:3-9").json()["id"] == "note"
    assert "nearest" in assert_error(service.get("/v1/records/harvestt"), 404, "not_found")


def test_a_hidden_record_is_not_found_and_not_named(service: Service) -> None:
    for reference in ("diary", "diar", "dairy"):
        message = assert_error(service.get(f"/v1/records/{reference}", "reader"), 404, "not_found")
        assert "diary" not in message.replace(repr(reference), "")


def test_records_are_removed_by_filter(service: Service) -> None:
    assert_error(service.delete("/v1/records", "writer"), 422, "invalid_request")
    assert_error(service.delete("/v1/records?filter=", "writer"), 422, "invalid_request")
    where = quote("kind = 'report'")
    assert_error(service.delete(f"/v1/records?filter={where}", "reader"), 403, "forbidden")
    assert service.delete(f"/v1/records?filter={where}", "writer").json() == {"removed": 1}
    hidden = quote("sensitivity = 'private'")
    assert service.delete(f"/v1/records?filter={hidden}", "writer").json() == {"removed": 0}
    assert service.get("/v1/records/diary", "owner").status_code == 200
    assert service.get("/v1/records/harvest", "other").status_code == 200


def test_a_session_is_listed_and_forgotten(service: Service) -> None:
    assert service.get("/v1/sessions").json()["sessions"] == [{"name": "s1", "records": 1}]
    assert_error(service.delete("/v1/sessions/s1", "other"), 404, "not_found")
    assert service.delete("/v1/sessions/s1", "writer").json() == {"removed": 1}
    assert service.get("/v1/sessions").json()["sessions"] == []
    assert_error(service.delete("/v1/sessions/s1", "writer"), 404, "not_found")


def test_a_second_removal_of_an_id_does_not_remove_a_longer_one(service: Service) -> None:
    for name in ("note-1", "note-17"):
        service.post("/v1/records", {"id": name, "text": "x"})
    assert service.delete("/v1/records/note-1", "writer").json() == {"removed": 1}
    assert_error(service.delete("/v1/records/note-1", "writer"), 404, "not_found")
    assert service.get("/v1/records/note-17").status_code == 200


def test_the_source_of_a_record_without_lines_is_the_part_that_it_cites(
    service: Service, tmp_path: Path
) -> None:
    folder = tmp_path / "boats"
    folder.mkdir()
    (folder / "boats.csv").write_text("name,length\nMarlin,7\nTern,3\n")
    service.db.index(folder)
    [row] = [record for record in service.db if "Tern" in record.text]
    found = service.get("/v1/source", id=row.id).json()
    assert (found["text"], found["file"], found["problem"]) == ("name: Tern\nlength: 3\n", True, "")
