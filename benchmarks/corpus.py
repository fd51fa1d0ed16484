"""The corpus of the benchmarks: passages from text on this machine, their vectors, and queries.

The same machine always gives the same passages: files in the order of a seeded shuffle of their sorted paths, without
duplicates. The corpus is cached in the temporary folder for the next run.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import os
import random
import re
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.embedding import Embedder, EmbeddingSpec, create_embedder

SEED: Final = 20_260
CORPUS_VERSION: Final = 4
"""Incremented when the same files would give different passages."""

PASSAGE_WORDS: Final = (80, 120)
MIN_PLAIN_SHARE: Final = 0.45
"""The minimum fraction of plain words in a passage. It admits documentation, and code with comments."""

MAX_FILE_BYTES: Final = 1 << 20
MAX_PASSAGES_PER_FILE: Final = 100
SUFFIXES: Final = frozenset("md rst txt py pyi html htm h hpp pod pm el 1 2 3 4 5 6 7 8".split())

GROUP_COUNT: Final = 100
"""Passage i has g = i % 100, so that n % of the passages pass the filter `g < n`."""

MAX_HELD_OUT: Final = 2000
"""Passages that are not indexed. Half of the queries are made from them."""

WORD: Final = re.compile(r"\S+")
PLAIN: Final = re.compile(r"[(\"'`*]?[A-Za-z][a-z'-]*[.,;:)\"'`*?!]{0,2}")
CONTENT: Final = re.compile(r"[A-Za-z][a-z]{3,}")
SENTENCE: Final = re.compile(r"[A-Z][a-z]*(?: [A-Za-z][a-z'-]*){4,11}[.?]")
TAG: Final = re.compile(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>")
ROFF: Final = re.compile(r"(?m)^[.'].*$|\\f[A-Z0-9]|\\f\(..|\\s[-+]?\d|\\\(..")
STOP: Final = frozenset(
    "about above after also another been before being between both cannot could does down each even every from "
    "have here into itself just like made make many more most much must only other over same should since some "
    "such than that their them then there these they this those through under until upon used uses using very "
    "want well were what when where which while will with within without would your".split()
)

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Corpus:
    """The passages and queries that every system gets."""

    folder: Path
    texts: list[str]
    vectors: Vectors
    embed_seconds: float
    """The time to embed the texts, in the run that built the corpus."""
    queries: list[str]
    trial_queries: list[str]
    """Other queries, for warming up."""
    new_texts: list[str]
    """Passages that are not indexed, for single adds."""

    @property
    def digest(self) -> str:
        """A hash of all texts."""
        digest = hashlib.blake2b(digest_size=8)
        for text in self.texts:
            digest.update(text.encode())
        return digest.hexdigest()


def make_embedder() -> Embedder:
    """sennit's static model, which embeds for every system."""
    model = create_embedder(EmbeddingSpec(provider="static"))
    if model is None:
        raise RuntimeError("provider 'static' gave no model")
    return model


