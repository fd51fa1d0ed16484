"""Where models that are not part of the package are kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from sennit.errors import NotFound

GRAPH: Final = "model.onnx"
TOKENIZER: Final = "tokenizer.json"
CONFIG: Final = "sennit-model.json"


def models_folder() -> Path:
    """`SENNIT_MODELS`, or a folder in the user's cache; it may not exist yet."""
    chosen = os.environ.get("SENNIT_MODELS")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "sennit" / "models"


def installed_models() -> list[str]:
    """The names under which models in the models folder can be used with provider `onnx`."""
    folder = models_folder()
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if is_model(entry))


def is_model(folder: Path) -> bool:
    """Whether a folder holds a graph and its tokenizer. Unfinished installations start with a dot."""
    return not folder.name.startswith(".") and (folder / GRAPH).is_file() and (folder / TOKENIZER).is_file()


def find_model(model: str) -> Path:
    """The folder of an installed model's name, or of a path (anything with a slash, or that starts with ~)."""
    is_path = "/" in model or os.sep in model or model.startswith((".", "~"))
    folder = Path(model).expanduser() if is_path else models_folder() / model
    if is_model(folder):
        return folder
    if folder.is_dir():
        raise NotFound(f"{folder} is not a model: it needs the files {GRAPH} and {TOKENIZER}.")
    if is_path:
        raise NotFound(f"There is no folder {folder}; embedding.model must name one with an ONNX model.")
    known = ", ".join(installed_models()) or "none"
    raise NotFound(
        f"The model {model!r} is not installed in {models_folder()} (there: {known}). "
        "Install MiniLM with: sennit models install minilm"
    )
