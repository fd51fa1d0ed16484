"""The performance targets of sennit, checked against a benchmark result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

LARGE: Final = 100_000
HUGE: Final = 1_000_000

MISS_REASONS: Final[dict[str, str]] = {}
"""Why a target is not met, by key. Shown only while it is not met."""


@dataclass(frozen=True)
class Target:
    """One row of the table. `met` is None if it was not measured."""

    key: str
    metric: str
    goal: str
    measured: str
    met: bool | None

    @property
    def verdict(self) -> str:
        if self.met is None:
            return "not measured"
        if self.met:
            return "met"
        reason = MISS_REASONS.get(self.key)
        return f"**not met**: {reason}" if reason else "**not met**"


def design_targets(results: dict[int, dict[str, Any]]) -> Iterator[Target]:
    """The targets that sennit is designed for."""
    result = results.get(LARGE)
    if result is None or "beside_writer" not in result["systems"].get("sennit", {}):
        return
    sennit = result["systems"]["sennit"]
    alone, mixed = sennit["alone"], sennit["interleaved"]
    default, explained = alone["default"], alone["explained"]
    yield Target(
        "p50",
        "hybrid query, 100,000 passages, top 10, including the embedding (default recipe)",
        "p50 ≤ 1.5 ms",
        f"{default['p50_ms']:.2f} ms alone, {mixed['default']['p50_ms']:.2f} interleaved with the others",
        default["p50_ms"] <= 1.5,
    )
    yield Target("p99", "the same", "p99 ≤ 5 ms", f"{default['p99_ms']:.2f} ms alone", default["p99_ms"] <= 5)
    extra = explained["p50_ms"] / default["p50_ms"] - 1
    yield Target("trace", "the same with a trace", "+ ≤ 20 %", f"{extra:+.0%}", extra <= 0.2)
    huge = results.get(HUGE, {}).get("systems", {}).get("sennit", {}).get("alone", {}).get("default")
    yield Target(
        "huge",
        "the same, 1,000,000 passages",
        "p50 ≤ 5 ms",
        f"{huge['p50_ms']:.2f} ms" if huge else "–",
        huge["p50_ms"] <= 5 if huge else None,
    )
    ratios = {key: alone[key]["p50_ms"] / alone["all"]["p50_ms"] for key in ("1%", "10%", "50%")}
    full = all(mixed[key]["results"] == 10 for key in ratios)
    yield Target(
        "filters",
        "filtered query (1 %, 10 %, 50 % of the records pass)",
        "≤ 2× unfiltered, ten results",
        ", ".join(f"{key} {ratio:.2f}×" for key, ratio in ratios.items())
        + ("; always ten" if full else "; not always ten"),
        max(ratios.values()) <= 2 and full,
    )
    least = min(sennit["recall"].values())
    yield Target(
        "recall",
        "ANN recall@10 against exact search, with and without filters",
        "≥ .98",
        ", ".join(f"{key} {value:.3f}" for key, value in sennit["recall"].items()),
        least >= 0.98,
    )
    add = sennit["writes"]["add"]["p50_ms"]
    yield Target(
        "add", "add one record, durable and visible to the next search", "≤ 5 ms", f"{add:.1f} ms", add <= 5
    )
    with_writer = sennit["beside_writer"]
    yield Target(
        "beside",
        "search during writes of 100 records/s",
        "p50 ≤ 1.5× idle",
        f"{with_writer['ratio']:.2f}× at {with_writer['records_per_s']:.0f} records/s",
        with_writer["ratio"] <= 1.5 and with_writer["records_per_s"] >= 90,
    )
    cold = sennit["cold"]
    yield Target(
        "cold",
        "cold start with 100,000 passages, until the first result",
        "≤ 300 ms",
        f"{cold['without_imports_ms']:.0f} ms, {cold['with_imports_ms']:.0f} with Python and its imports",
        cold["without_imports_ms"] <= 300,
    )
    help_ms = result["sennit"]["help_ms"]
    yield Target("help", "`sennit --help`", "≤ 150 ms", f"{help_ms:.0f} ms", help_ms <= 150)
    yield Target("mcp", "MCP server ready", "≤ 1 s", "–", None)
    rate = result["size"] / sennit["build"]["searchable_with_embedding_s"]
    yield Target(
        "ingest",
        "bulk ingest with the default model, from text to searchable",
        "≥ 2,000 passages/s",
        f"{rate:,.0f} passages/s (the model alone: {result['corpus']['embedded_per_s']:,.0f})",
        rate >= 2000,
    )
    resident = sennit["memory"]["resident_bytes"] / 1e6
    yield Target("memory", "memory after 100 queries", "≤ 500 MB", f"{resident:.0f} MB", resident <= 500)
    corpus = result["corpus"]
    allowed = 3 * corpus["text_bytes"] + corpus["vector_bytes"]
    disk = sennit["build"]["disk_bytes"]
    yield Target(
        "disk",
        "disk",
        f"≤ 3× the text plus vectors: {allowed / 1e6:.0f} MB",
        f"{disk / 1e6:.0f} MB",
        disk <= allowed,
    )


def peer_targets(result: dict[str, Any]) -> Iterator[Target]:
    """The targets relative to other systems, measured in the same run."""
    systems = result["systems"]
    sennit, qdrant, lance = (systems.get(name, {}) for name in ("sennit", "qdrant", "lancedb"))
    if "interleaved" not in sennit:
        return
    for key, title in (
        ("all", "hybrid query p50"),
        ("1%", "1 % pass"),
        ("10%", "10 % pass"),
        ("50%", "50 % pass"),
    ):
        if "interleaved" in qdrant:
            ours, theirs = sennit["interleaved"][key]["p50_ms"], qdrant["interleaved"][key]["p50_ms"]
            yield Target(
                f"qdrant-{key}",
                f"{title} / qdrant-edge",
                "≤ 1",
                f"{ours / theirs:.2f} ({ours:.2f} / {theirs:.2f} ms)",
                ours <= theirs,
            )
    if "interleaved" in lance:
        ours, theirs = sennit["interleaved"]["all"]["p50_ms"], lance["interleaved"]["all"]["p50_ms"]
        yield Target(
            "lance", "hybrid query p50 / LanceDB", "≤ 1/6", f"1/{theirs / ours:.1f}", ours <= theirs / 6
        )
    if "writes" in qdrant and "writes" in sennit:
        ours, theirs = sennit["writes"]["add"]["p50_ms"], qdrant["writes"]["add"]["p50_ms"]
        yield Target(
            "qdrant-add",
            "durable add / qdrant-edge with flush",
            "≤ 1/10",
            f"1/{theirs / ours:.1f} ({ours:.1f} / {theirs:.1f} ms; {_fsync_time(sennit)})",
            ours <= theirs / 10,
        )
    if "build" in qdrant:
        ours, theirs = sennit["build"]["without_embedding_s"], qdrant["build"]["without_embedding_s"]
        yield Target(
            "qdrant-build",
            "build without embedding / qdrant-edge",
            "≤ 1",
            f"{ours / theirs:.2f} ({ours:.1f} / {theirs:.1f} s)",
            ours <= theirs,
        )
        ours, theirs = sennit["build"]["disk_bytes"], qdrant["build"]["disk_bytes"]
        yield Target(
            "qdrant-disk",
            "disk / qdrant-edge",
            "≤ 1",
            f"{ours / theirs:.2f} ({ours / 1e6:.0f} / {theirs / 1e6:.0f} MB)",
            ours <= theirs,
        )
    if "recall" in sennit:
        full = all(sennit["interleaved"][key]["results"] == 10 for key in ("1%", "10%", "50%"))
        least = min(sennit["recall"][key] for key in ("1%", "10%", "50%"))
        yield Target(
            "filter-recall",
            "filtered queries: ten results, recall ≥ .98",
            "all",
            f"{'always' if full else 'not always'} ten, lowest recall {least:.3f}",
            full and least >= 0.98,
        )


def _fsync_time(entry: dict[str, Any]) -> str:
    """The time of a bare fsync, measured between the same adds."""
    return f"a bare fsync of 8 KB: {entry['writes']['sync']['p50_ms']:.1f} ms"
