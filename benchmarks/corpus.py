"""Passages from text on this machine, their vectors, and questions to ask of them.

The same machine gives the same passages: files in the order of a seeded shuffle of their sorted paths, duplicates
left out. What was made is kept in the temporary folder, so that the next run starts with it.
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

from sennit.embedding import Embedder, EmbeddingSpec, build

SEED: Final = 20_260
VERSION: Final = 4
"""Raised when the same files would give other passages."""

WORDS: Final = (80, 120)
PROSE: Final = 0.45
"""The share of plain words from which on a window of text is a passage: documentation, and code with comments."""

MAX_FILE_BYTES: Final = 1 << 20
MAX_PER_FILE: Final = 100
SUFFIXES: Final = frozenset("md rst txt py pyi html htm h hpp pod pm el 1 2 3 4 5 6 7 8".split())

GROUPS: Final = 100
"""Passage i has g = i % 100, so that `g < n` lets n % of them pass."""

HELD_OUT: Final = 2000
"""Passages that are not indexed: half of the questions are made of these."""

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
    """What every system is built from and asked."""

    folder: Path
    texts: list[str]
    vectors: Vectors
    embed_seconds: float
    """What embedding the texts took, in the run that did it."""
    queries: list[str]
    trials: list[str]
    """Other questions, with which search effort is chosen."""
    fresh: list[str]
    """Passages that nobody has yet, for single adds."""

    @property
    def digest(self) -> str:
        """Tells two corpora apart."""
        joined = hashlib.blake2b(digest_size=8)
        for text in self.texts:
            joined.update(text.encode())
        return joined.hexdigest()


def embedder() -> Embedder:
    """sennit's own static model, which embeds for every system."""
    model = build(EmbeddingSpec(provider="static"))
    if model is None:
        raise RuntimeError("provider 'static' gave no model")
    return model


def load(size: int, questions: int, cache: Path | None = None, text: Sequence[Path] = ()) -> Corpus:
    """The corpus of so many passages; made when the cache does not have it, also from files in `text`."""
    cache = cache or Path(tempfile.gettempdir()) / f"sennit-bench-{_user()}"
    folder = cache / f"corpus-v{VERSION}-{size}"
    if not (folder / "done.json").is_file():
        _make(folder, size, text)
    done = json.loads((folder / "done.json").read_text())
    texts = json.loads((folder / "texts.json").read_text())
    held = json.loads((folder / "held.json").read_text())
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    asked = _questions(texts, held, questions + 100)
    fresh = [text for text in held if len(text) > 200]
    return Corpus(folder, texts, vectors, done["embed_seconds"], asked[100:], asked[:100], fresh)


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _make(folder: Path, size: int, text: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    held = min(HELD_OUT, max(200, size // 5))
    found = passages(size + held, text)
    if len(found) < size + held:
        raise SystemExit(f"There is text for {max(len(found) - held, 0):,} passages here, not for {size:,}")
    texts, kept = found[:size], found[size:]
    model = embedder()
    began = time.perf_counter()
    vectors = np.concatenate(
        [model.embed_documents(texts[at : at + 1024]) for at in range(0, len(texts), 1024)]
    )
    seconds = time.perf_counter() - began
    (folder / "texts.json").write_text(json.dumps(texts))
    (folder / "held.json").write_text(json.dumps(kept))
    np.save(folder / "vectors.npy", vectors)
    (folder / "done.json").write_text(json.dumps({"embed_seconds": seconds}))


def passages(count: int, text: Sequence[Path] = ()) -> list[str]:
    """So many different passages, or all there are."""
    rng = random.Random(SEED)
    files = sorted({file for root in [*roots(), *text] for file in _files(root)})
    rng.shuffle(files)
    found: list[str] = []
    seen: set[bytes] = set()
    for file in files:
        for passage in _cut(_read(file), rng):
            mark = hashlib.blake2b(" ".join(passage.split()).lower().encode(), digest_size=12).digest()
            if mark not in seen:
                seen.add(mark)
                found.append(passage)
        if len(found) >= count:
            break
    found = found[:count]
    rng.shuffle(found)
    return found


def roots() -> list[Path]:
    """Where there is text on most machines: system documentation, the standard library, installed packages."""
    named = [Path("/usr/share"), Path("/usr/include"), Path("/usr/lib"), Path("/usr/local")]
    named += [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    named.append(Path(sys.base_prefix) / "lib")
    return [root for root in dict.fromkeys(named) if root.is_dir()]


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


def _cut(text: str, rng: random.Random) -> Iterator[str]:
    words = list(WORD.finditer(text))
    at = given = 0
    while at + WORDS[0] <= len(words) and given < MAX_PER_FILE:
        window = words[at : at + rng.randint(*WORDS)]
        at += len(window)
        plain = sum(PLAIN.fullmatch(word[0]) is not None for word in window)
        passage = text[window[0].start() : window[-1].end()]
        if plain >= PROSE * len(window) and len(passage) < 30 * len(window) and "\0" not in passage:
            given += 1
            yield passage


def _questions(texts: list[str], held: list[str], count: int) -> list[str]:
    """Spans of 4 to 8 content words, from passages that are there and from others, and whole sentences."""
    rng = random.Random(SEED + 1)
    asked: dict[str, None] = {}
    tries = 0
    while len(asked) < count:
        tries += 1
        if tries > 100 * count:
            raise SystemExit("The passages are too few to make so many questions of")
        passage = rng.choice(texts if tries % 2 else held)
        question = _sentence(passage, rng) if tries % 3 == 0 else _span(passage, rng)
        if question:
            asked[question] = None
    return list(asked)


def _span(passage: str, rng: random.Random) -> str:
    words = [word for word in CONTENT.findall(passage) if word.lower() not in STOP]
    length = rng.randint(4, 8)
    if len(words) < length:
        return ""
    at = rng.randint(0, len(words) - length)
    return " ".join(words[at : at + length])


def _sentence(passage: str, rng: random.Random) -> str:
    found = SENTENCE.findall(" ".join(passage.split()))
    return str(rng.choice(found)).rstrip(".") if found else ""
