"""The parser of Parquet, run by `child_main.py`. It imports nothing from sennit."""

import io
import math
import os
from importlib import import_module
from typing import Any

# Otherwise the allocator and the linear algebra of the packages reserve more than a gigabyte of addresses, nearly all
# that the process may have.
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

BATCH_BYTES = 4 * 1024 * 1024
MAX_BATCH_ROWS = 1000
MAX_TEXT_CHARACTERS = 64 * 1024 * 1024
"""The texts of all rows together; the rest of what the process may use is for reading them."""

MAX_DEPTH = 16
MAX_LIST_ITEMS = 1000
MAX_NUMBERS = 64
"""A longer list of numbers is a vector or a picture, and no text."""


def read(data: bytes, max_rows: int, max_columns: int, max_cell: int) -> dict[str, object]:
    """Return the rows."""
    pyarrow = import_module("pyarrow")
    parquet = import_module("pyarrow.parquet")
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    try:
        file = parquet.ParquetFile(io.BytesIO(data), pre_buffer=False)
        rows, columns = file.metadata.num_rows, len(file.schema_arrow.names)
        if rows > max_rows:
            return {"problem": f"a table of {rows:,} rows; the limit is {max_rows:,}"}
        if columns > max_columns:
            return {"problem": f"a table of {columns:,} columns; the limit is {max_columns:,}"}
        groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
        row_bytes = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=0)
        size = max(1, min(MAX_BATCH_ROWS, BATCH_BYTES // max(1, row_bytes)))
        plain = _Plain(max_cell)
        found = []
        for batch in file.iter_batches(batch_size=size, use_threads=False):
            for values in batch.to_pylist():
                found.append({name: plain.value(value) for name, value in values.items()})
            if plain.characters > MAX_TEXT_CHARACTERS:
                return {"problem": f"a table of more than {MAX_TEXT_CHARACTERS:,} characters"}
        return {"rows": found}
    except MemoryError:
        return {"problem": "a Parquet file that needs too much memory to read"}
    except Exception:  # noqa: BLE001 - the library raises many kinds for a damaged file
        return {"problem": "a Parquet file that cannot be read"}


class _Plain:
    """Makes JSON of values: lists and structs stay, and what is no text, number or truth value is written as text."""

    def __init__(self, max_cell: int) -> None:
        self.characters = 0
        self._max_cell = max_cell

    def value(self, value: object, depth: int = 0) -> object:
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, bytes):
            # Older programs do not mark which of their columns are text.
            try:
                value = value.decode()
            except UnicodeDecodeError:
                return None
            if "\0" in value:
                return None
        if isinstance(value, (list, dict)) and depth < MAX_DEPTH:
            return self._nested(value, depth)
        text = str(value)[: self._max_cell]
        self.characters += len(text)
        return text

    def _nested(self, value: Any, depth: int) -> object:
        if isinstance(value, list) and not (value and all(_is_entry(one) for one in value)):
            if len(value) > MAX_NUMBERS and all(isinstance(one, (int, float)) for one in value):
                return None
            return [self.value(one, depth + 1) for one in value[:MAX_LIST_ITEMS]]
        # A map is a list of pairs.
        pairs = list(value.items() if isinstance(value, dict) else value)[:MAX_LIST_ITEMS]
        found = {str(name)[:200]: self.value(one, depth + 1) for name, one in pairs}
        return {name: one for name, one in found.items() if name and one is not None}


def _is_entry(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2
