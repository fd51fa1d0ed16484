"""Runs sentence-embedding models in ONNX format on the CPU. A model is a folder with model.onnx and tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xxhash

from sennit.embedding.models import CONFIG_FILE, GRAPH_FILE, TOKENIZER_FILE, find_model
from sennit.embedding.vector_ops import normalise_rows, prefix_fingerprint, resolve_dimensions
from sennit.errors import EmbeddingError, MissingExtra

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from sennit.embedding.base import EmbeddingSpec, Vectors

POOLINGS: Final = ("mean", "cls", "none")
DEFAULT_MAX_PIECES: Final = 512
"""Pieces per text if neither the configuration nor the tokenizer sets a limit: BERT has 512 positions."""

DEFAULT_RUN_SIZE: Final = 16
"""Texts per run of the graph if the configuration sets none; larger runs are no faster on a CPU."""

DEFAULT_BATCH_SIZE: Final = 128
"""Texts per call of `embed_documents`: enough that sorting them by length saves padding."""

_POOLED_OUTPUT: Final = "sentence_embedding"
_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The settings of a model in sennit-model.json."""

    pooling: str | None = None
    """mean (over the attention mask), cls, or none if the graph pools. None: choose by the graph's outputs."""
    max_length: int | None = None
    batch: int = DEFAULT_RUN_SIZE
    query_prefix: str = ""
    document_prefix: str = ""

    @classmethod
    def read(cls, folder: Path) -> ModelConfig:
        path = folder / CONFIG_FILE
        try:
            settings = json.loads(path.read_bytes())
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError) as error:
            raise EmbeddingError(f"{path} cannot be read as JSON ({error}); repair or remove it.") from error
        if not isinstance(settings, dict):
            raise EmbeddingError(f"{path} must contain a JSON object; repair or remove it.")
        config = cls(**{key: settings[key] for key in cls.__slots__ if key in settings})
        valid = (
            config.pooling in (None, *POOLINGS)
            and (config.max_length is None or _is_positive_int(config.max_length))
            and _is_positive_int(config.batch)
            and isinstance(config.query_prefix, str)
            and isinstance(config.document_prefix, str)
        )
        if not valid:
            raise EmbeddingError(
                f"{path} has an invalid value: pooling must be one of {', '.join(POOLINGS)}, "
                "max_length and batch whole numbers from 1, and the prefixes texts."
            )
        return config


