"""Parts that need a process of their own: building, a cold open, memory. `python -m benchmarks.worker PART …`"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PARTS = ("build", "cold", "memory")


def run(part: str, peer: str, folder: Path, size: int, questions: Path, cache: Path | None) -> dict[str, Any]:
    """Start this module in a new process; its answer, or what went wrong."""
    command = [sys.executable, "-m", "benchmarks.worker", part, peer, str(folder), str(size), str(questions)]
    began = time.monotonic()
    done = subprocess.run(
        [*command, repr(began), str(cache or "")],
        capture_output=True,
        check=False,
        text=True,
        cwd=Path(__file__).resolve().parent.parent,
    )
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise RuntimeError(f"{part} of {peer} failed: {last[:300]}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def build(peer: str, folder: Path, size: int, cache: Path | None) -> dict[str, float]:
    from benchmarks.corpus import load
    from benchmarks.peers import make
    from benchmarks.peers.base import folder_bytes

    corpus = load(size, 1, cache)
    system = make(peer)
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.perf_counter()
    found = system.build(folder, corpus)
    total = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "searchable_s": found,
        "total_s": total,
        "cpu_s": used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime,
        "disk_bytes": folder_bytes(folder),
        "peak_bytes": used.ru_maxrss * 1024,
    }


def cold(peer: str, folder: Path, question: str, began: float) -> dict[str, float]:
    """From nothing to the first answer; the files are in the system's cache, as they are after a restart of us."""
    from benchmarks.peers import make

    system = make(peer)
    imported = time.monotonic()
    system.open(folder)
    opened = time.monotonic()
    found = system.search(question, None)
    answered = time.monotonic()
    system.close()
    return {
        "imports_ms": (imported - began) * 1000,
        "open_ms": (opened - imported) * 1000,
        "first_query_ms": (answered - opened) * 1000,
        "found": len(found),
    }


def memory(peer: str, folder: Path, questions: list[str]) -> dict[str, float]:
    """What is resident after a hundred questions."""
    from benchmarks.peers import make

    system = make(peer)
    before = _resident()
    system.open(folder)
    for question in questions:
        system.search(question, None)
    after = _resident()
    system.close()
    return {
        "resident_bytes": after["VmRSS"],
        "anonymous_bytes": after["RssAnon"],
        "mapped_bytes": after["RssFile"],
        "imports_bytes": before["VmRSS"],
    }


def _resident() -> dict[str, int]:
    lines = Path("/proc/self/status").read_text().splitlines()
    pairs = (line.split(":", 1) for line in lines)
    return {
        key: int(value.split()[0]) * 1024 for key, value in pairs if key in ("VmRSS", "RssAnon", "RssFile")
    }


def main() -> None:
    part, peer, folder, size, questions, began, cache = sys.argv[1:]
    kept = Path(cache) if cache else None
    answer: dict[str, float]
    if part == "build":
        answer = build(peer, Path(folder), int(size), kept)
    else:
        asked: list[str] = json.loads(Path(questions).read_text())
        if part == "cold":
            answer = cold(peer, Path(folder), asked[0], float(began))
        else:
            answer = memory(peer, Path(folder), asked[:100])
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
