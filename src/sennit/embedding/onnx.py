"""Sentence-embedding models as ONNX graphs, run on the CPU: a folder with model.onnx and tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xxhash

from sennit.embedding.models import CONFIG, GRAPH, TOKENIZER, find_model
from sennit.embedding.vectors import kept_dimensions, normalised, prefix_mark
from sennit.errors import EmbeddingError, MissingExtra

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from sennit.embedding.base import EmbeddingSpec, Vectors

POOLINGS: Final = ("mean", "cls", "none")
MAX_LENGTH: Final = 512
"""Pieces per text where neither the configuration nor the tokenizer says: the positions BERT has."""

BATCH: Final = 16
"""Texts per run where the configuration does not say; beyond it a CPU gains nothing."""

HANDED_OVER: Final = 128
"""Texts worth handing over at once, so that sorting by length has something to sort."""

_POOLED: Final = "sentence_embedding"
_READ: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What sennit-model.json may say about a model."""

    pooling: str | None = None
    """mean (over the attention mask), cls, or none where the graph pools itself. None: what the graph offers."""
    max_length: int | None = None
    batch: int = BATCH
    query_prefix: str = ""
    document_prefix: str = ""

    @classmethod
    def read(cls, folder: Path) -> ModelConfig:
        path = folder / CONFIG
        try:
            given = json.loads(path.read_bytes())
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError) as error:
            raise EmbeddingError(f"{path} cannot be read as JSON ({error}); repair or remove it.") from error
        if not isinstance(given, dict):
            raise EmbeddingError(f"{path} must hold a JSON object; repair or remove it.")
        config = cls(**{key: given[key] for key in cls.__slots__ if key in given})
        sound = (
            config.pooling in (None, *POOLINGS)
            and (config.max_length is None or _is_count(config.max_length))
            and _is_count(config.batch)
            and isinstance(config.query_prefix, str)
            and isinstance(config.document_prefix, str)
        )
        if not sound:
            raise EmbeddingError(
                f"{path} has a value that cannot be used: pooling is one of {', '.join(POOLINGS)}; "
                "max_length and batch are whole numbers from 1; prefixes are texts."
            )
        return config


class OnnxEmbedder:
    """Runs the model in this process, but too slowly for a write to wait for it."""

    inline: Final = False

    def __init__(self, spec: EmbeddingSpec) -> None:
        folder = find_model(spec.model)
        config = ModelConfig.read(folder)
        self.name: Final = f"onnx/{folder.name}"
        self.max_batch: Final = spec.batch_size or HANDED_OVER
        # The model knows better than a general setting how many texts one run may hold.
        self._per_run: Final = min(config.batch, self.max_batch)
        self._query_prefix: Final = config.query_prefix if spec.query_prefix is None else spec.query_prefix
        self._document_prefix: Final = (
            config.document_prefix if spec.document_prefix is None else spec.document_prefix
        )
        self._tokenizer, length = _load_tokenizer(folder / TOKENIZER, config.max_length)
        self._session: Any = _load_session(folder / GRAPH)
        self._inputs: Final = {given.name for given in self._session.get_inputs()}
        self._output, self._pooling = _choose_output(self._session, config.pooling, folder)
        own = self._run([self._tokenizer.encode("dimensions").ids]).shape[1]
        self.dimensions: Final = kept_dimensions(spec.dimensions, own, self.name)
        how = f"{self._pooling}:{length}"
        self.fingerprint: Final = (
            f"onnx:{folder.name}:{self.dimensions}:{_digest(folder, how)}"
            + prefix_mark(self._document_prefix)
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
            place: self._tokenizer.encode(_encodable(prefix + text)).ids
            for place, text in enumerate(texts)
            if text and not text.isspace()
        }
        # Sorted by length, so that a batch holds little padding.
        order = sorted(pieces, key=lambda place: len(pieces[place]))
        for start in range(0, len(order), self._per_run):
            places = order[start : start + self._per_run]
            pooled = self._run([pieces[place] for place in places])
            vectors[places] = normalised(pooled[:, : self.dimensions].astype(np.float64))
        return vectors

    def _run(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """One pooled row per list of pieces."""
        longest = max(1, *map(len, batch))
        ids = np.zeros((len(batch), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, pieces in enumerate(batch):
            ids[row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        offered = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        session = self._session
        if session is None:
            raise EmbeddingError(f"{self.name} was closed; build it anew.")
        missing = self._inputs - offered.keys()
        if missing:
            raise EmbeddingError(
                f"{self.name} asks for the inputs {', '.join(sorted(missing))}, which sennit does not have; "
                "export the model with input_ids, attention_mask and token_type_ids only."
            )
        try:
            (answer,) = session.run([self._output], {name: offered[name] for name in self._inputs})
        except Exception as error:
            raise EmbeddingError(f"{self.name} failed: {error}") from error
        pooled = _pool(answer, mask, self._pooling)
        if pooled.ndim != 2 or len(pooled) != len(batch) or not np.isfinite(pooled).all():
            raise EmbeddingError(f"{self.name} answered with something that is not one vector per text.")
        return pooled


def _pool(answer: NDArray[np.float32], mask: NDArray[np.int64], pooling: str) -> NDArray[np.float32]:
    if pooling == "none":
        return answer
    if pooling == "cls":
        return answer[:, 0]
    weights = mask.astype(np.float32)[:, :, None]
    pooled: NDArray[np.float32] = (answer * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    return pooled


def _load_session(path: Path) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtra("The onnx embedding provider", "onnx") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # its warnings go to stderr, where a stdio server's client reads
    # Threads that spin while they wait take the processor from searches on a small machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EmbeddingError(f"{path} is not an ONNX model that can be run: {error}") from error


def _load_tokenizer(path: Path, configured: int | None) -> tuple[Tokenizer, int]:
    """The tokenizer without padding, and after how many pieces it cuts."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise EmbeddingError(f"{path} is not a tokenizer that can be read: {error}") from error
    own = (tokenizer.truncation or {}).get("max_length")
    length = configured or (own if isinstance(own, int) else MAX_LENGTH)
    tokenizer.no_padding()
    tokenizer.enable_truncation(length)
    return tokenizer, length


def _choose_output(session: Any, pooling: str | None, folder: Path) -> tuple[str, str]:
    """Which output to read, and how to pool it."""
    outputs = session.get_outputs()
    per_text = [output.name for output in outputs if len(output.shape) == 2]
    per_piece = [output.name for output in outputs if len(output.shape) == 3]
    if pooling in (None, "none") and (_POOLED in per_text or (per_text and not per_piece)):
        return (_POOLED if _POOLED in per_text else per_text[0]), "none"
    if pooling != "none" and per_piece:
        return per_piece[0], pooling or "mean"
    raise EmbeddingError(
        f"The outputs of {folder / GRAPH} do not suit pooling {pooling or 'mean'!r}: it needs one "
        f"{'vector per text' if pooling == 'none' else 'vector per piece'}; set pooling in {CONFIG}."
    )


def _digest(folder: Path, how: str) -> str:
    """Of the graph (with its external weights), the tokenizer, and how they are used."""
    digest = xxhash.xxh3_128(how.encode())
    for path in [*sorted(folder.glob(f"{GRAPH}*")), folder / TOKENIZER]:
        with path.open("rb") as file:
            while part := file.read(_READ):
                digest.update(part)
    return digest.hexdigest()


def _encodable(text: str) -> str:
    """A lone surrogate is not text, and the tokenizer refuses it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1
