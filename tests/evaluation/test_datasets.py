"""Reading collections, and the errors and warnings about invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.folders import DOCUMENTS, QUERIES, write_folder
from sennit.errors import InvalidInput, NotFound, SennitError
from sennit.evaluation.datasets import read_collection


def test_folder_is_read_with_titles_metadata_and_grades(tmp_path: Path) -> None:
    found = read_collection(write_folder(tmp_path / "fruit"))
    assert found.name == "fruit"
    assert [(record.id, record.title) for record in found.documents] == [
        ("apple", "Apples"),
        ("pear", ""),
        ("plum", ""),
        ("brick", ""),
    ]
    assert found.documents[0].metadata == {"shelf": "a"}
    assert [query.text for query in found.queries] == ["green pear", "red"]
    assert found.judgements == {"q1": {"pear": 1}, "q2": {"apple": 1, "brick": 2}}
    assert found.warnings == ()


def test_corpus_pointer_with_a_relative_path(tmp_path: Path) -> None:
    write_folder(tmp_path / "first")
    second = write_folder(tmp_path / "second")
    (second / "corpus.jsonl").unlink()
    (second / "CORPUS").write_text("../first/corpus.jsonl\n", encoding="utf-8")
    assert len(read_collection(second).documents) == len(DOCUMENTS)


@pytest.mark.parametrize("name", ["", "/etc/hostname", "a\nb", "../nowhere/corpus.jsonl"])
def test_invalid_corpus_pointer_is_an_error(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "c")
    (folder / "corpus.jsonl").unlink()
    (folder / "CORPUS").write_text(name, encoding="utf-8")
    with pytest.raises((InvalidInput, NotFound), match="CORPUS"):
        read_collection(folder)


def test_judgements_at_the_beir_path_without_a_header(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c")
    (folder / "qrels.tsv").unlink()
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("q1\tpear\t1\n", encoding="utf-8")
    assert read_collection(folder).judgements == {"q1": {"pear": 1}}


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_error_names_a_missing_file(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "c")
    (folder / name).unlink()
    with pytest.raises(NotFound, match=name):
        read_collection(folder)


def test_error_names_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        read_collection(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ('{"_id": "a", "text": "x"}\n\n{"_id": "b", "te', r"corpus\.jsonl:3: not a line of JSON"),
        ("[1]\n", r"corpus\.jsonl:1: must be an object"),
        ('{"text": "x"}\n', r"corpus\.jsonl:1: _id must be"),
        ('{"_id": "", "text": "x"}\n', r"corpus\.jsonl:1: _id must be"),
        ('{"_id": "a"}\n', r"corpus\.jsonl:1: text must be a string, and it is missing"),
        ('{"_id": "a", "text": 1}\n', r"corpus\.jsonl:1: text must be a string\."),
        ('{"_id": "a", "text": "x", "metadata": []}\n', r"corpus\.jsonl:1: metadata must be an object"),
        ('{"_id": "a", "text": "\\ud800"}\n', r"corpus\.jsonl:1: Record\.text has a lone surrogate"),
        ('{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n', r"corpus\.jsonl:2: .*earlier document"),
        ("[" * 100_000, r"corpus\.jsonl:1: not a line of JSON"),
        ("", "the corpus is empty"),
    ],
)
def test_error_in_a_document_names_file_and_line(tmp_path: Path, documents: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_collection(write_folder(tmp_path / "c", documents=documents))


@pytest.mark.parametrize(
    ("queries", "says"),
    [
        ('{"_id": "q1"}\n', r"queries\.jsonl:1: text"),
        ('{"_id": "q1", "text": "x"}\n{"_id": "q1", "text": "y"}\n', r"queries\.jsonl:2: .*earlier query"),
        ("", r"queries\.jsonl is empty"),
    ],
)
def test_error_in_a_query_names_file_and_line(tmp_path: Path, queries: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_collection(write_folder(tmp_path / "c", queries=queries))


@pytest.mark.parametrize(
    ("judged", "says"),
    [
        ("query-id\tcorpus-id\tscore\nq1\tpear\n", r"qrels\.tsv:2: needs query-id"),
        ("q1 pear 1\n", r"qrels\.tsv:1: needs query-id"),
        ("q1\tpear\t1\nq2\tapple\tmuch\n", r"qrels\.tsv:2: the score must be an integer, not 'much'"),
        ("query-id\tcorpus-id\tscore\n", r"qrels\.tsv has no judgements"),
        ("", r"qrels\.tsv has no judgements"),
        ("other\tpear\t1\n", "do the ids agree"),
        ("q1\tpear\t0\n", "no relevant document for any query"),
    ],
)
def test_error_in_a_judgement_names_file_and_line(tmp_path: Path, judged: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_collection(write_folder(tmp_path / "c", judged=judged))


def test_invalid_utf8_is_an_error_with_the_file_name(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c")
    (folder / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "\xff"}\n')
    with pytest.raises(SennitError, match=r"queries\.jsonl: not UTF-8"):
        read_collection(folder)


def test_judgements_of_unknown_ids_give_a_warning(tmp_path: Path) -> None:
    judged = "q1\tpear\t1\nq1\tghost\t1\nq2\tghost\t1\nq2\tapple\t1\nq9\tpear\t1\nq1\tspectre\t0\n"
    found = read_collection(write_folder(tmp_path / "c", judged=judged))
    queries, documents = found.warnings
    assert "names 1 queries that are not in queries.jsonl, such as 'q9'" in queries
    assert "names 1 relevant documents that are not in the corpus, such as 'ghost'" in documents
    assert found.judgements["q1"] == {"pear": 1, "ghost": 1, "spectre": 0}


def test_queries_without_relevant_documents_are_left_out_with_a_warning(tmp_path: Path) -> None:
    found = read_collection(write_folder(tmp_path / "c", judged="q2\tapple\t1\nq1\tpear\t0\n"))
    assert [query.id for query in found.queries] == ["q2"]
    assert found.warnings == ("1 of 2 queries have no relevant document and are left out",)


def test_digest_depends_on_documents_only(tmp_path: Path) -> None:
    first = read_collection(write_folder(tmp_path / "a"))
    same = read_collection(write_folder(tmp_path / "b", queries=QUERIES[:1]))
    other = read_collection(
        write_folder(tmp_path / "c", documents=[*DOCUMENTS[:-1], {"_id": "brick", "text": "x"}])
    )
    assert first.digest == same.digest != other.digest
