"""The check of commit messages that `make lint` runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "check_commits.py"


@pytest.fixture(scope="module")
def check_commits() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_commits", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "subject",
    ["Flush the buffer before merging segments", "Speed up the filter", "Embed queries once", "x" * 71 + "x"],
)
def test_a_plain_imperative_subject_with_a_body_passes(check_commits: ModuleType, subject: str) -> None:
    assert list(check_commits.problems(subject[0].upper() + subject[1:], "Why.")) == []


@pytest.mark.parametrize(
    ("subject", "body", "problem"),
    [
        ("X" * 73, "Why.", "73 characters"),
        ("flush the buffer", "Why.", "capital letter"),
        ("Flushing the buffer", "Why.", "imperative"),
        ("Fixed the filter", "Why.", "imperative"),
        ("The buffer is flushed", "Why.", "imperative"),
        ("Flush the buffer.", "Why.", "full stop"),
        ("Flush the buffer", " \n", "body is missing"),
    ],
)
def test_a_message_that_breaks_a_rule_is_named(
    check_commits: ModuleType, subject: str, body: str, problem: str
) -> None:
    assert [text for text in check_commits.problems(subject, body) if problem in text]
