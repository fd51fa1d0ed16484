"""What an embedding model is to the rest of sennit, and what a user may configure about one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, get_args
from urllib.parse import urlsplit

from sennit.errors import SettingsError

if TYPE_CHECKING:  # numpy takes longer to import than all of this; `sennit --help` should not pay for it
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"
Provider: TypeAlias = Literal["static", "onnx", "openai", "ollama", "none"]
PROVIDERS: Final[tuple[str, ...]] = get_args(Provider)

DEFAULT_MODELS: Final = {
    "static": "sennit-static-256",
    "onnx": "minilm",
    "openai": "text-embedding-3-small",
    "ollama": "qwen3-embedding",
    "none": "",
}

MAX_RETRIES: Final = 20
MAX_DIMENSIONS: Final = 65_536

_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Embedder(Protocol):
    """Turns texts into unit vectors. Safe to use from several threads."""

    @property
    def name(self) -> str:
        """What a person calls it: `static/sennit-static-256`."""

    @property
    def fingerprint(self) -> str:
        """Two embedders with one fingerprint give comparable vectors; never holds a URL or a credential."""

    @property
    def dimensions(self) -> int:
        """The length of every vector. A remote model may have to be asked once to know."""

    @property
    def max_batch(self) -> int:
        """How many texts are best handed over at once; more are split."""

    @property
    def inline(self) -> bool:
        """True: fast and local, so a write embeds at once. False: embed in the background."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row per text, of length one; the row of an empty text is zero."""

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question, of length one; zero for an empty one."""

    def close(self) -> None:
        """Let go of connections and sessions. Closing twice is fine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpec:
    """What a user configures about the embedding model; checked when it is made."""

    provider: Provider = "static"
    model: str = ""
    """Empty: the provider's default. For `onnx`: an installed model's name, or a folder."""
    dimensions: int | None = None
    """Keep the first n numbers of each vector (Matryoshka) and re-normalise."""
    base_url: str | None = None
    api_key_env: str | None = None
    """The *name* of the environment variable that holds the key."""
    timeout: float = 30.0
    """Seconds for one call to a remote model, its retries included."""
    retries: int = 3
    backoff: float = 0.5
    """Seconds before the first retry; doubles with each, with jitter."""
    batch_size: int | None = None
    """Texts handed to the model at once (`embedding.batch`). None: what suits the provider."""
    query_prefix: str | None = None
    document_prefix: str | None = None
    """None: what the model itself asks for. Some models want `query: ` and `passage: `."""
    query_ttl: float = 86_400.0
    """Seconds for which the vector of a question by a remote model is kept."""

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
            # The value is not repeated: what stands here by mistake is most often the key itself.
            _refuse("api_key_env", "must be the name of an environment variable, such as OPENAI_API_KEY")
        if not self.model:
            object.__setattr__(self, "model", DEFAULT_MODELS[self.provider])


def check_base_url(url: str, section: str = "embedding") -> None:
    """Refuse what is not a plain http(s) address, and one that carries a password."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if "@" in url:  # the address is not repeated: there is a password in it
        _refuse(
            "base_url", "must not carry a user name or password; use api_key_env for the credential", section
        )
    if not usable:
        _refuse("base_url", f"{url!r} is not an http:// or https:// address", section)
    if "?" in url or "#" in url:
        _refuse("base_url", "must end with the path; leave out what follows '?' or '#'", section)


def _check_whole(key: str, value: object, smallest: int, largest: int) -> None:
    if type(value) is not int or not smallest <= value <= largest:
        _refuse(key, f"{value!r} is not a whole number from {smallest} to {largest}")


def _check_seconds(key: str, value: object, *, smallest: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not smallest <= value <= 3600:
        _refuse(key, f"{value!r} is not a number of seconds from {smallest:g} to 3600")


def _refuse(key: str, problem: str, section: str = "embedding") -> None:
    raise SettingsError(f"{section}.{key}: {problem}.", key=f"{section}.{key}")
