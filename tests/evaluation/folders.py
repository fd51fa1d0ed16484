"""Writes small collections in the BEIR format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCUMENTS: Sequence[Mapping[str, Any]] = (
    {"_id": "apple", "title": "Apples", "text": "An apple is a red fruit.", "metadata": {"shelf": "a"}},
    {"_id": "pear", "title": "", "text": "A pear is a green fruit.", "metadata": {"shelf": "b"}},
    {"_id": "plum", "text": "A plum is a blue fruit.", "metadata": {"shelf": "a"}},
    {"_id": "brick", "title": None, "text": "A brick is a red stone.", "metadata": None},
)
QUERIES: Sequence[Mapping[str, Any]] = (
    {"_id": "q1", "text": "green pear", "metadata": {"shelf": "b", "kind": 2}},
    {"_id": "q2", "text": "red", "metadata": {"shelf": "a", "kind": 10}},
)
JUDGED = "query-id\tcorpus-id\tscore\nq1\tpear\t1\nq2\tapple\t1\nq2\tbrick\t2\n"


def write_folder(
    folder: Path,
    *,
    documents: Sequence[object] | str = DOCUMENTS,
    queries: Sequence[object] | str = QUERIES,
    judged: str = JUDGED,
) -> Path:
    """Write the three files of a collection. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
        text = content if isinstance(content, str) else "".join(f"{json.dumps(one)}\n" for one in content)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "qrels.tsv").write_text(judged, encoding="utf-8")
    return folder
