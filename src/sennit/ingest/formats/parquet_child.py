"""A child process with resource limits: reads a Parquet file from standard input, writes its rows as JSON.

The file is run as a script, and imports nothing from sennit.
"""

import io
import json
import math
import sys
from importlib import import_module


def main() -> None:
    """Set the resource limits, then read the table."""
    seconds, memory, max_rows, max_columns, max_cell = (int(argument) for argument in sys.argv[1:6])
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write(json.dumps(_read(sys.stdin.buffer.read(), max_rows, max_columns, max_cell)))


def _read(data: bytes, max_rows: int, max_columns: int, max_cell: int) -> dict[str, object]:
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


if __name__ == "__main__":
    main()
