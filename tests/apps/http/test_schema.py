"""The OpenAPI document, and the conformance of the service to it, checked with generated requests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Header, Response

from sennit.apps.http import requests
from sennit.apps.http.auth import PUBLIC_PATHS
from sennit.apps.http.bodies import StrictRoute

from .conftest import SampleDatabase, Service, run_server

SCHEMATHESIS = str(Path(sys.executable).with_name("schemathesis"))

REFUSALS = """\
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "413", "415", "422", "429"]
"""
"""An oversized request is rejected before its other errors are checked."""

ADDRESSES = {
    ("post", "/v1/search"),
    ("post", "/v1/ask"),
    ("get", "/v1/context"),
    ("get", "/v1/why"),
    ("post", "/v1/plan"),
    ("get", "/introspect/hydration/{episode_id}"),
    ("post", "/v1/records"),
    ("get", "/v1/records"),
    ("delete", "/v1/records"),
    ("get", "/v1/records/{id}"),
    ("delete", "/v1/records/{id}"),
    ("get", "/v1/status"),
    ("get", "/v1/collections"),
    ("get", "/v1/projects"),
    ("get", "/v1/sessions"),
    ("delete", "/v1/sessions/{session}"),
    ("post", "/v1/turns"),
    ("post", "/v1/facts"),
    ("post", "/v1/feedback"),
    ("get", "/v1/feedback"),
    ("delete", "/v1/feedback"),
    ("post", "/v1/why"),
    ("get", "/v1/source"),
    ("post", "/v1/trial"),
    ("post", "/v1/trial/judged"),
    ("get", "/v1/state"),
    ("get", "/v1/report"),
    ("post", "/v1/sign-in"),
    ("get", "/v1/caller"),
    ("get", "/v1/recipes"),
    ("post", "/v1/recipes"),
    ("get", "/v1/episodes"),
    ("get", "/v1/fields"),
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


def test_every_route_is_documented(document: Any) -> None:
    assert operations(document).keys() == ADDRESSES
    for operation in operations(document).values():
        assert operation["summary"]
        assert operation["description"]
        assert operation["tags"]


def test_routes_with_a_token_declare_it(document: Any) -> None:
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for (_, path), operation in operations(document).items():
        assert ("security" in operation) is (path not in PUBLIC_PATHS), path


def test_errors_are_documented_with_one_schema(document: Any) -> None:
    for (_, path), operation in operations(document).items():
        for status in ("400", "401", "422", "429", "503", "504"):
            content = operation["responses"][status]["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/ErrorResponse"}, path
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_documented_examples_are_accepted(document: Any, service: Service) -> None:
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
    assert search["properties"]["query"]["maxLength"] == 100_000
    body = operations(document)["post", "/v1/records"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"maxItems": 1000, "minItems": 1}.items() <= {
        key: value for one in body["oneOf"] for key, value in one.items()
    }.items()


def hold_to_it(sample: SampleDatabase, *options: str) -> None:
    """Ask a run_server service what its document allows and what it forbids, and compare the answers."""
    settings = sample.path.parent / "schemathesis.toml"
    settings.write_text(REFUSALS)
    # In CI the requests are the same in each run. Elsewhere each run generates others.
    chance = ("--generation-deterministic",) if os.environ.get("CI") == "true" else ()
    with run_server(sample, "--quiet") as server:
        done = subprocess.run(
            [
                SCHEMATHESIS,
                *("--config-file", str(settings)),
                *("run", f"{server.url}/openapi.json", "--no-color", "--continue-on-failure"),
                *("--header", f"Authorization: Bearer {sample.tokens['owner']}"),
                # A request that matches the schema may still name an unknown recipe or an invalid filter.
                *("--checks", "all", "--exclude-checks", "positive_data_acceptance"),
                # The number of tries to generate a request is random and says nothing about the service.
                *("--suppress-health-check", "all"),
                *chance,
                *options,
            ],
            capture_output=True,
            text=True,
            cwd=sample.path.parent,
        )
        assert done.returncode == 0, _shown(done.stdout) + done.stderr
        assert f"{len(ADDRESSES)} selected / {len(ADDRESSES)} total" in done.stdout
        assert "Traceback" not in server.log.read_text()


def _shown(report: str) -> str:
    """The report with long lines cut, because a body may have megabytes."""
    return "\n".join(line[:500] for line in report.splitlines())


def test_service_conforms_to_its_openapi_document(sample: SampleDatabase) -> None:
    hold_to_it(sample, "--phases", "examples,fuzzing", "--max-examples", "10")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_service_conforms_to_its_openapi_document_exhaustively(sample: SampleDatabase) -> None:
    hold_to_it(sample, "--phases", "examples,coverage,fuzzing", "--max-examples", "60")


def test_an_endpoint_may_not_take_what_its_route_does_not_read() -> None:
    async def endpoint(accept: Annotated[str, Header()]) -> Response:
        return Response(accept)

    with pytest.raises(TypeError, match=r"endpoint of /accept takes more"):
        APIRouter(route_class=StrictRoute).get("/accept")(endpoint)
