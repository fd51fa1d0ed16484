"""One request value: every interface builds the same search, and refuses the same values with the same words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from click import Context, FloatRange, IntRange, Option
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp_types import CallToolResult, TextContent
from starlette.testclient import TestClient

import sennit
from sennit import Caller, Database, Record, SearchRequest, search_parameters
from sennit.apps.cli.program import program
from sennit.apps.http.app import HttpOptions, make_app
from sennit.apps.http.requests import URL_QUERY
from sennit.apps.mcp.server import LazyDatabase, make_server
from sennit.apps.tui.items import run_query
from sennit.engine.search_request import SearchOptions
from sennit.errors import InvalidInput, SennitError
from sennit.search_parameters import (
    CLIENT_ID,
    COLLECTIONS,
    EDITOR,
    INCLUDE,
    KEYWORDS,
    LANGUAGE,
    LIMIT,
    LOOK_BACK,
    MIN_RELEVANCE,
    NEIGHBOURS,
    PROJECT,
    QUERY,
    RECENCY,
    RECIPE,
    SESSION_ID,
    AutoShare,
    Count,
    Hours,
    Parameter,
    Share,
    Text,
    Texts,
)
from sennit.tools.declarations import TOOLS, Tool

WORDS = ("harbour", "lights", "oak", "barrel", "March", "Priya", "ferry", "noon", "LOGIN_TIMEOUT")
LONGEST_NAME = "c" * 1024


def sample_records() -> Iterator[Record]:
    collections = ("artifacts", "artifact_chunks", "memory", "history", "default")
    for number in range(60):
        yield Record(
            id=f"r{number:02}",
            text=" ".join(WORDS[(number * step + step) % len(WORDS)] for step in range(1, 5)) + f" {number}",
            collection=collections[number % len(collections)],
            kind="note" if number % 3 else "report",
            parent=f"book{number % 4}" if number % 5 == 1 else None,
            position=number // 5 if number % 5 == 1 else None,
            sensitivity="private" if number % 11 == 0 else "normal",
            metadata={"price": number},
        )
    yield Record(id="named", text="harbour of the longest name", collection=LONGEST_NAME)


@dataclass
class Interfaces:
    """One database behind the library, HTTP, MCP, the command line and the terminal interface."""

    path: Path
    db: Database
    http: TestClient
    portal: BlockingPortal
    mcp: Client

    def library(self, request: SearchRequest) -> list[str]:
        return [hit.id for hit in self.db.search(request)]

    def post(self, body: dict[str, Any]) -> Any:
        response = self.http.post("/v1/search", json=body)
        assert response.status_code in (200, 404, 422), response.text
        return response.json()

    def call_tool(self, arguments: dict[str, Any], tool: str = "hybrid_search") -> CallToolResult:
        result: CallToolResult = self.portal.call(self.mcp.call_tool, tool, arguments)
        return result


@pytest.fixture(scope="module")
def interfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interfaces]:
    folder = tmp_path_factory.mktemp("interfaces")
    path = folder / "notes.sennit"
    (folder / "handbook.md").write_text(
        "# Handbook\n\nThe ferry waits LOGIN_TIMEOUT seconds at the harbour.\n"
    )
    with (
        sennit.open(path) as db,
        TestClient(make_app(db, HttpOptions(open_access=True)), base_url="http://127.0.0.1") as http,
        start_blocking_portal() as portal,
    ):
        db.add(sample_records())
        server = make_server(LazyDatabase(lambda: sennit.open(path)))
        with portal.wrap_async_context_manager(Client(server)) as mcp:
            yield Interfaces(path, db, http, portal, mcp)


# The same search on every interface

queries = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
filters = st.sampled_from(
    [
        None,
        {"kind": "note"},
        {"price": {"gte": 20}},
        {"or": [{"price": 7}, {"kind": "report"}]},
        {"kind": {"ilike": "*O*"}},
    ]
)
keywords = st.none() | st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True)
recipes = st.sampled_from(["default", "keyword", "vector", "artifacts", "memory", "files", "docs"])


@st.composite
def search_options(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a valid request, as JSON has them."""
    recipe = draw(recipes)
    limit = st.integers(1, 50 if recipe == "artifacts" else 1000)
    return {
        "query": draw(queries),
        "recipe": recipe,
        "limit": draw(st.none() | limit),
        "filters": draw(filters),
        "keywords": draw(keywords),
        "include": draw(st.sampled_from([[], ["memory"]])) if recipe == "artifacts" else [],
        "neighbours": draw(st.integers(0, 1)),
    }


