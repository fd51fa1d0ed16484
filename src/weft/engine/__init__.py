"""The one entry: open a database, write to it, search it, and ask why."""

from weft.engine.opening import open  # noqa: A004 - weft.open is the name people use
from weft.engine.planning import FilterLike
from weft.engine.weft import MEMORY, Weft

__all__ = ["MEMORY", "FilterLike", "Weft", "open"]
