"""`python -m benchmarks.run`: builds and measures all systems, and writes the results, docs/benchmarks.md and its plot."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks import measurements, worker
from benchmarks.corpus import Corpus, load_corpus, make_embedder
from benchmarks.peers import ADAPTERS, find_installed, make_peer, package_versions
from benchmarks.peers.base import Peer
from benchmarks.worker import Job

ROOT: Final = Path(__file__).resolve().parent.parent
COLD_STARTS = 3
WRITER_SECONDS = 4.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every size, then write the page."""
    options = _options(arguments)
    sizes = [int(size) for size in options.sizes.split(",")]
    names = options.peers.split(",")
    unknown = [name for name in names if name not in ADAPTERS]
    if unknown:
        raise SystemExit(f"There is no system {unknown[0]!r}. Systems: {', '.join(ADAPTERS)}")
    for size in sizes:
        result = measure_size(size, names, options.queries, cache=options.cache, text=options.text)
        options.out.mkdir(parents=True, exist_ok=True)
        file = options.out / f"{result['date'][:10]}-{size}.json"
        file.write_text(json.dumps(result, indent=1) + "\n")
        _log(f"{size:,} passages took {result['run_s']:.0f} s: {file.name}")
    if options.page:
        from benchmarks import report

        report.write(options.out, options.page)
        _log(f"wrote {options.page.name}")
    return 0


def measure_size(
    size: int, names: Sequence[str], questions: int, *, cache: Path | None = None, text: Sequence[Path] = ()
) -> dict[str, Any]:
    """Measure the installed systems at one corpus size."""
    available, missing = find_installed(names)
    corpus = load_corpus(size, questions, cache, text)
    started = time.perf_counter()
    load_before = os.getloadavg()[0]
    systems: dict[str, dict[str, Any]] = {name: {} for name in available}
    rate = embedding_rate(corpus)
    with tempfile.TemporaryDirectory(prefix="sennit-bench-run-") as scratch:
        folder = Path(scratch)
        (folder / "questions.json").write_text(json.dumps(corpus.trial_queries))
        jobs = {
            name: Job(name, str(folder / name), size, questions, str(cache) if cache else None)
            for name in available
        }
        for name, job in jobs.items():
            _log(f"{size:,}: building {name}")
            with _record_error(systems[name]):
                built = worker.run("build", job)
                systems[name]["build"] = built | _split_embedding_time(name, built, size / rate)
                systems[name]["cold"] = cold(job)
                systems[name]["memory"] = worker.run("memory", job)
        _measure_together(systems, corpus, folder)
        for name, job in jobs.items():
            if "error" not in systems[name]:
                _log(f"{size:,}: {name} in a process of its own")
                with _record_error(systems[name]):
                    isolated_job = replace(
                        job, efforts=systems[name]["effort"], writer_seconds=WRITER_SECONDS
                    )
                    systems[name] |= worker.run("isolated", isolated_job)
    text_bytes = sum(len(text.encode()) for text in corpus.texts)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": f"python -m benchmarks.run --sizes {size} --queries {questions}",
        "size": size,
        "machine": machine() | {"load_before": load_before, "load_after": os.getloadavg()[0]},
        "corpus": {
            "digest": corpus.digest,
            "text_bytes": text_bytes,
            "vector_bytes": corpus.vectors.nbytes,
            "embedded_per_s": rate,
        },
        "sennit": program_times(),
        "systems": systems,
        "not_measured": missing,
        "run_s": time.perf_counter() - started,
    }


