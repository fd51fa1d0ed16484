"""The OpenAPI document, and a running service held to it by requests that are made up from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sennit.apps.http import requests
from sennit.apps.http.auth import PUBLIC_PATHS

from .conftest import Place, Service, running

SCHEMATHESIS = str(Path(sys.executable).with_name("schemathesis"))

REFUSALS = """\
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "413", "415", "422", "429"]
"""
"""A request that is too large is refused before anybody looks at what else is wrong with it."""

ADDRESSES = {
    ("post", "/v1/search"),
    ("post", "/v1/ask"),
    ("get", "/v1/context"),
    ("get", "/v1/why"),
    ("post", "/v1/plan"),
    ("get", "/introspect/hydration/{episode_id}"),
    ("post", "/v1/records"),
    ("delete", "/v1/records/{id}"),
    ("post", "/v1/turns"),
    ("post", "/v1/facts"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/metrics"),
}


@pytest.fixture
def document(service: Service) -> Any:
    return service.get("/openapi.json", None).json()


def operations(document: Any) -> dict[tuple[str, str], Any]:
    return {
        (method, path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_every_address_is_documented(document: Any) -> None:
    assert operations(document).keys() == ADDRESSES
    for operation in operations(document).values():
        assert operation["summary"]
        assert operation["description"]
        assert operation["tags"]


def test_what_needs_a_token_says_so(document: Any) -> None:
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for (_, path), operation in operations(document).items():
        assert ("security" in operation) is (path not in PUBLIC_PATHS), path


def test_every_error_is_documented_in_its_one_form(document: Any) -> None:
    for (_, path), operation in operations(document).items():
        for status in ("400", "401", "422", "429", "503", "504"):
            content = operation["responses"][status]["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/ErrorResponse"}, path
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_the_examples_are_what_they_are_examples_of(document: Any, service: Service) -> None:
    for path, form in (
        ("/v1/search", requests.SearchBody),
        ("/v1/ask", requests.AskBody),
        ("/v1/records", requests.NewRecord),
        ("/v1/turns", requests.NewTurn),
        ("/v1/facts", requests.NewFact),
    ):
        examples = document["components"]["schemas"][form.__name__]["examples"]
        assert examples
        for example in examples:
            assert service.post(path, example).status_code == 200


def test_limits_are_documented(document: Any) -> None:
    search = document["components"]["schemas"]["SearchBody"]
    assert search["additionalProperties"] is False
    assert search["properties"]["query"]["maxLength"] == 10_000
    body = operations(document)["post", "/v1/records"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"maxItems": 1000, "minItems": 1}.items() <= {
        key: value for one in body["oneOf"] for key, value in one.items()
    }.items()


def hold_to_it(place: Place, *options: str) -> None:
    """Ask a running service what its document allows and what it forbids, and compare the answers."""
    settings = place.path.parent / "schemathesis.toml"
    settings.write_text(REFUSALS)
    # A change is judged by the same requests each time; whoever looks for more has others in each run.
    chance = ("--generation-deterministic",) if os.environ.get("CI") == "true" else ()
    with running(place, "--quiet") as server:
        done = subprocess.run(
            [
                SCHEMATHESIS,
                *("--config-file", str(settings)),
                *("run", f"{server.url}/openapi.json", "--no-color", "--continue-on-failure"),
                *("--header", f"Authorization: Bearer {place.tokens['owner']}"),
                # What the document allows may still name a recipe that is not there, or a filter of no meaning.
                *("--checks", "all", "--exclude-checks", "positive_data_acceptance"),
                # How many tries a made-up request takes says nothing of the service; by chance it took too many.
                *("--suppress-health-check", "all"),
                *chance,
                *options,
            ],
            capture_output=True,
            text=True,
            cwd=place.path.parent,
        )
        assert done.returncode == 0, _shown(done.stdout) + done.stderr
        assert f"{len(ADDRESSES)} selected / {len(ADDRESSES)} total" in done.stdout
        assert "Traceback" not in server.log.read_text()


def _shown(report: str) -> str:
    """A report without the ends of long lines: a body may have megabytes."""
    return "\n".join(line[:500] for line in report.splitlines())


def test_the_service_keeps_to_its_document(place: Place) -> None:
    hold_to_it(place, "--phases", "examples,fuzzing", "--max-examples", "10")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_service_keeps_to_its_document_in_every_corner(place: Place) -> None:
    hold_to_it(place, "--phases", "examples,coverage,fuzzing", "--max-examples", "60")
