"""Writes results as Markdown tables and a plot between the markers of docs/benchmarks.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.targets import LARGE, Target, design_targets, peer_targets

BEGIN: Final = "<!-- measured: written by python -m benchmarks.run -->"
END: Final = "<!-- end of measured -->"
CASES: Final = (("all", "unfiltered"), ("1%", "1 % pass"), ("10%", "10 % pass"), ("50%", "50 % pass"))

Entry = dict[str, Any]


def write(results: Path, page: Path) -> None:
    """Write the newest result of each size into the page, and draw its plot."""
    newest = latest(results)
    if not newest:
        raise SystemExit("There are no results yet; run python -m benchmarks.run")
    shown = newest.get(LARGE) or newest[max(newest)]
    image = plot(shown, page.parent / "img" / "benchmarks.svg")
    text = page.read_text() if page.exists() else f"# Benchmarks\n\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    body = "\n".join([*_measured(newest), *_image(shown, image)])
    page.write_text(f"{before}{BEGIN}\n\n{body}\n{END}{after}")


def latest(folder: Path) -> dict[int, Entry]:
    """The newest result of each size. File names begin with the date."""
    newest: dict[int, Entry] = {}
    for file in sorted(folder.glob("????-??-??-*.json")):
        result = json.loads(file.read_text())
        newest[result["size"]] = result
    return dict(sorted(newest.items(), reverse=True))


def _measured(newest: dict[int, Entry]) -> Iterable[str]:
    large = newest.get(LARGE)
    if large is not None:
        yield from _target_table("Design targets", list(design_targets(newest)))
        yield from _target_table(
            "Targets relative to other systems, one run, 100,000 passages", list(peer_targets(large))
        )
    for size, result in newest.items():
        yield from _section(size, result)


def _target_table(title: str, targets: list[Target]) -> Iterable[str]:
    yield f"## {title}\n"
    yield "| metric | target | measured | |"
    yield "|---|---|---|---|"
    for target in targets:
        yield f"| {target.metric} | {target.goal} | {target.measured} | {target.verdict} |"
    yield ""


def _section(size: int, result: Entry) -> Iterable[str]:
    machine = result["machine"]
    yield f"## {size:,} passages\n"
    yield (
        f"`{result['command']}` on {result['date'][:10]}: {machine['cores']} cores of {machine['cpu']}, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}, Python {machine['python']}. "
        f"Load average before and after: {machine['load_before']:.1f}, {machine['load_after']:.1f}. "
        f"The run took {result['run_s'] / 60:.0f} minutes.\n"
    )
    systems = {name: entry for name, entry in result["systems"].items() if "alone" in entry}
    yield "Query time in milliseconds, p50 / p99, with the systems interleaved; in brackets p50 in a process of its own:\n"
    yield from _table(
        ["", *(title for _, title in CASES)],
        ([_name(entry), *(_times(entry, key) for key, _ in CASES)] for entry in systems.values()),
    )
    sennit = systems.get("sennit", {}).get("interleaved", {})
    if "default" in sennit:
        yield (
            f"sennit's default recipe (with missing scores computed): {_times(systems['sennit'], 'default')}; "
            f"with a trace: {_times(systems['sennit'], 'explained')}.\n"
        )
    yield "Vector recall@10 against exact search, with the search effort (ef) that was chosen; number of results of 10:\n"
    yield from _table(
        ["", *(title for _, title in CASES)],
        ([_name(entry), *(_recall(entry, key) for key, _ in CASES)] for entry in systems.values()),
    )
    yield "Single durable writes in milliseconds (p50), and searches during writes of 100 records/s:\n"
    yield from _table(
        ["", "add", "visible to the next search", "remove", "search after an add", "search during writes"],
        ([_name(entry), *_writes(entry)] for entry in systems.values()),
    )
    yield (
        "Build, disk, memory, and cold start (sennit embeds while it builds, so its CPU seconds include the "
        "embedding):\n"
    )
    yield from _table(
        [
            "",
            "build, s",
            "CPU, s",
            "with embedding, s",
            "disk, MB",
            "resident, MB",
            "cold start, ms",
            "with imports, ms",
        ],
        ([_name(entry), *_sizes(entry)] for entry in systems.values()),
    )
    times = result["sennit"]
    yield (
        f"`sennit --help`: {times['help_ms']:.0f} ms; `import sennit`: {times['import_ms']:.0f} ms; the engine with "
        f"its dependencies: {times['import_engine_ms']:.0f} ms; Python itself: {times['python_ms']:.0f} ms.\n"
    )
    yield from _setups(result, systems)


def _setups(result: Entry, systems: dict[str, Entry]) -> Iterable[str]:
    for entry in systems.values():
        named = ", ".join(f"{package} {version}" for package, version in entry["versions"].items())
        yield f"- {entry['label']} ({named}): {entry['about']}."
    for name, entry in result["systems"].items():
        if "error" in entry:
            yield f"- {name}: not measured completely: {entry['error']}."
    for name, reason in result["not_measured"].items():
        yield f"- {name}: not measured, {reason}."
    yield ""


def _table(head: list[str], rows: Iterable[list[str]]) -> Iterable[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _name(entry: Entry) -> str:
    return f"**{entry['label']}**" if entry["label"] == "sennit" else str(entry["label"])


def _times(entry: Entry, key: str) -> str:
    mixed, alone = entry["interleaved"][key], entry["alone"][key]
    return f"{_ms(mixed['p50_ms'])} / {_ms(mixed['p99_ms'])} ({_ms(alone['p50_ms'])})"


def _ms(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _recall(entry: Entry, key: str) -> str:
    if "recall" not in entry:
        return "–"
    effort = entry["effort"].get(key)
    results = entry["interleaved"][key]["results"]
    return f"{entry['recall'][key]:.3f}{f' (ef {effort})' if effort else ''}; {results:g}"


def _writes(entry: Entry) -> list[str]:
    if "writes" not in entry:
        return ["–"] * 5
    writes = entry["writes"]
    with_writer = entry.get("beside_writer")
    return [
        _ms(writes["add"]["p50_ms"]),
        f"{writes['add_seen']:.0%}",
        _ms(writes["remove"]["p50_ms"]),
        _ms(writes["search_after_add"]["p50_ms"]),
        f"{with_writer['ratio']:.2f}× at {with_writer['records_per_s']:.0f}/s" if with_writer else "–",
    ]


def _sizes(entry: Entry) -> list[str]:
    build, cold = entry["build"], entry["cold"]
    return [
        f"{build['without_embedding_s']:.1f}",
        f"{build['cpu_s']:.1f}",
        f"{build['with_embedding_s']:.1f}",
        f"{build['disk_bytes'] / 1e6:.0f}",
        f"{entry['memory']['resident_bytes'] / 1e6:.0f}",
        f"{cold['without_imports_ms']:.0f}",
        f"{cold['with_imports_ms']:.0f}",
    ]


def _image(result: Entry, image: Path | None) -> Iterable[str]:
    if image is not None:
        yield f"![p50 of each system with and without filters, {result['size']:,} passages](img/{image.name})\n"


def plot(result: Entry, file: Path) -> Path | None:
    """Draw the query times as bars on a logarithmic scale. Returns None without matplotlib."""
    try:
        matplotlib: Any = import_module("matplotlib")
    except ImportError:
        return None
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "sennit", "font.size": 9})
    pyplot: Any = import_module("matplotlib.pyplot")
    systems = [entry for entry in result["systems"].values() if "alone" in entry]
    figure, axes = pyplot.subplots(figsize=(8, 3.6), layout="constrained")
    width = 0.8 / len(CASES)
    for at, (key, title) in enumerate(CASES):
        heights = [entry["interleaved"][key]["p50_ms"] for entry in systems]
        positions = [position + (at - 1.5) * width for position in range(len(systems))]
        bars = axes.bar(positions, heights, width, label=title, color=f"C{at}")
        axes.bar_label(bars, [_ms(height) for height in heights], fontsize=6, padding=1)
    axes.set_yscale("log")
    axes.set_ylabel("p50, ms")
    axes.set_xticks(range(len(systems)), [_wrapped(entry["label"]) for entry in systems])
    axes.set_title(f"Hybrid query, ten results, {result['size']:,} passages")
    axes.legend(frameon=False, ncols=4, loc="upper left")
    axes.margins(y=0.2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    save: Callable[..., None] = figure.savefig
    save(file, metadata={"Date": None})
    pyplot.close(figure)
    return file


def _wrapped(label: str) -> str:
    return label.replace(" + ", " +\n").replace(" (", "\n(")