@settings(max_examples=60)
@given(
    options=search_options(),
    collections=st.lists(st.sampled_from(["artifacts", "memory", "history"]), max_size=2),
    look_back=st.sampled_from([False, True, 0.5, 1_000_000.0]),
    neighbours=st.integers(0, 50),
)
def test_library_and_http_find_the_same(
    interfaces: Interfaces,
    options: dict[str, Any],
    collections: list[str],
    look_back: float | bool,
    neighbours: int,
) -> None:
    body = options | {"collections": collections, "look_back": look_back, "neighbours": neighbours}
    expected = interfaces.library(SearchRequest(**body))
    assert [hit["id"] for hit in interfaces.post(body)["hits"]] == expected


@settings(max_examples=60)
@given(options=search_options())
def test_library_and_mcp_find_the_same(interfaces: Interfaces, options: dict[str, Any]) -> None:
    expected = interfaces.library(SearchRequest(**options))
    arguments = {name: options[name] for name in ("query", "recipe", "limit", "filters")}
    arguments["include_memory"] = bool(options["include"])
    arguments["expand_neighbors"] = bool(options["neighbours"])
    if options["keywords"] is not None:
        arguments["exact_keywords"] = options["keywords"]
    result = interfaces.call_tool(arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    assert [hit["id"] for hit in result.structured_content["results"]] == expected


@settings(max_examples=30)
@given(options=search_options(), record=st.sampled_from([n for n in range(60) if n % 11]))
def test_why_explains_the_search_of_the_same_request(
    interfaces: Interfaces, options: dict[str, Any], record: int
) -> None:
    request = SearchRequest(**options)
    record_id = f"r{record:02}"
    assert interfaces.db.why(request, record_id).kept == (record_id in interfaces.library(request))


@given(options=search_options())
def test_single_arguments_and_a_request_are_the_same_search(
    interfaces: Interfaces, options: dict[str, Any]
) -> None:
    query = options.pop("query")
    single = [hit.id for hit in interfaces.db.search(query, **options)]
    assert single == interfaces.library(SearchRequest(query, **options))


# The same bounds on every interface


@dataclass(frozen=True)
class Bound:
    """A value at the bound of a parameter, and the next one beyond it."""

    parameter: Parameter
    inside: Any
    outside: Any
    options: tuple[tuple[str, Any], ...] = ()


ARTIFACTS = (("recipe", "artifacts"),)
BOUNDS = {
    "longest query": Bound(QUERY, "x" * 100_000, "x" * 100_001),
    "smallest limit": Bound(LIMIT, 1, 0),
    "largest limit": Bound(LIMIT, 1000, 1001),
    "most keywords": Bound(KEYWORDS, ["a"] * 100, ["a"] * 101),
    "longest keyword": Bound(KEYWORDS, ["a" * 1000], ["a" * 1001]),
    "fewest neighbours": Bound(NEIGHBOURS, 0, -1),
    "most neighbours": Bound(NEIGHBOURS, 50, 51),
    "shortest look-back": Bound(LOOK_BACK, 1e-9, 0.0),
    "longest look-back": Bound(LOOK_BACK, 1_000_000.0, 1_000_000.5),
    "lowest relevance": Bound(MIN_RELEVANCE, 0.0, -0.01),
    "highest relevance": Bound(MIN_RELEVANCE, 1.0, 1.01),
    "lowest recency": Bound(RECENCY, 0.0, -0.1),
    "highest recency": Bound(RECENCY, 1.0, 1.1),
    "most included": Bound(INCLUDE, ["memory"] * 100, ["memory"] * 101, ARTIFACTS),
    "longest included": Bound(INCLUDE, [LONGEST_NAME], [f"{LONGEST_NAME}c"], ARTIFACTS),
    "shortest included": Bound(INCLUDE, ["memory"], [""], ARTIFACTS),
    "most collections": Bound(COLLECTIONS, ["memory"] * 100, ["memory"] * 101),
    "longest collection": Bound(COLLECTIONS, [LONGEST_NAME], [f"{LONGEST_NAME}c"]),
    "shortest collection": Bound(COLLECTIONS, ["memory"], [""]),
    "longest editor": Bound(EDITOR, "x " * 250_000, "x " * 250_000 + "x"),
    "longest language": Bound(LANGUAGE, "x" * 100, "x" * 101),
    "longest session": Bound(SESSION_ID, "x" * 100, "x" * 101),
    "longest client": Bound(CLIENT_ID, "x" * 100, "x" * 101),
}
ALL_FIELDS = (
    "query",
    "recipe",
    "limit",
    "keywords",
    "neighbours",
    "look_back",
    "include",
    "collections",
    "editor",
    "language",
    "min_relevance",
    "recency",
)
WITH_CLIENT = (*ALL_FIELDS, "session_id", "client_id")

Search = Callable[[Interfaces, dict[str, Any]], str]
"""Searches with these fields; returns the error, or an empty string."""


def search_library(interfaces: Interfaces, options: dict[str, Any]) -> str:
    return _message(lambda: interfaces.db.search(**options))


def search_request(_: Interfaces, options: dict[str, Any]) -> str:
    return _message(lambda: SearchRequest(**options))


def explain_library(interfaces: Interfaces, options: dict[str, Any]) -> str:
    return _message(lambda: interfaces.db.why(options.pop("query"), "r01", **options))


def search_http(interfaces: Interfaces, options: dict[str, Any]) -> str:
    return str(interfaces.post(options).get("error", {}).get("message", ""))


def explain_http(interfaces: Interfaces, options: dict[str, Any]) -> str:
    return str(interfaces.http.get("/v1/why", params=options | {"id": "r01"}).json().get("error", ""))


def context_http(interfaces: Interfaces, options: dict[str, Any]) -> str:
    return str(interfaces.http.get("/v1/context", params=options).json().get("error", ""))


def search_mcp(interfaces: Interfaces, options: dict[str, Any]) -> str:
    if "keywords" in options:
        options["exact_keywords"] = options.pop("keywords")
    result = interfaces.call_tool(options)
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text if result.is_error else ""


def search_cli(interfaces: Interfaces, options: dict[str, Any]) -> str:
    flags = {
        "keywords": "--keyword",
        "collections": "--collection",
        "look_back": "--look-back",
        "min_relevance": "--min-relevance",
    }
    arguments = ["search", "--db", str(interfaces.path), "--json"]
    query = options.pop("query")
    source = options.pop("editor", None)  # the command line reads it from a file
    if source is not None:
        arguments += ["--editor", "-"]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            arguments += [flags.get(name, f"--{name}"), str(one)]
    done = CliRunner().invoke(program, [*arguments, "--", query], input=source)
    return "" if done.exit_code == 0 else done.stderr


def search_tui(interfaces: Interfaces, options: dict[str, Any]) -> str:
    return _message(lambda: run_query(interfaces.db, options["query"], "default"))


def _message(call: Callable[[], object]) -> str:
    try:
        call()
    except SennitError as error:
        return str(error)
    return ""


INTERFACES: dict[Search, tuple[str, ...]] = {
    search_library: WITH_CLIENT,
    search_request: WITH_CLIENT,
    explain_library: ALL_FIELDS,
    search_http: WITH_CLIENT,
    explain_http: (
        *("recipe", "limit", "keywords", "look_back", "min_relevance", "recency"),
        *("include", "collections"),
    ),
    context_http: ("recipe", "limit", "look_back", "min_relevance", "recency"),
    search_mcp: ("query", "recipe", "limit", "keywords", "editor", "language", "min_relevance"),
    search_cli: ALL_FIELDS,
    search_tui: ("query",),
}
"""Each interface, and the fields of a request that it has; a URL takes shorter queries."""


@pytest.mark.parametrize("search", INTERFACES, ids=lambda search: search.__name__)
@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_is_the_same_everywhere(interfaces: Interfaces, name: str, search: Search) -> None:
    bound = BOUNDS[name]
    if bound.parameter.name not in INTERFACES[search]:
        return
    fixed = {"query": "harbour", "recipe": "default", **dict(bound.options)}
    if search is search_tui:
        fixed.pop("recipe")
    assert search(interfaces, fixed | {bound.parameter.name: bound.inside}) == ""
    with pytest.raises(InvalidInput) as refused:
        bound.parameter.check(bound.outside)
    assert str(refused.value) in search(interfaces, fixed | {bound.parameter.name: bound.outside})


@pytest.mark.parametrize("search", [explain_http, context_http], ids=lambda search: search.__name__)
def test_a_url_narrows_the_query(interfaces: Interfaces, search: Search) -> None:
    assert search(interfaces, {"query": "x" * 10_000}) == ""
    said = "The query has 10,001 characters; the limit is 10,000. POST /v1/search takes a longer one."
    assert said in search(interfaces, {"query": "x" * 10_001})


@pytest.mark.parametrize("search", [*INTERFACES][:-1], ids=lambda search: search.__name__)
def test_a_recipe_narrows_the_limit_everywhere(interfaces: Interfaces, search: Search) -> None:
    if search is search_request:
        return  # it does not know the recipes of a database
    fixed = {"query": "harbour", "recipe": "artifacts"}
    assert search(interfaces, fixed | {"limit": 50}) == ""
    said = "limit must be a whole number from 1 to 50 for recipe 'artifacts', not 51"
    assert said in search(interfaces, fixed | {"limit": 51}).replace('\\"', "'")


@pytest.mark.parametrize("search", [*INTERFACES][:-1], ids=lambda search: search.__name__)
def test_the_name_of_a_recipe_has_a_bound_everywhere(interfaces: Interfaces, search: Search) -> None:
    said = "The recipe has 201 characters; the limit is 200."
    assert said in search(interfaces, {"query": "x", "recipe": "x" * 201})
    assert said not in search(interfaces, {"query": "x", "recipe": "x" * 200})


def test_every_field_has_a_bound_or_a_type_of_its_own() -> None:
    declared = {bound.parameter.name for bound in BOUNDS.values()} | {RECIPE.name, PROJECT.name}
    typed = {"filters", "caller", "transform", "rewrite", "vector", "explain", "now"}
    names = {field.name for field in fields(SearchRequest)}
    assert names == declared | typed
    assert names | {"collection"} == {"query"} | SearchOptions.__optional_keys__


# Schemas and help texts come from the declaration


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    """The part of a nullable schema that is not null."""
    inner: dict[str, Any] = next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), {})
    return inner | schema


