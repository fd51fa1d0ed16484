"""The folder of installed models: models that are not part of the package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from sennit.errors import NotFound
from sennit.user_cache import cache_folder, expand_home

GRAPH_FILE: Final = "model.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
CONFIG_FILE: Final = "sennit-model.json"


def models_folder() -> Path:
    """Return `SENNIT_MODELS`, or a folder in the user's cache. The folder may not exist yet."""
    return cache_folder("models", "SENNIT_MODELS")


def installed_models() -> list[str]:
    """List the model names that provider `onnx` accepts."""
    folder = models_folder()
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if is_model(entry))


def is_model(folder: Path) -> bool:
    """Return whether a folder holds a graph and its tokenizer. Unfinished installations start with a dot."""
    return (
        not folder.name.startswith(".")
        and (folder / GRAPH_FILE).is_file()
        and (folder / TOKENIZER_FILE).is_file()
    )


def find_model(model: str, setting: str = "embedding.model") -> Path:
    """Return the folder of a model, given its installed name or a path.

    A text is a path if it contains a slash or starts with `.` or `~`.
    """
    is_path = "/" in model or os.sep in model or model.startswith((".", "~"))
    folder = expand_home(model) if is_path else models_folder() / model
    if is_model(folder):
        return folder
    if folder.is_dir():
        raise NotFound(f"{folder} is not a model: it needs the files {GRAPH_FILE} and {TOKENIZER_FILE}.")
    if is_path:
        raise NotFound(f"There is no folder {folder}; {setting} must name a folder with an ONNX model.")
    known = ", ".join(installed_models()) or "none"
    raise NotFound(
        f"The model {model!r} is not installed in {models_folder()} (installed: {known}). "
        "Install one with: sennit models install bge-small, e5-small or minilm"
    )