def _measure_together(systems: dict[str, dict[str, Any]], corpus: Corpus, folder: Path) -> None:
    """Measure all systems in one process: choose the search effort of each, then run the interleaved queries."""
    peers: dict[str, Peer] = {}
    exact = measurements.ExactSearch(corpus, corpus.queries)
    for name, entry in systems.items():
        if "error" in entry:
            continue
        with _record_error(entry):
            peer = make_peer(name)
            peer.open(folder / name)
            entry |= {"label": peer.label, "about": peer.about, "hybrid": peer.hybrid}
            entry["versions"] = package_versions(peer)
            _log(f"{len(corpus.texts):,}: choosing the search effort of {name}")
            entry["effort"], entry["recall"] = measurements.choose_search_efforts(peer, corpus, exact)
            peers[name] = peer
    _log(f"{len(corpus.texts):,}: {len(corpus.queries)} queries, interleaved")
    measurements.freeze_garbage_collection()
    timed = measurements.time_interleaved(
        measurements.build_cases(peers), corpus.queries, corpus.trial_queries
    )
    for name, peer in peers.items():
        systems[name]["interleaved"] = timed[name]
        peer.close()


def cold(job: Job) -> dict[str, float]:
    """The median of several cold starts."""
    starts = [worker.run("cold", job) for _ in range(COLD_STARTS)]
    inner = [start["open_ms"] + start["first_query_ms"] for start in starts]
    whole = [start["imports_ms"] + without for start, without in zip(starts, inner, strict=True)]
    return {
        "with_imports_ms": statistics.median(whole),
        "without_imports_ms": statistics.median(inner),
        "open_ms": statistics.median(start["open_ms"] for start in starts),
        "first_query_ms": statistics.median(start["first_query_ms"] for start in starts),
    }


def embedding_rate(corpus: Corpus) -> float:
    """Passages per second of the embedding model, which all systems share."""
    model = make_embedder()
    sample = corpus.texts[:5000]
    started = time.perf_counter()
    for at in range(0, len(sample), 1000):
        model.embed_documents(sample[at : at + 1000])
    return len(sample) / (time.perf_counter() - started)


def _split_embedding_time(name: str, built: dict[str, float], embedding: float) -> dict[str, float]:
    """Build times with and without embedding. sennit embeds while it builds; the others get vectors."""
    if name == "sennit":
        return {
            "without_embedding_s": built["total_s"] - embedding,
            "with_embedding_s": built["total_s"],
            "searchable_with_embedding_s": built["searchable_s"],
        }
    return {
        "without_embedding_s": built["total_s"],
        "with_embedding_s": built["total_s"] + embedding,
        "searchable_with_embedding_s": built["searchable_s"] + embedding,
    }


def program_times() -> dict[str, float]:
    """Milliseconds of `sennit --help` and of the imports, the median of five."""
    python = sys.executable
    script = Path(python).with_name("sennit")
    commands = {
        "help_ms": [str(script), "--help"]
        if script.exists()
        else [python, "-m", "sennit.apps.cli", "--help"],
        "import_ms": [python, "-c", "import sennit"],
        "import_engine_ms": [python, "-c", "import sennit.engine, sennit.embedding.static"],
        "python_ms": [python, "-c", "pass"],
    }
    out: dict[str, float] = {}
    for name, command in commands.items():
        times = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run(command, capture_output=True, check=False)
            times.append((time.perf_counter() - started) * 1000)
        out[name] = statistics.median(times)
    return out


def machine() -> dict[str, Any]:
    """The machine of the measurement, without names."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, IndexError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line for line in lines if line.startswith("model name")).split(":", 1)[1].strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_bytes": memory,
        "system": platform.system(),
        "python": platform.python_version(),
    }


@contextlib.contextmanager
def _record_error(entry: dict[str, Any]) -> Any:
    """Record the error of a system in its entry, and let the others continue."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a system under test may raise anything
        # Some systems append source paths of the machine that they were compiled on.
        entry["error"] = f"{type(error).__name__}: {str(error).partition(', /')[0][:200]}"
        _log(f"  failed: {entry['error']}")


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--sizes", default="10000,100000", help="numbers of passages")
    parser.add_argument(
        "--peers", default=",".join(ADAPTERS), help=f"systems to measure, of {','.join(ADAPTERS)}"
    )
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md")
    parser.add_argument("--no-page", dest="page", action="store_const", const=None)
    parser.add_argument(
        "--cache", type=Path, help="folder for passages and vectors; default: the temporary folder"
    )
    parser.add_argument(
        "--text",
        type=Path,
        action="append",
        default=[],
        help="further folder to take text from; repeatable",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
