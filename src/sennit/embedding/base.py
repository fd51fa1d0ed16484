"""The `Embedder` interface, and the settings of an embedding model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, get_args
from urllib.parse import urlsplit

from sennit.errors import SettingsError

if TYPE_CHECKING:  # importing numpy would slow down `sennit --help`
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"
Provider: TypeAlias = Literal["static", "onnx", "openai", "ollama", "given", "none"]
PROVIDERS: Final[tuple[str, ...]] = get_args(Provider)

DEFAULT_MODELS: Final = {
    "static": "sennit-static-256",
    "onnx": "minilm",
    "openai": "text-embedding-3-small",
    "ollama": "qwen3-embedding",
    "given": "",
    "none": "",
}

MAX_RETRIES: Final = 20
MAX_DIMENSIONS: Final = 65_536

_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Embedder(Protocol):
    """Turns texts into unit vectors. Safe to use from several threads."""

    @property
    def name(self) -> str:
        """The name shown to people: `static/sennit-static-256`."""

    @property
    def fingerprint(self) -> str:
        """Embedders with equal fingerprints produce comparable vectors. Contains no URL and no credential."""

    @property
    def dimensions(self) -> int:
        """The length of every vector. Reading it may send one request to a remote model."""

    @property
    def max_batch(self) -> int:
        """The best number of texts per call of `embed_documents`; a longer list is split into batches."""

    @property
    def inline(self) -> bool:
        """True: fast and local, so a write computes its vectors itself. False: a background thread does."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, as rows; the row of an empty text is zero."""

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of a query; zero for an empty query."""

    def close(self) -> None:
        """Release connections and sessions. Closing twice is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpec:
    """The settings of an embedding model, checked on construction."""

    provider: Provider = "static"
    model: str = ""
    """Empty: the provider's default. For `onnx`: an installed model's name, or a folder."""
    dimensions: int | None = None
    """Keep the first n numbers of each vector (Matryoshka) and normalise again."""
    base_url: str | None = None
    api_key_env: str | None = None
    """The *name* of the environment variable that holds the key."""
    timeout: float = 30.0
    """Seconds for one call of a remote model, including retries."""
    retries: int = 3
    backoff: float = 0.5
    """Seconds before the first retry. Doubles with each retry, with jitter."""
    batch_size: int | None = None
    """Texts per call of the model (`embedding.batch`). None: the provider's default."""
    query_prefix: str | None = None
    document_prefix: str | None = None
    """None: the model's own prefix. Some models are trained with `query: ` and `passage: `."""
    query_ttl: float = 86_400.0
    """Seconds for which a query vector from a remote model stays in the cache."""

    def __post_init__(self) -> None:
        if self.provider not in PROVIDERS:
            _refuse("provider", f"{self.provider!r} is not one of {', '.join(PROVIDERS)}")
        for key in ("model", "base_url", "api_key_env", "query_prefix", "document_prefix"):
            value = getattr(self, key)
            if not (isinstance(value, str) or (value is None and key != "model")):
                _refuse(key, f"must be a text, not {type(value).__name__}")
        if self.dimensions is not None:
            _check_whole("dimensions", self.dimensions, 1, MAX_DIMENSIONS)
        if self.batch_size is not None:
            _check_whole("batch", self.batch_size, 1, 65_536)
        _check_whole("retries", self.retries, 0, MAX_RETRIES)
        _check_seconds("timeout", self.timeout, smallest=0.001)
        _check_seconds("backoff", self.backoff, smallest=0.0)
        if self.base_url is not None:
            check_base_url(self.base_url)
        if self.api_key_env is not None and not _VARIABLE_NAME.fullmatch(self.api_key_env):
            # The message does not repeat the value: a wrong value is most often the key itself.
            _refuse("api_key_env", "must be the name of an environment variable, such as OPENAI_API_KEY")
        if not self.model:
            object.__setattr__(self, "model", DEFAULT_MODELS[self.provider])


def check_base_url(url: str, section: str = "embedding") -> None:
    """Reject an address that is not plain http(s), or that contains a password."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if "@" in url:  # the message does not repeat the address: it contains a password
        _refuse(
            "base_url",
            "must not contain a user name or password; use api_key_env for the credential",
            section,
        )
    if not usable:
        _refuse("base_url", f"{url!r} is not an http:// or https:// address", section)
    if "?" in url or "#" in url:
        _refuse("base_url", "must end with the path; remove the query string or fragment", section)


def _check_whole(key: str, value: object, smallest: int, largest: int) -> None:
    if type(value) is not int or not smallest <= value <= largest:
        _refuse(key, f"{value!r} is not a whole number from {smallest} to {largest}")


def _check_seconds(key: str, value: object, *, smallest: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not smallest <= value <= 3600:
        _refuse(key, f"{value!r} is not a number of seconds from {smallest:g} to 3600")


def _refuse(key: str, problem: str, section: str = "embedding") -> None:
    raise SettingsError(f"{section}.{key}: {problem}.", key=f"{section}.{key}")
