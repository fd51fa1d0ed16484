"""What the conformance kit says of backends: their capabilities, and what it tests, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sennit.stores.contract import FILTER_OPERATORS, Backend, Capabilities
from sennit.testing.indexes import GraphConformance, KeywordConformance, VectorConformance
from sennit.testing.records import RecordsConformance

ROLES: Final = ("keyword", "vector", "graph")

KIT: Final = {
    "records": RecordsConformance,
    "keyword": KeywordConformance,
    "vector": VectorConformance,
    "graph": GraphConformance,
}


def capability_table(backends: Mapping[str, Backend]) -> Iterator[str]:
    """The lines of a Markdown table: what the index of each role promises."""
    yield "| backend | role | scores | statistics | applies changes | filters left to the process | waits on a network |"
    yield "|---|---|---|---|---|---|---|"
    for name, backend in backends.items():
        for role in ROLES:
            if backend.servers and backend.bindings.get(role) == "local":
                continue
            capabilities: Capabilities = getattr(backend, role).capabilities
            yield f"| {name} | `{role}` | {' | '.join(_describe(capabilities))} |"


def promise_table() -> Iterator[str]:
    """The lines of a Markdown table: which roles each test of the kit is for."""
    yield f"| what is tested | {' | '.join(f'`{role}`' for role in KIT)} |"
    yield f"|---|{'---|' * len(KIT)}"
    names = [name for kit in KIT.values() for name in _tests(kit)]
    for name in dict.fromkeys(names):
        marks = ("x" if name in _tests(kit) else "" for kit in KIT.values())
        yield f"| {name.removeprefix('test_').replace('_', ' ')} | {' | '.join(marks)} |"


def _tests(kit: type) -> list[str]:
    classes = reversed(kit.__mro__)
    return [name for one in classes for name in vars(one) if name.startswith("test_")]


def _describe(capabilities: Capabilities) -> tuple[str, ...]:
    return (
        {"contract": "ranking contract", "own": "its own, by rank"}[capabilities.scores],
        {"none": "needs none", "audience": "of the audience"}.get(
            capabilities.statistics, capabilities.statistics
        ),
        "later; a buffer covers the rest" if capabilities.lags else "at once",
        _describe_filters(capabilities),
        "yes" if capabilities.waits else "no",
    )


def _describe_filters(capabilities: Capabilities) -> str:
    """The operators and conditions that the index does not decide."""
    missing = [f"`{name}`" for name in sorted(FILTER_OPERATORS - capabilities.filters)]
    return "; ".join([*missing, *capabilities.partly]) or "none"
