"""Jupyter notebooks: Markdown cells as they are, code cells in fences, outputs cut."""

from __future__ import annotations

import warnings
from typing import Any, Final

from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.formats.marked_text import MarkedText, fenced

MAX_OUTPUT_CHARACTERS: Final = 500
"""Characters of the text output of a cell that are kept: enough to find a result by, too few to drown the code."""


def read_notebook(text: str) -> MarkedText:
    """Read a notebook; raises UnreadableFile if it is none."""
    import nbformat

    try:
        with warnings.catch_warnings():
            # Of older notebooks, whose cells have no ids: no concern of somebody who searches them.
            warnings.simplefilter("ignore")
            notebook: Any = nbformat.reads(text, as_version=4)
    except Exception as error:  # nbformat raises many kinds, also plain AttributeError
        raise UnreadableFile("not a Jupyter notebook, despite its name") from error
    language = str(notebook.get("metadata", {}).get("kernelspec", {}).get("language", "python"))
    out = MarkedText("cell")
    for number, cell in enumerate(notebook.get("cells", ()), 1):
        source = _text(cell.get("source"))
        if cell.get("cell_type") == "markdown":
            out.add(number, source.splitlines())
        elif source.strip():
            out.add(number, fenced(source, language if cell.get("cell_type") == "code" else ""))
        shown = "\n".join(filter(None, map(_output, cell.get("outputs", ())))).strip()
        if shown:
            cut = shown[:MAX_OUTPUT_CHARACTERS] + ("…" if len(shown) > MAX_OUTPUT_CHARACTERS else "")
            out.add(number, fenced(cut))
    return out


def _output(output: Any) -> str:
    """The text of an output; pictures and tables in HTML have none."""
    if output.get("output_type") == "error":
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    return _text(output.get("text")) or _text(output.get("data", {}).get("text/plain"))


def _text(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")
