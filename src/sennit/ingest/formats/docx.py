"""Word documents: headings, paragraphs, lists, tables and notes, counted by paragraph."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from sennit.ingest.bounded_child import run_child
from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.formats.marked_text import MarkedText

MAX_UNPACKED_BYTES: Final = 256 * 1024 * 1024
"""The parts of a document together, unpacked; pictures are most of it."""

_CHILD: Final = Path(__file__).with_name("docx_child.py")


def read_docx(data: bytes) -> MarkedText:
    """Read a Word document in a child process; raises UnreadableFile with the reason."""
    if find_spec("docx") is None:
        raise UnreadableFile(
            "Word documents need an optional package; install it with: pip install 'sennit[formats]'",
            permanent=False,
        )
    output = run_child(_CHILD, data, "a Word document", (MAX_UNPACKED_BYTES,))
    out = MarkedText("paragraph")
    for block in output.get("blocks", ()):
        out.add_block((int(number), str(line)) for number, line in [*block, (block[-1][0], "")])
    return out
