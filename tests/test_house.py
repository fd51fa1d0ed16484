"""The rules of the source tree: which package may import which, and what no file may do."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "sennit"

# A package here is a module or package directly under sennit; "" is sennit itself, the public names. A row may import
# what it lists, and lists only packages of earlier rows.
VALUES = (
    "errors",
    "period_words",
    "periods",
    "records",
    "places",
    "locales",
    "facts",
    "turns",
    "filters",
    "analysis",
    "privacy",
    "results",
    "feedback",
)
CONTRACT = (
    "stores.attached",
    "stores.contract",
    "stores.codec",
    "stores.findings",
    "stores.graph_rows",
    "stores.prepared_records",
    "stores.search_steps",
    "stores.target",
)
"""What packages above the stores may import of them. No backend is among it."""
FINDING = (*VALUES, "graph", "ranking", "embedding", *CONTRACT)
SERVING = (
    *FINDING,
    "search_parameters",
    "ingest",
    "folders",
    "embedding_service",
    "sources",
    "context",
    "hydration",
    "settings",
    "recipes",
)
RUNNING = (*SERVING, "pipeline", "explain")
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "errors": (),
    "user_cache": (),
    "workers": (),
    "period_words": (),
    "periods": ("period_words",),
    "credentials": ("errors",),
    "records": ("errors",),
    "places": ("records",),
    "locales": (),
    "facts": ("errors", "records"),
    "turns": ("errors", "records"),
    "search_parameters": ("errors", "records"),
    "settings": ("errors", "credentials", "search_parameters", "user_cache"),
    "filters": ("errors", "records"),
    "analysis": ("errors",),
    "graph": ("errors", "records", "facts", "period_words", "analysis"),
    "privacy": ("errors", "filters"),
    "jsonl": ("errors", "records"),
    "results": ("errors", "records", "places", "filters"),
    "feedback": ("errors", "records", "search_parameters"),
    "ranking": ("errors", "period_words", "periods", "records", "places", "locales", "facts", "results"),
    "embedding": ("errors", "credentials", "user_cache"),
    "rerankers": ("errors", "embedding"),
    "stores": (
        *VALUES,
        "credentials",
        "user_cache",
        "workers",
        "graph",
        "ranking",
        "embedding.base",
        "settings",
    ),
    "repositories": (*VALUES, "graph", "ranking", "stores.contract"),
    "ingest": (*FINDING, "workers", "repositories.folders"),
    "folders": (
        "errors",
        "records",
        "places",
        "search_parameters",
        "ingest.ignore",
        "ingest.file_reader",
        "ingest.parts",
    ),
    "embedding_service": FINDING,
    "sources": (*FINDING, "folders", "settings.attached"),
    "context": (*FINDING, "folders"),
    "llm": ("errors", "records", "facts", "analysis", "embedding.http", "context.sanitize"),
    "hydration": ("errors", "records", "analysis", "results", "context"),
    "client": ("errors", "records", "facts", "context"),
    "recipes": (
        *VALUES,
        "search_parameters",
        "ranking",
        "stores.contract",
        "sources",
        "context",
        "ingest",
        "settings",
    ),
    "pipeline": (*SERVING, "rerankers"),
    "explain": (*SERVING, "pipeline"),
    # The engine opens a database with the composition root, which alone knows the backends.
    "engine": (*RUNNING, "llm", "rerankers", "repositories", "stores.open"),
    "tools": (*RUNNING, "engine"),
    "": (*RUNNING, "engine", "tools"),
    "integrations": (*RUNNING, "engine", "tools", ""),
    "evaluation": (*RUNNING, "llm", "engine", "repositories", ""),
    "testing": (
        *RUNNING,
        "engine",
        "repositories",
        "stores.document_terms",
        "stores.scanned_graph",
        "stores.scanned_reads",
        "stores.write_plan",
        "",
    ),
    "apps": (*RUNNING, "user_cache", "engine", "tools", "jsonl", "evaluation", "repositories", ""),
    "__main__": ("apps",),
}

# The third-party packages that a package may import; one not listed may import what pyproject.toml declares.
THIRD_PARTY: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "user_cache": frozenset(),
    "workers": frozenset(),
    "period_words": frozenset(),
    "periods": frozenset(),
    "records": frozenset(),
    "facts": frozenset(),
    "feedback": frozenset(),
    "filters": frozenset(),
    "graph": frozenset({"numpy"}),
    "ranking": frozenset({"numpy"}),
    "folders": frozenset(),
    "settings": frozenset({"filelock"}),
    "recipes": frozenset({"numpy"}),
}

DATABASE_INTERNALS = {"backend", "store", "embeddings", "maintainer", "writes", "policy"}
DATABASE_NAME = re.compile(r"(\w+\.)*_?db")

UNSAFE_LOADERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
INTERNAL_EXTRAS = {"all", "bench", "dev", "docs", "testing"}
"""Extras for development, not for users."""
FRAMEWORK_EXTRAS = {"haystack", "langchain", "llamaindex"}
"""Extras that bring a framework along. `all` leaves them out: whoever uses a framework has it already."""
DRIVERS = {
    "sqlite3": {"sennit.stores.sql.sqlite"},
    "psycopg": {
        "sennit.stores.sql.postgres",
        "sennit.stores.sql.postgres_connection",
        *(
            f"sennit.stores.servers.postgres.{name}"
            for name in ("attached", "bm25_tables", "client", "indexes", "statements", "tables")
        ),
    },
}
"""The driver of each database, and the only modules that may import it."""
COMPOSITION_ROOT = "sennit.stores.open"
HEAVY_IMPORTS = {"numpy", "faiss", "tokenizers", "rich", "httpx"}
MACHINE_PATH = re.compile(r"(?<![\w.-])/(root|work|farm)/")
PACKAGE_HOST = re.compile(
    r"pypi\.org|pythonhosted\.org|registry\.npmjs|crates\.io|proxy\.golang|repo1?\.maven|deb\.debian", re.I
)


def module_name(file: Path) -> str:
    """Return the dotted name of a module under src."""
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Files below samples are data.
FILES = {
    module_name(file): file
    for file in sorted(SOURCE.rglob("*.py"))
    if "samples" not in file.relative_to(SOURCE).parts
}


@cache
def parse_module(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"), filename=str(FILES[module]))


def package_of(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


def imports_of(module: str) -> Iterator[str]:
    """Yield the full name of every module it imports, anywhere in the file, including names that are modules."""
    for node in ast.walk(parse_module(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".") if FILES[module].stem == "__init__" else module.split(".")[:-1]
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in FILES else base


def own_imports_of(module: str) -> set[str]:
    return {name for name in imports_of(module) if name.split(".")[0] == "sennit"}


def is_allowed(package: str, target: str) -> bool:
    inside = target.partition(".")[2]
    return package_of(target) == package or any(
        inside == entry or (entry != "" and inside.startswith(f"{entry}.")) for entry in MAY_IMPORT[package]
    )


def text_files() -> Iterator[tuple[Path, str]]:
    """Yield every text file of the project, without files that a tool left behind."""
    folders = [ROOT / name for name in ("src", "tests", "benchmarks", "docs", "requirements", ".ci")]
    files = [file for folder in folders if folder.is_dir() for file in folder.rglob("*")]
    files += [file for file in ROOT.iterdir() if file.name != ".git"]
    for file in sorted(files):
        if file.is_file() and "__pycache__" not in file.parts:
            try:
                yield file, file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


@pytest.mark.parametrize("module", FILES)
def test_module_imports_only_allowed_packages(module: str) -> None:
    package = package_of(module)
    assert package in MAY_IMPORT, f"{module} is in a new package: list in MAY_IMPORT what it may import"
    wrong = sorted(target for target in own_imports_of(module) if not is_allowed(package, target))
    assert not wrong, f"{module} may not import {', '.join(wrong)}"


@pytest.mark.parametrize("module", [module for module in FILES if package_of(module) in THIRD_PARTY])
def test_package_imports_only_its_third_party_packages(module: str) -> None:
    outside = {name.split(".")[0] for name in imports_of(module)} - sys.stdlib_module_names - {"sennit"}
    assert outside <= THIRD_PARTY[package_of(module)]


def test_packages_list_only_earlier_packages() -> None:
    packages = list(MAY_IMPORT)
    for package, targets in MAY_IMPORT.items():
        for target in targets:
            assert packages.index(target.split(".")[0]) < packages.index(package), (
                f"{target} must come before {package}"
            )


def test_imports_have_no_cycle() -> None:
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, "a cycle: " + " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for target in sorted(own_imports_of(module) & FILES.keys()):
                visit(target, (*path, module))
            done.add(module)

    for module in FILES:
        visit(module, ())


@pytest.mark.parametrize("module", FILES)
def test_no_module_uses_an_unsafe_loader(module: str) -> None:
    assert not {name.split(".")[0] for name in imports_of(module)} & UNSAFE_LOADERS
    for node in ast.walk(parse_module(module)):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant), f"{module}:{node.value.lineno}"
            assert node.value.value is False, f"{module}:{node.value.lineno}"


@pytest.mark.parametrize("module", FILES)
def test_no_module_but_its_dialect_imports_a_database_driver(module: str) -> None:
    drivers = {name.split(".")[0] for name in imports_of(module)} & DRIVERS.keys()
    assert all(module in DRIVERS[driver] for driver in drivers), f"{module} imports {drivers}"


@pytest.mark.parametrize("module", [module for module in FILES if package_of(module) == "stores"])
def test_only_the_composition_root_imports_a_backend(module: str) -> None:
    backend = backend_of(module)
    foreign = {target for target in own_imports_of(module) if backend_of(target) not in (None, backend)}
    if backend == "embedded":
        # Its source of truth is the SQL store.
        foreign = {target for target in foreign if backend_of(target) != "sql"}
    if module.startswith("sennit.stores.servers.postgres."):
        # It connects as the SQL store does.
        foreign = {target for target in foreign if not target.startswith("sennit.stores.sql.postgres")}
    assert module == COMPOSITION_ROOT or not foreign, f"{module} imports {', '.join(sorted(foreign))}"


def backend_of(module: str) -> str | None:
    """The package of a backend below `sennit.stores`; None for the modules that all share."""
    parts = module.split(".")
    is_below = parts[:2] == ["sennit", "stores"] and len(parts) > 3
    return parts[2] if is_below and parts[2] != "contract" else None


@pytest.mark.parametrize("module", [module for module in FILES if package_of(module) != "apps"])
def test_only_apps_write_to_the_terminal(module: str) -> None:
    printed = [
        node.lineno
        for node in ast.walk(parse_module(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not printed, f"{module} prints in line {printed}"


@pytest.mark.parametrize(
    "module", [m for m in FILES if package_of(m) in ("apps", "evaluation", "integrations", "tools")]
)
def test_apps_use_no_internals_of_a_database(module: str) -> None:
    used = [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(parse_module(module))
        if isinstance(node, ast.Attribute)
        and (node.attr in DATABASE_INTERNALS or node.attr.startswith("_"))
        and DATABASE_NAME.fullmatch(ast.unparse(node.value))
    ]
    assert not used, f"{module} uses {used}; db.memory, db.files, db.code and db.admin have what it needs"


@pytest.mark.parametrize("module", [m for m in FILES if not m.rpartition(".")[2].startswith("_")])
def test_every_public_module_has_a_docstring(module: str) -> None:
    assert ast.get_docstring(parse_module(module)), f"{module} has no docstring"


def test_all_lists_the_public_names() -> None:
    sennit = import_module("sennit")
    public = sorted(name for name in sennit.__all__ if not name.startswith("__"))
    assert [name for name in dir(sennit) if not name.startswith("__")] == public
    for name in sennit.__all__:
        assert getattr(sennit, name) is not None


def test_help_loads_no_heavy_package() -> None:
    code = (
        "import sys\n"
        "from sennit.apps.cli import main\n"
        "sys.argv = ['sennit', '--help']\n"
        "try:\n    main()\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"print(sorted({HEAVY_IMPORTS!r} & sys.modules.keys()), file=sys.stderr)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "Usage: sennit" in run.stdout
    assert run.stderr.splitlines()[-1] == "[]"


def test_every_dependency_is_documented() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = project["dependencies"] + [r for name in extras if name != "all" for r in extras[name]]
    rows = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([^`]+)` \|", rows, re.M))
    declared = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in requirements}
    assert named == declared


def test_documented_versions_match_the_lock_files() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    shipped = project["dependencies"] + [
        requirement for extra in extras.keys() - INTERNAL_EXTRAS for requirement in extras[extra]
    ]
    lowest, newest = pinned_versions("lowest"), pinned_versions("dev")
    names = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in shipped}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([^`]+)` \| (\d\S*) \| (\d\S*) \|$", page, re.M)
    assert sorted(documented) == sorted((name, lowest[name.lower()], newest[name.lower()]) for name in names)


def test_locked_packages_are_installed_without_resolving_again() -> None:
    # A resolver may look for an extra of a locked package on its own, and stop at a newer release without a hash.
    installs = re.findall(
        r"^.*-r requirements/.*\.lock.*$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )
    assert installs
    assert [line for line in installs if "--no-deps --require-hashes" not in line] == []


def test_extra_all_has_every_user_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    (every,) = extras["all"]
    assert every == f"sennit[{','.join(sorted(extras.keys() - INTERNAL_EXTRAS - FRAMEWORK_EXTRAS))}]"


def pinned_versions(lock: str) -> dict[str, str]:
    """Return the versions in a file of `requirements/`."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.M))


def test_no_file_names_a_machine_path_or_package_host() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for file, text in text_files()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line) or PACKAGE_HOST.search(line)
    ]
    assert not found, "\n".join(found)


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Before Python 3.11.5, such a group keeps what its last, incomplete repeat consumed, and may never end."""
    possessive = re.compile(r"\)[*+?]\+")
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in sorted((ROOT / "src").rglob("*.py"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if possessive.search(line)
    ]
    assert not found, "\n".join(found)