@pytest.mark.parametrize(
    "parameter",
    [
        *(QUERY, RECIPE, LIMIT, COLLECTIONS, KEYWORDS, INCLUDE, NEIGHBOURS, LOOK_BACK),
        *(EDITOR, LANGUAGE, MIN_RELEVANCE, RECENCY, PROJECT),
    ],
    ids=lambda p: p.name,
)
def test_the_openapi_document_has_the_declared_bounds(interfaces: Interfaces, parameter: Parameter) -> None:
    document = interfaces.http.get("/openapi.json").json()
    body = document["components"]["schemas"]["SearchBody"]["properties"][parameter.name]
    assert parameter.schema.items() <= resolve(body).items()
    assert parameter.help in resolve(body)["description"]
    for path in ("/v1/why", "/v1/context"):
        for query_parameter in document["paths"][path]["get"]["parameters"]:
            if query_parameter["name"] == parameter.name:
                declared = URL_QUERY if parameter is QUERY else parameter
                assert declared.schema.items() <= resolve(query_parameter["schema"]).items(), path


OTHER_REQUESTS: Final = frozenset({"DELETE /v1/feedback"})
"""Requests in which such a name means something else than in a search: the session whose events are deleted."""

OTHER_TOOLS: Final = frozenset({"grep_search", "list_records", "plan_context"})
"""Tools that have a limit or a query of their own: of passages, of a page of records, of a plan."""

