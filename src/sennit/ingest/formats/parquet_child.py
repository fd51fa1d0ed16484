"""The parser of Parquet, run by `child_main.py`. It imports nothing from sennit."""

import io
import math
from importlib import import_module


def read(data: bytes, max_rows: int, max_columns: int, max_cell: int) -> dict[str, object]:
    """Return the rows."""
    pyarrow = import_module("pyarrow")
    parquet = import_module("pyarrow.parquet")
    pyarrow.set_cpu_count(1)
    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        rows, columns = file.metadata.num_rows, len(file.schema_arrow.names)
        if rows > max_rows:
            return {"problem": f"a table of {rows:,} rows; the limit is {max_rows:,}"}
        if columns > max_columns:
            return {"problem": f"a table of {columns:,} columns; the limit is {max_columns:,}"}
        found = []
        for batch in file.iter_batches(batch_size=1000, use_threads=False):
            for values in batch.to_pylist():
                found.append({name: _plain(value, max_cell) for name, value in values.items()})
        return {"rows": found}
    except Exception:  # noqa: BLE001 - the library raises many kinds for a damaged file
        return {"problem": "a Parquet file that cannot be read"}


def _plain(value: object, max_cell: int) -> object:
    """A value as JSON: what is no text, number or truth value is written as text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return None
    return str(value)[:max_cell]
