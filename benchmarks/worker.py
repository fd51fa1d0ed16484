"""Measurements that need a process of their own: `python -m benchmarks.worker PART SPECIFICATION`."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Job:
    """What a worker process measures."""

    peer: str
    folder: str
    size: int
    questions: int
    cache: str | None
    efforts: dict[str, int] = field(default_factory=dict)
    """The chosen search effort of each filter."""
    writer_seconds: float = 4.0


def run(part: str, job: Job) -> dict[str, Any]:
    """Run this module in a new process and return its result. Raises RuntimeError if it fails."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.worker",
        part,
        json.dumps(asdict(job)),
        repr(time.monotonic()),
    ]
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, cwd=Path(__file__).resolve().parent.parent
    )
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise RuntimeError(f"{part} of {job.peer} failed: {last[:300]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def build(job: Job) -> dict[str, float]:
    """Build the system's files from texts and vectors."""
    from benchmarks.corpus import load_corpus
    from benchmarks.peers import make_peer
    from benchmarks.peers.base import folder_bytes

    corpus = load_corpus(job.size, 1, _cache(job))
    system = make_peer(job.peer)
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    found = system.build(Path(job.folder), corpus)
    total = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "searchable_s": found,
        "total_s": total,
        "cpu_s": used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime,
        "disk_bytes": folder_bytes(Path(job.folder)),
    }


def cold(job: Job, started: float) -> dict[str, float]:
    """A cold start up to the first result, with the files in the page cache. `started` is when the process started."""
    from benchmarks.peers import make_peer

    system = make_peer(job.peer)
    imported = time.monotonic()
    system.open(Path(job.folder))
    opened = time.monotonic()
    system.search("where is the first answer", None)
    answered = time.monotonic()
    system.close()
    return {
        "imports_ms": (imported - started) * 1000,
        "open_ms": (opened - imported) * 1000,
        "first_query_ms": (answered - opened) * 1000,
    }


def memory(job: Job) -> dict[str, float]:
    """The resident memory after a hundred queries."""
    from benchmarks.peers import make_peer

    queries = json.loads((Path(job.folder).parent / "questions.json").read_text())
    system = make_peer(job.peer)
    before = _resident()
    system.open(Path(job.folder))
    for query in queries[:100]:
        system.search(query, None)
    after = _resident()
    system.close()
    return {
        "resident_bytes": after["VmRSS"],
        "anonymous_bytes": after["RssAnon"],
        "mapped_bytes": after["RssFile"],
        "imports_bytes": before["VmRSS"],
    }


def isolated(job: Job) -> dict[str, Any]:
    """Queries without the other systems in the process, then writes, then searches during writes."""
    from benchmarks import measurements
    from benchmarks.corpus import load_corpus
    from benchmarks.peers import make_peer

    corpus = load_corpus(job.size, job.questions, _cache(job))
    system = make_peer(job.peer)
    system.open(Path(job.folder))
    for group_limit in measurements.FILTERS:
        if measurements.filter_key(group_limit) in job.efforts:
            system.set_effort(group_limit, job.efforts[measurements.filter_key(group_limit)])
    measurements.freeze_garbage_collection()
    result: dict[str, Any] = {
        "alone": measurements.time_alone(measurements.build_cases({job.peer: system}), corpus)
    }
    result["writes"] = measurements.time_writes(system, corpus, Path(job.folder).parent)
    if system.concurrent_writes:
        result["beside_writer"] = measurements.time_with_writer(system, corpus, job.writer_seconds)
    system.close()
    return result


def _cache(job: Job) -> Path | None:
    return Path(job.cache) if job.cache else None


def _resident() -> dict[str, int]:
    pairs = (line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        key: int(value.split()[0]) * 1024 for key, value in pairs if key in ("VmRSS", "RssAnon", "RssFile")
    }


def main() -> None:
    part, specification, started = sys.argv[1:]
    job = Job(**json.loads(specification))
    parts = {"build": build, "memory": memory, "isolated": isolated}
    print(json.dumps(cold(job, float(started)) if part == "cold" else parts[part](job)))


if __name__ == "__main__":
    main()