PARAMETERS: Final = {
    parameter.name: parameter
    for parameter in vars(search_parameters).values()
    if isinstance(parameter, Text | Count | Texts | Hours | Share | AutoShare)
}
TOOL_PARAMETERS: Final = PARAMETERS | {"exact_keywords": KEYWORDS, "semantic_query": QUERY}
BOUND_WORDS: Final = frozenset(
    ("minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems")
)


def bounds_of(schema: dict[str, Any]) -> dict[str, Any]:
    """The bounds in a schema, those of the items of a list too."""
    resolved = resolve(schema)
    own = {name: value for name, value in resolved.items() if name in BOUND_WORDS}
    items = resolved.get("items", {})
    return own | {f"items {name}": value for name, value in items.items() if name in BOUND_WORDS}


def request_schemas(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What each request takes, as place, name and schema: parameters of URLs, and the properties of bodies."""
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            place = f"{method.upper()} {path}"
            for one in operation.get("parameters", ()):
                yield place, one["name"], one["schema"]
            pending = [operation.get("requestBody", {})]
            seen = set()
            while pending:
                part = pending.pop()
                if isinstance(part, list):
                    pending += part
                elif isinstance(part, dict):
                    pending += [value for name, value in part.items() if name != "properties"]
                    for name, schema in part.get("properties", {}).items():
                        yield place, name, schema
                        pending.append(schema)
                    name = part.get("$ref", "").rpartition("/")[2]
                    if name and name not in seen:
                        seen.add(name)
                        pending.append(schemas[name])


def test_no_request_of_http_bounds_a_parameter_of_a_search_otherwise(interfaces: Interfaces) -> None:
    document = interfaces.http.get("/openapi.json").json()
    compared = set()
    for place, name, schema in request_schemas(document):
        if name in PARAMETERS and place not in OTHER_REQUESTS:
            is_url = name == "query" and place.startswith("GET")
            declared = URL_QUERY if is_url else PARAMETERS[name]
            assert bounds_of(schema) == bounds_of(declared.schema), f"{place}: {name}"
            compared.add(place)
    assert {"POST /v1/search", "GET /v1/why", "GET /v1/context", "POST /v1/ask"} <= compared


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_tool_bounds_a_parameter_of_a_search_otherwise(tool: Tool) -> None:
    if tool.name in OTHER_TOOLS:
        return
    for name, schema in tool.input_schema["properties"].items():
        if name in TOOL_PARAMETERS:
            # A schema may leave a bound out, which the call then checks.
            assert bounds_of(schema).items() <= bounds_of(TOOL_PARAMETERS[name].schema).items(), name


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_refuses_what_a_search_refuses(interfaces: Interfaces, tool: Tool) -> None:
    if tool.name in OTHER_TOOLS:
        return
    given = {"query": "harbour", "id": "r01"}
    fixed = {name: value for name, value in given.items() if name in tool.input_schema["properties"]}
    for bound in BOUNDS.values():
        for name, parameter in TOOL_PARAMETERS.items():
            if parameter is bound.parameter and name in tool.input_schema["properties"]:
                with pytest.raises(InvalidInput) as refused:
                    parameter.check(bound.outside)
                others = {key: value for key, value in fixed.items() if key != tool.aliases.get(name)}
                said = interfaces.call_tool(others | {name: bound.outside}, tool.name).content[0]
                assert isinstance(said, TextContent)
                assert str(refused.value) in said.text, name


OTHER_COMMANDS: Final = {
    ("grep", "keywords"): "patterns",
    ("grep", "limit"): "passages",
    ("list", "limit"): "records of a page",
    ("list", "collections"): "a filter of records",
    ("judge", "limit"): "results of each recipe",
    ("index", "include"): "patterns of paths",
}
"""Options whose name means something else than in a search, and what."""


@pytest.mark.parametrize("name", program.list_commands(Context(program)))
def test_no_command_bounds_a_parameter_of_a_search_otherwise(name: str) -> None:
    command = program.get_command(Context(program), name)
    assert command is not None
    for option in command.params:
        parameter = PARAMETERS.get(option.name or "")
        if parameter is None or not isinstance(option, Option) or (name, option.name) in OTHER_COMMANDS:
            continue
        # The request checks the value; the help says what it takes.
        assert not isinstance(option.type, IntRange | FloatRange), option.name
        if isinstance(parameter, Count | Hours | Share | AutoShare):
            assert f"{parameter.bounds.capitalize()}." in str(option.help), option.name


def test_every_command_that_searches_refuses_what_a_search_refuses(interfaces: Interfaces) -> None:
    for name in ("search", "why", "ask", "context"):
        command = program.get_command(Context(program), name)
        assert command is not None
        options = {option.name: option for option in command.params if isinstance(option, Option)}
        for bound in BOUNDS.values():
            parameter = bound.parameter
            if parameter.name not in options or parameter in (EDITOR, QUERY):
                continue
            with pytest.raises(InvalidInput) as refused:
                parameter.check(bound.outside)
            values = bound.outside if isinstance(bound.outside, list) else [bound.outside]
            flag = options[parameter.name].opts[-1]
            given = [part for value in values for part in (flag, str(value))]
            place = ["r01"] if name == "why" else []
            words = ["--db", str(interfaces.path), *given, "--", *place, "harbour"]
            done = CliRunner().invoke(program, [name, *words])
            assert str(refused.value) in done.stderr, (name, parameter.name)


def test_the_tools_have_the_declared_bounds_of_numbers() -> None:
    # A model pays for the schema by the token. Lengths that it never reaches are checked, and not described.
    (tool,) = [tool for tool in TOOLS if tool.name == "hybrid_search"]
    properties = tool.input_schema["properties"]
    for name, parameter in (("limit", LIMIT), ("min_relevance", MIN_RELEVANCE)):
        assert parameter.schema.items() <= properties[name].items()


def test_the_documentation_has_the_declared_bounds() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
    fields_text = inspect.getsource(SearchRequest)
    for text in (page, fields_text):
        assert f"{QUERY.max_characters:,} characters" in text
        assert f"{LIMIT.maximum:,}" in text
        assert f"{NEIGHBOURS.maximum}" in text
    assert f"{URL_QUERY.max_characters:,} in a URL" in page
    assert KEYWORDS.max_items == INCLUDE.max_items == COLLECTIONS.max_items
    assert f"{KEYWORDS.max_items} each, a keyword of at most {KEYWORDS.max_characters:,} characters" in page
    assert f"{LOOK_BACK.bounds} hours" in page


@pytest.mark.parametrize("parameter", [LIMIT, NEIGHBOURS, LOOK_BACK, RECENCY], ids=lambda p: p.name)
def test_the_help_of_the_command_line_has_the_declared_bounds(parameter: Parameter) -> None:
    help_text = " ".join(CliRunner().invoke(program, ["search", "--help"]).stdout.split())
    assert f"{parameter.help} {parameter.bounds.capitalize()}." in help_text


# The value


def test_a_request_is_frozen_and_keeps_tuples() -> None:
    names = ["memory"]
    request = SearchRequest("x", include=names, keywords=names, collections=names)
    names.append("history")
    assert request.include == request.keywords == request.collections == ("memory",)
    with pytest.raises(FrozenInstanceError):
        request.limit = 5  # type: ignore[misc]
    assert request == SearchRequest("x", include=("memory",), keywords=("memory",), collections=("memory",))
    with pytest.raises(InvalidInput, match="limit"):
        replace(request, limit=0)


@pytest.mark.parametrize(
    "options",
    [
        {"include": "memory"},
        {"include": 5},
        {"keywords": "oak"},
        {"keywords": [5]},
        {"keywords": ["\ud800"]},
        {"collections": [b"memory"]},
        {"neighbours": True},
        {"neighbours": 1.0},
        {"look_back": "week"},
        {"recency": "often"},
        {"recency": True},
        {"look_back": float("nan")},
        {"look_back": float("inf")},
        {"limit": True},
        {"recipe": "\ud800"},
    ],
)
def test_a_value_of_another_type_is_refused_when_the_request_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        SearchRequest("x", **options)


def test_a_request_and_further_arguments_are_refused(interfaces: Interfaces) -> None:
    with pytest.raises(InvalidInput, match=r"also explain, limit; .*dataclasses.replace"):
        interfaces.db.search(SearchRequest("x"), limit=5, explain=True)
    with pytest.raises(InvalidInput, match="also limit"):
        interfaces.db.why(SearchRequest("x"), "r01", limit=5)


def test_a_request_carries_its_caller(interfaces: Interfaces) -> None:
    request = SearchRequest("harbour", limit=100, caller=Caller(everything=True))
    seen = set(interfaces.library(request))
    assert {f"r{number:02}" for number in (0, 11, 22, 33, 44, 55)} <= seen
    assert "r11" not in interfaces.library(replace(request, caller=None))


def test_collections_restrict_the_search(interfaces: Interfaces) -> None:
    found = interfaces.db.search(
        "harbour", collections=["memory", "history"], filters={"kind": "note"}, limit=100
    )
    assert {hit.collection for hit in found} == {"memory", "history"}
    assert {hit.record.kind for hit in found} == {"note"}
