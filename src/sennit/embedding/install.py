"""Puts a model into its folder, complete or not at all."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from sennit.embedding.models import CONFIG_FILE, is_model
from sennit.errors import EmbeddingError

IDENTITY: Final = ("source_sha256", "build")
"""The settings in sennit-model.json that tell one installed model from another."""


def is_installed(target: Path, config: Mapping[str, object]) -> bool:
    """Return whether a folder holds the model that this configuration describes."""
    if not is_model(target):
        return False
    try:
        installed = json.loads((target / CONFIG_FILE).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(installed, dict) and all(installed.get(key) == config.get(key) for key in IDENTITY)


@contextlib.contextmanager
def new_model_folder(target: Path, config: Mapping[str, object]) -> Iterator[Path]:
    """Yield a temporary folder for the files of a model, then add its configuration and move it to `target`."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise EmbeddingError(f"{target} exists and is not this model; remove it, or choose another folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    # In the same parent folder, so that the last step is a rename within one file system.
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as work:
        finished = Path(work) / "finished"
        finished.mkdir()
        yield finished
        (finished / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        try:
            if target.is_dir():
                target.rmdir()  # empty, as checked before; Windows cannot rename onto a folder
            finished.rename(target)
        except OSError as error:
            if not is_installed(target, config):  # otherwise another process installed the same model first
                raise EmbeddingError(f"The model cannot be moved to {target}: {error}") from error