class OnnxEmbedder:
    """Runs the model in this process. It is too slow for a write to wait for it, so it is not inline."""

    inline: Final = False

    def __init__(self, spec: EmbeddingSpec) -> None:
        folder = find_model(spec.model)
        config = ModelConfig.read(folder)
        self.name: Final = f"onnx/{folder.name}"
        self.max_batch: Final = spec.batch_size or DEFAULT_BATCH_SIZE
        # The model's own limit on texts per run takes precedence over the general setting.
        self._run_size: Final = min(config.batch, self.max_batch)
        self._query_prefix: Final = config.query_prefix if spec.query_prefix is None else spec.query_prefix
        self._document_prefix: Final = (
            config.document_prefix if spec.document_prefix is None else spec.document_prefix
        )
        self._tokenizer, max_pieces = load_tokenizer(folder / TOKENIZER_FILE, config.max_length)
        self._session: Any = load_session(folder / GRAPH_FILE)
        self._input_names: Final = {graph_input.name for graph_input in self._session.get_inputs()}
        self._output_name, self._pooling = _choose_output(self._session, config.pooling, folder)
        native = self._run([self._tokenizer.encode("dimensions").ids]).shape[1]
        self.dimensions: Final = resolve_dimensions(spec.dimensions, native, self.name)
        usage = f"{self._pooling}:{max_pieces}"
        self.fingerprint: Final = (
            f"onnx:{folder.name}:{self.dimensions}:{_digest(folder, usage)}"
            + prefix_fingerprint(self._document_prefix)
        )

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, self._document_prefix)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._embed((text,), self._query_prefix)[0]
        return vector

    def close(self) -> None:
        self._session = None

    def _embed(self, texts: Sequence[str], prefix: str) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        pieces = {
            row: self._tokenizer.encode(replace_surrogates(prefix + text)).ids
            for row, text in enumerate(texts)
            if text and not text.isspace()
        }
        # Sorted by length, so that a run needs little padding.
        order = sorted(pieces, key=lambda row: len(pieces[row]))
        for start in range(0, len(order), self._run_size):
            rows = order[start : start + self._run_size]
            pooled = self._run([pieces[row] for row in rows])
            vectors[rows] = normalise_rows(pooled[:, : self.dimensions].astype(np.float64))
        return vectors

    def _run(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return one pooled row per list of pieces."""
        longest = max(1, *map(len, batch))
        ids = np.zeros((len(batch), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, pieces in enumerate(batch):
            ids[row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        session = self._session
        if session is None:
            raise EmbeddingError(f"{self.name} is closed; create it again.")
        unsupported = self._input_names - inputs.keys()
        if unsupported:
            raise EmbeddingError(
                f"{self.name} asks for the inputs {', '.join(sorted(unsupported))}, which sennit does not "
                "support; export the model with input_ids, attention_mask and token_type_ids only."
            )
        try:
            (output,) = session.run([self._output_name], {name: inputs[name] for name in self._input_names})
        except Exception as error:
            raise EmbeddingError(f"{self.name} failed: {error}") from error
        pooled = _pool(output, mask, self._pooling)
        if pooled.ndim != 2 or len(pooled) != len(batch) or not np.isfinite(pooled).all():
            raise EmbeddingError(f"{self.name} did not return one finite vector per text.")
        return pooled


def _pool(output: NDArray[np.float32], mask: NDArray[np.int64], pooling: str) -> NDArray[np.float32]:
    if pooling == "none":
        return output
    if pooling == "cls":
        return output[:, 0]
    weights = mask.astype(np.float32)[:, :, None]
    pooled: NDArray[np.float32] = (output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    return pooled


def load_session(path: Path) -> Any:
    """Return a session of onnxruntime for a graph."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtra("A model in ONNX format", "onnx") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # warnings go to stderr, which the client of a stdio server reads
    # Spinning threads would take CPU time from searches on a small machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EmbeddingError(f"{path} cannot be loaded as an ONNX model: {error}") from error


def load_tokenizer(path: Path, configured: int | None) -> tuple[Tokenizer, int]:
    """Return the tokenizer, without padding, and the number of pieces at which it truncates."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise EmbeddingError(f"{path} cannot be loaded as a tokenizer: {error}") from error
    native = (tokenizer.truncation or {}).get("max_length")
    max_pieces = configured or (native if isinstance(native, int) else DEFAULT_MAX_PIECES)
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_pieces)
    return tokenizer, max_pieces


def _choose_output(session: Any, pooling: str | None, folder: Path) -> tuple[str, str]:
    """Choose which output to read, and how to pool it."""
    outputs = session.get_outputs()
    per_text = [output.name for output in outputs if len(output.shape) == 2]
    per_piece = [output.name for output in outputs if len(output.shape) == 3]
    if pooling in (None, "none") and (_POOLED_OUTPUT in per_text or (per_text and not per_piece)):
        return (_POOLED_OUTPUT if _POOLED_OUTPUT in per_text else per_text[0]), "none"
    if pooling != "none" and per_piece:
        return per_piece[0], pooling or "mean"
    raise EmbeddingError(
        f"The outputs of {folder / GRAPH_FILE} do not suit pooling {pooling or 'mean'!r}: it needs one "
        f"{'vector per text' if pooling == 'none' else 'vector per piece'}; set pooling in {CONFIG_FILE}."
    )


def _digest(folder: Path, usage: str) -> str:
    """Return a digest of the graph (with its external weights), the tokenizer, and how they are used."""
    digest = xxhash.xxh3_128(usage.encode())
    for path in [*sorted(folder.glob(f"{GRAPH_FILE}*")), folder / TOKENIZER_FILE]:
        with path.open("rb") as file:
            while part := file.read(_READ_BYTES):
                digest.update(part)
    return digest.hexdigest()


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by `?`: the tokenizer rejects them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _is_positive_int(value: object) -> bool:
    return type(value) is int and value >= 1
