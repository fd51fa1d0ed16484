"""The one entry: open a database, write to it, search it, and ask why."""

from sennit.engine.database import MEMORY, Database
from sennit.engine.opening import open  # noqa: A004 - sennit.open is the name people use
from sennit.engine.planning import FilterLike

__all__ = ["MEMORY", "Database", "FilterLike", "open"]
