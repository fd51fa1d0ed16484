"""The figures that DESIGN and issue 3 ask for, judged from one result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

LARGE: Final = 100_000
HUGE: Final = 1_000_000

WHY: Final[dict[str, str]] = {}
"""Why a figure is not met, by its key; shown only while it is not."""


@dataclass(frozen=True)
class Figure:
    """One line of the table; `met` is None where it was not measured."""

    key: str
    what: str
    wanted: str
    measured: str
    met: bool | None

    @property
    def verdict(self) -> str:
        if self.met is None:
            return "not measured"
        if self.met:
            return "met"
        why = WHY.get(self.key)
        return f"**not met**: {why}" if why else "**not met**"


def designed(results: dict[int, dict[str, Any]]) -> Iterator[Figure]:
    """The table of figures that sennit is designed for."""
    result = results.get(LARGE)
    if result is None or "beside_writer" not in result["systems"].get("sennit", {}):
        return
    sennit = result["systems"]["sennit"]
    alone, mixed = sennit["alone"], sennit["interleaved"]
    default, explained = alone["default"], alone["explained"]
    yield Figure(
        "p50",
        "fused query, 100,000 passages, top 10, embedding included (default recipe)",
        "p50 ≤ 1.5 ms",
        f"{default['p50_ms']:.2f} ms alone, {mixed['default']['p50_ms']:.2f} between the others",
        default["p50_ms"] <= 1.5,
    )
    yield Figure("p99", "the same", "p99 ≤ 5 ms", f"{default['p99_ms']:.2f} ms alone", default["p99_ms"] <= 5)
    extra = explained["p50_ms"] / default["p50_ms"] - 1
    yield Figure("trace", "the same with its trace", "+ ≤ 20 %", f"{extra:+.0%}", extra <= 0.2)
    huge = results.get(HUGE, {}).get("systems", {}).get("sennit", {}).get("alone", {}).get("default")
    yield Figure(
        "huge",
        "the same, 1,000,000 passages",
        "p50 ≤ 5 ms",
        f"{huge['p50_ms']:.2f} ms" if huge else "–",
        huge["p50_ms"] <= 5 if huge else None,
    )
    ratios = {key: alone[key]["p50_ms"] / alone["all"]["p50_ms"] for key in ("1%", "10%", "50%")}
    full = all(mixed[key]["results"] == 10 for key in ratios)
    yield Figure(
        "filters",
        "filtered query (1 %, 10 %, 50 % pass)",
        "≤ 2× unfiltered, ten results",
        ", ".join(f"{key} {ratio:.2f}×" for key, ratio in ratios.items())
        + ("; always ten" if full else "; not always ten"),
        max(ratios.values()) <= 2 and full,
    )
    least = min(sennit["recall"].values())
    yield Figure(
        "recall",
        "ANN recall@10 against exact search, with and without filters",
        "≥ .98",
        ", ".join(f"{key} {value:.3f}" for key, value in sennit["recall"].items()),
        least >= 0.98,
    )
    add = sennit["writes"]["add"]["p50_ms"]
    yield Figure(
        "add", "add one record, durable and seen by the next search", "≤ 5 ms", f"{add:.1f} ms", add <= 5
    )
    beside = sennit["beside_writer"]
    yield Figure(
        "beside",
        "searches beside a writer of 100 records/s",
        "p50 ≤ 1.5× idle",
        f"{beside['ratio']:.2f}× at {beside['records_per_s']:.0f} records/s",
        beside["ratio"] <= 1.5 and beside["records_per_s"] >= 90,
    )
    cold = sennit["cold"]
    yield Figure(
        "cold",
        "cold open of 100,000 passages, first query answered",
        "≤ 300 ms",
        f"{cold['without_imports_ms']:.0f} ms, {cold['with_imports_ms']:.0f} with Python and its imports",
        cold["without_imports_ms"] <= 300,
    )
    helped = result["sennit"]["help_ms"]
    yield Figure("help", "`sennit --help`", "≤ 150 ms", f"{helped:.0f} ms", helped <= 150)
    yield Figure("mcp", "MCP server ready", "≤ 1 s", "–", None)
    rate = result["size"] / sennit["build"]["searchable_with_embedding_s"]
    yield Figure(
        "ingest",
        "bulk ingest, default model, text to searchable",
        "≥ 2,000 passages/s",
        f"{rate:,.0f} passages/s (the model alone: {result['corpus']['embedded_per_s']:,.0f})",
        rate >= 2000,
    )
    resident = sennit["memory"]["resident_bytes"] / 1e6
    yield Figure("memory", "memory after 100 queries", "≤ 500 MB", f"{resident:.0f} MB", resident <= 500)
    corpus = result["corpus"]
    allowed = 3 * corpus["text_bytes"] + corpus["vector_bytes"]
    disk = sennit["build"]["disk_bytes"]
    yield Figure(
        "disk",
        "disk",
        f"≤ 3× the text plus vectors: {allowed / 1e6:.0f} MB",
        f"{disk / 1e6:.0f} MB",
        disk <= allowed,
    )


def compared(result: dict[str, Any]) -> Iterator[Figure]:
    """sennit against its peers; ratios of one run."""
    systems = result["systems"]
    sennit, qdrant, lance = (systems.get(name, {}) for name in ("sennit", "qdrant", "lancedb"))
    if "interleaved" not in sennit:
        return
    for key, title in (("all", "fused p50"), ("1%", "1 % pass"), ("10%", "10 % pass"), ("50%", "50 % pass")):
        if "interleaved" in qdrant:
            ours, theirs = sennit["interleaved"][key]["p50_ms"], qdrant["interleaved"][key]["p50_ms"]
            yield Figure(
                f"qdrant-{key}",
                f"{title} / qdrant-edge",
                "≤ 1",
                f"{ours / theirs:.2f} ({ours:.2f} / {theirs:.2f} ms)",
                ours <= theirs,
            )
    if "interleaved" in lance:
        ours, theirs = sennit["interleaved"]["all"]["p50_ms"], lance["interleaved"]["all"]["p50_ms"]
        yield Figure("lance", "fused p50 / LanceDB", "≤ 1/6", f"1/{theirs / ours:.1f}", ours <= theirs / 6)
    if "writes" in qdrant and "writes" in sennit:
        ours, theirs = sennit["writes"]["add"]["p50_ms"], qdrant["writes"]["add"]["p50_ms"]
        yield Figure(
            "qdrant-add",
            "durable add / qdrant-edge with flush",
            "≤ 1/10",
            f"1/{theirs / ours:.1f} ({ours:.1f} / {theirs:.1f} ms; {_synced(sennit)})",
            ours <= theirs / 10,
        )
    if "build" in qdrant:
        ours, theirs = sennit["build"]["without_embedding_s"], qdrant["build"]["without_embedding_s"]
        yield Figure(
            "qdrant-build",
            "build, embedding apart / qdrant-edge",
            "≤ 1",
            f"{ours / theirs:.2f} ({ours:.1f} / {theirs:.1f} s)",
            ours <= theirs,
        )
        ours, theirs = sennit["build"]["disk_bytes"], qdrant["build"]["disk_bytes"]
        yield Figure(
            "qdrant-disk",
            "disk / qdrant-edge",
            "≤ 1",
            f"{ours / theirs:.2f} ({ours / 1e6:.0f} / {theirs / 1e6:.0f} MB)",
            ours <= theirs,
        )
    if "recall" in sennit:
        full = all(sennit["interleaved"][key]["results"] == 10 for key in ("1%", "10%", "50%"))
        least = min(sennit["recall"][key] for key in ("1%", "10%", "50%"))
        yield Figure(
            "filter-recall",
            "filtered queries: ten results, recall ≥ .98",
            "all",
            f"{'always' if full else 'not always'} ten, least recall {least:.3f}",
            full and least >= 0.98,
        )


def _synced(entry: dict[str, Any]) -> str:
    """What the disk alone took, between the same adds."""
    return f"8 KB to the disk and nothing else: {entry['writes']['sync']['p50_ms']:.1f} ms"
