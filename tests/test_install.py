"""The package as a user installs it: the wheel, in an environment of its own, far from the checkout."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXTRA_FOR_EVERYTHING = "all"

pytestmark = pytest.mark.slow


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source archive as an index would receive both."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, folder=out)
    assert list(out.glob("sennit-*.tar.gz"))
    (built,) = out.glob("sennit-*.whl")
    return built


@pytest.mark.parametrize(
    ("extras", "lock"), [("", "core"), (f"[{EXTRA_FOR_EVERYTHING}]", "dev")], ids=["core", "all"]
)
def test_the_installed_wheel_helps_searches_and_shows_the_demo(
    wheel: Path, extras: str, lock: str, tmp_path: Path
) -> None:
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    # The versions that the tests ran with, so that a new release elsewhere does not decide this test.
    constraints = ROOT / "requirements" / f"{lock}.lock"
    pins = tmp_path / "constraints.txt"
    pins.write_text(
        "\n".join(
            line.removesuffix("\\").strip()
            for line in constraints.read_text(encoding="utf-8").splitlines()
            if "==" in line and not line.startswith((" ", "#"))
        ),
        encoding="utf-8",
    )
    run(
        *(
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--constraint",
            pins,
            f"sennit{extras} @ {wheel.as_uri()}",
        ),
        folder=tmp_path,
    )
    sennit = home / "bin" / "sennit"

    assert "Usage: sennit" in run(sennit, "--help", folder=tmp_path).stdout
    demo = json.loads(run(sennit, "demo", "--json", folder=tmp_path).stdout)
    assert demo["ok"]
    if extras:
        assert demo["left_out"] == []
    (tmp_path / "note.md").write_text("The ferry leaves at noon.\n", encoding="utf-8")
    run(sennit, "index", "note.md", folder=tmp_path)
    assert "noon" in run(sennit, "search", "when does the ferry leave", folder=tmp_path).stdout
