"""Files of named arrays, written once, verified by a checksum and memory-mapped; and arrays that grow in memory."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import xxhash
from numpy.typing import NDArray

MAGIC: Final = b"sennit-arrays-1\n"
ALIGNMENT_BYTES: Final = 64
"""Every array starts on a cache line, so that vector instructions can read it directly from the mapped file."""

Arrays = Mapping[str, NDArray[Any]]


class CorruptFile(Exception):
    """A derived file is missing, truncated or altered. The index is rebuilt, so this never reaches a user."""


class MissingFile(CorruptFile):
    """The file does not exist; another process may have replaced it."""


def write_arrays(path: Path, arrays: Arrays) -> str:
    """Write the arrays to a new file and return its checksum."""
    layout: dict[str, list[Any]] = {}
    offset = 0
    for name, array in arrays.items():
        layout[name] = [array.dtype.str, list(array.shape), offset]
        offset += -(-array.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    header = json.dumps(layout).encode()
    start = len(MAGIC) + 8 + len(header)
    header += b" " * (-start % ALIGNMENT_BYTES)
    digest = xxhash.xxh3_128()
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            for piece in (MAGIC, len(header).to_bytes(8, "little"), header):
                digest.update(piece)
                file.write(piece)
            for array in arrays.values():
                flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                padding = b"\0" * (-array.nbytes % ALIGNMENT_BYTES)
                digest.update(flat.data)
                digest.update(padding)
                file.write(flat.data)
                file.write(padding)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return digest.hexdigest()


def read_arrays(path: Path, checksum: str) -> dict[str, NDArray[Any]]:
    """Memory-map the arrays of a file; raises CorruptFile unless every byte is as it was written."""
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        raise MissingFile(f"{path.name} is missing") from error
    except (OSError, ValueError) as error:
        raise CorruptFile(f"{path.name}: {error}") from error
    if xxhash.xxh3_128_hexdigest(data) != checksum:
        raise CorruptFile(f"{path.name}: its contents do not match the checksum they were written with")
    start = len(MAGIC) + 8
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    layout: dict[str, tuple[str, list[int], int]] = json.loads(data[start:end])
    return {
        name: np.frombuffer(data, dtype, count=int(np.prod(shape)), offset=end + offset).reshape(shape)
        for name, (dtype, shape, offset) in layout.items()
    }


class GrowingArray:
    """An append-only array in memory. A slice of its first n values stays valid while it grows."""

    def __init__(self, dtype: type[np.generic], *shape: int) -> None:
        self._values: NDArray[Any] = np.empty((64, *shape), dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, value: object) -> None:
        if self._count == len(self._values):
            grown = np.empty((2 * self._count, *self._values.shape[1:]), self._values.dtype)
            grown[: self._count] = self._values
            self._values = grown
        self._values[self._count] = value
        self._count += 1

    def first(self, count: int) -> NDArray[Any]:
        """The first values, as a view."""
        return self._values[:count]
