"""Parts that need a process with nothing else in it: `python -m benchmarks.worker PART SPECIFICATION`."""

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
    """What a worker works on."""

    peer: str
    folder: str
    size: int
    questions: int
    cache: str | None
    efforts: dict[str, int] = field(default_factory=dict)
    """Search efforts by filter, where some were chosen."""
    writer_seconds: float = 4.0


def run(part: str, job: Job) -> dict[str, Any]:
    """Start this module in a new process; its answer, or RuntimeError with what went wrong."""
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
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def build(job: Job) -> dict[str, float]:
    """Text and vectors to files that can be searched."""
    from benchmarks.corpus import load
    from benchmarks.peers import make
    from benchmarks.peers.base import folder_bytes

    corpus = load(job.size, 1, _cache(job))
    system = make(job.peer)
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.perf_counter()
    found = system.build(Path(job.folder), corpus)
    total = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "searchable_s": found,
        "total_s": total,
        "cpu_s": used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime,
        "disk_bytes": folder_bytes(Path(job.folder)),
    }


def cold(job: Job, began: float) -> dict[str, float]:
    """From nothing to the first answer, with the files in the system's cache. `began` is when we were started."""
    from benchmarks.peers import make

    system = make(job.peer)
    imported = time.monotonic()
    system.open(Path(job.folder))
    opened = time.monotonic()
    system.search("where is the first answer", None)
    answered = time.monotonic()
    system.close()
    return {
        "imports_ms": (imported - began) * 1000,
        "open_ms": (opened - imported) * 1000,
        "first_query_ms": (answered - opened) * 1000,
    }


def memory(job: Job) -> dict[str, float]:
    """What is resident after a hundred questions."""
    from benchmarks.peers import make

    asked = json.loads((Path(job.folder).parent / "questions.json").read_text())
    system = make(job.peer)
    before = _resident()
    system.open(Path(job.folder))
    for question in asked[:100]:
        system.search(question, None)
    after = _resident()
    system.close()
    return {
        "resident_bytes": after["VmRSS"],
        "anonymous_bytes": after["RssAnon"],
        "mapped_bytes": after["RssFile"],
        "imports_bytes": before["VmRSS"],
    }


def solo(job: Job) -> dict[str, Any]:
    """Queries without the other systems in the process, then writes, then searches beside a writer."""
    from benchmarks import measure
    from benchmarks.corpus import load
    from benchmarks.peers import make

    corpus = load(job.size, job.questions, _cache(job))
    system = make(job.peer)
    system.open(Path(job.folder))
    for below in measure.FILTERS:
        if measure.key_of(below) in job.efforts:
            system.set_effort(below, job.efforts[measure.key_of(below)])
    measure.settle_down()
    answer: dict[str, Any] = {"alone": measure.alone(measure.cases_of({job.peer: system}), corpus)}
    answer["writes"] = measure.writes(system, corpus, Path(job.folder).parent)
    if system.writes_beside_searches:
        answer["beside_writer"] = measure.beside_writer(system, corpus, job.writer_seconds)
    system.close()
    return answer


def _cache(job: Job) -> Path | None:
    return Path(job.cache) if job.cache else None


def _resident() -> dict[str, int]:
    pairs = (line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        key: int(value.split()[0]) * 1024 for key, value in pairs if key in ("VmRSS", "RssAnon", "RssFile")
    }


def main() -> None:
    part, specification, began = sys.argv[1:]
    job = Job(**json.loads(specification))
    parts = {"build": build, "memory": memory, "solo": solo}
    print(json.dumps(cold(job, float(began)) if part == "cold" else parts[part](job)))


if __name__ == "__main__":
    main()