def load_corpus(size: int, query_count: int, cache: Path | None = None, text: Sequence[Path] = ()) -> Corpus:
    """Load the corpus of a size from the cache, or build it. `text` names further folders to take text from."""
    cache = cache or Path(tempfile.gettempdir()) / f"sennit-bench-{_user()}"
    folder = cache / f"corpus-v{CORPUS_VERSION}-{size}"
    if not (folder / "done.json").is_file():
        _build(folder, size, text)
    done = json.loads((folder / "done.json").read_text())
    texts = json.loads((folder / "texts.json").read_text())
    held_out = json.loads((folder / "held.json").read_text())
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    queries = _make_queries(texts, held_out, query_count + 100)
    new_texts = [text for text in held_out if len(text) > 200]
    return Corpus(folder, texts, vectors, done["embed_seconds"], queries[100:], queries[:100], new_texts)


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _build(folder: Path, size: int, text: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    held_out_count = min(MAX_HELD_OUT, max(200, size // 5))
    found = collect_passages(size + held_out_count, text)
    if len(found) < size + held_out_count:
        available = max(len(found) - held_out_count, 0)
        raise SystemExit(
            f"This machine has text for {available:,} passages, not for {size:,}; name further folders with --text"
        )
    texts, held_out = found[:size], found[size:]
    model = make_embedder()
    started = time.perf_counter()
    vectors = np.concatenate(
        [model.embed_documents(texts[at : at + 1024]) for at in range(0, len(texts), 1024)]
    )
    seconds = time.perf_counter() - started
    (folder / "texts.json").write_text(json.dumps(texts))
    (folder / "held.json").write_text(json.dumps(held_out))
    np.save(folder / "vectors.npy", vectors)
    (folder / "done.json").write_text(json.dumps({"embed_seconds": seconds}))


def collect_passages(count: int, text: Sequence[Path] = ()) -> list[str]:
    """This many distinct passages, or all there are."""
    rng = random.Random(SEED)
    files = sorted({file for root in [*text_roots(), *text] for file in _files(root)})
    rng.shuffle(files)
    found: list[str] = []
    seen: set[bytes] = set()
    for file in files:
        for passage in _split(_read(file), rng):
            digest = hashlib.blake2b(" ".join(passage.split()).lower().encode(), digest_size=12).digest()
            if digest not in seen:
                seen.add(digest)
                found.append(passage)
        if len(found) >= count:
            break
    found = found[:count]
    rng.shuffle(found)
    return found


def text_roots() -> list[Path]:
    """Folders with text on most machines: system documentation, the standard library, installed packages."""
    candidates = [Path("/usr/share"), Path("/usr/include"), Path("/usr/lib"), Path("/usr/local")]
    candidates += [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    candidates.append(Path(sys.base_prefix) / "lib")
    return [root for root in dict.fromkeys(candidates) if root.is_dir()]


def _files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in names:
            suffix = name.removesuffix(".gz").rpartition(".")[2].lower()
            if suffix in SUFFIXES:
                yield Path(folder, name)


def _read(file: Path) -> str:
    try:
        if file.is_symlink() or file.stat().st_size > MAX_FILE_BYTES:
            return ""
        raw = file.read_bytes()
        if file.suffix == ".gz":
            raw = gzip.decompress(raw)[:MAX_FILE_BYTES]
        text = raw.decode()
    except (OSError, EOFError, ValueError):
        return ""
    suffix = file.name.removesuffix(".gz").rpartition(".")[2].lower()
    if suffix in ("html", "htm"):
        return html.unescape(TAG.sub(" ", text))
    return ROFF.sub("", text).replace("\\-", "-") if suffix.isdigit() else text


def _split(text: str, rng: random.Random) -> Iterator[str]:
    words = list(WORD.finditer(text))
    start = yielded = 0
    while start + PASSAGE_WORDS[0] <= len(words) and yielded < MAX_PASSAGES_PER_FILE:
        window = words[start : start + rng.randint(*PASSAGE_WORDS)]
        start += len(window)
        plain = sum(PLAIN.fullmatch(word[0]) is not None for word in window)
        passage = text[window[0].start() : window[-1].end()]
        if plain >= MIN_PLAIN_SHARE * len(window) and len(passage) < 30 * len(window) and "\0" not in passage:
            yielded += 1
            yield passage


def _make_queries(texts: list[str], held_out: list[str], count: int) -> list[str]:
    """Spans of 4 to 8 content words and whole sentences, from indexed passages and from held-out ones."""
    rng = random.Random(SEED + 1)
    queries: dict[str, None] = {}
    tries = 0
    while len(queries) < count:
        tries += 1
        if tries > 100 * count:
            raise SystemExit(f"There are too few passages to make {count:,} queries from")
        passage = rng.choice(texts if tries % 2 else held_out)
        query = _sentence(passage, rng) if tries % 3 == 0 else _span(passage, rng)
        if query:
            queries[query] = None
    return list(queries)


def _span(passage: str, rng: random.Random) -> str:
    words = [word for word in CONTENT.findall(passage) if word.lower() not in STOP]
    length = rng.randint(4, 8)
    if len(words) < length:
        return ""
    start = rng.randint(0, len(words) - length)
    return " ".join(words[start : start + length])


def _sentence(passage: str, rng: random.Random) -> str:
    found = SENTENCE.findall(" ".join(passage.split()))
    return str(rng.choice(found)).rstrip(".") if found else ""
