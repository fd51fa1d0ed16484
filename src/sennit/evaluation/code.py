"""The code format: questions about projects, and the files that answer them.

`annotations/PROJECT.json` is a list of `{"query", "relevant", "secondary", "category"}`, a target being a path or
`{"path", …}`; `MANIFEST.json` says of each project its `version` and `benchmark_root`, the folder that is indexed.
A target is found at the rank of the first result in its file. Further results of that file use up ranks.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sennit.errors import InvalidInput, NotFound
from sennit.evaluation.datasets import Collection, Query
from sennit.evaluation.report import rows_of
from sennit.evaluation.run import Measured, Options, System, Watch, evaluate, unwatched
from sennit.ingest.code.parsing import parse
from sennit.ingest.code.passages import code_records
from sennit.ingest.languages import kind_of
from sennit.ingest.reading import Unreadable, contents
from sennit.ingest.walk import DEFAULT_MAX_BYTES, Scope, Tree, walk
from sennit.ranking.code import CodeSense, PerFile
from sennit.ranking.fusion import Fusion, Weighted
from sennit.ranking.stages import stage_from_dict, stage_to_dict
from sennit.recipes import Recipe
from sennit.recipes.code import CODE_SEARCH
from sennit.records import Record
from sennit.results import Hit
from sennit.settings import Settings

ANNOTATIONS: Final = "annotations"
MANIFEST: Final = "MANIFEST.json"
PROJECTS: Final = "projects"
"""The folder of the projects beside the annotations, when no other is named."""

ALL: Final = "all"
"""What the figures over the questions of all projects are called."""


class CodeCollection(Collection):
    """A project, whose judgements are of files."""

    def ranking(self, query: Query, hits: Sequence[Hit]) -> list[str]:
        return targets_met(self.judgements[query.id], [hit.record.path or "" for hit in hits])


def targets_met(targets: Iterable[str], paths: Sequence[str]) -> list[str]:
    """The target that each result is the first in the file of; any other result stands for nothing."""
    left = list(targets)
    out = []
    for rank, path in enumerate(paths, 1):
        found = next((target for target in left if same_file(path, target)), None)
        if found is not None:
            left.remove(found)
        out.append(f"#{rank}" if found is None else found)
    return out


def same_file(one: str, other: str) -> bool:
    """Whether two paths are equal, or one is the end of the other."""
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def read_code(folder: Path, projects: Path | None = None) -> list[Collection]:
    """A collection for each project that has annotations, read from folders or archives of its source."""
    annotations = sorted((folder / ANNOTATIONS).glob("*.json"))
    if not annotations:
        raise NotFound(f"{folder} has no {ANNOTATIONS}/*.json; docs/code.md describes the format.")
    manifest = read_manifest(folder)
    return [
        _project(file, manifest.get(file.stem) or {}, projects or folder / PROJECTS) for file in annotations
    ]


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """What is said of each project; nothing where there is no manifest."""
    manifest = _json(folder / MANIFEST) if (folder / MANIFEST).is_file() else {}
    if not isinstance(manifest, dict):
        raise InvalidInput(f"{folder / MANIFEST} must be an object by project.")
    return manifest


def project_files(name: str, manifest: Mapping[str, Any], projects: Path) -> list[tuple[str, bytes]]:
    """The files of a project below the folder that is indexed, by their paths in it."""
    return sorted(_files(name, str(manifest.get("version") or ""), root_of(manifest), projects))


def root_of(manifest: Mapping[str, Any]) -> str:
    """The folder of a project that is indexed; empty for all of it."""
    return str(manifest.get("benchmark_root") or "").strip("/.")


def evaluate_code(
    collections: Sequence[Collection],
    options: Options,
    settings: Settings,
    watch: Watch = unwatched,
    *,
    ablation: bool = False,
) -> list[Measured]:
    """Measure the recipe on each project, and then on all of them; or what each part of it is worth, on all."""
    name = CODE_SEARCH.name
    own = replace(settings, recipes={name: CODE_SEARCH.to_dict(), **settings.recipes})
    options = replace(options, recipes=options.recipes or (name,))
    if ablation:
        return pooled(evaluate(collections, options, own, watch, ablations_of))
    measured = evaluate(collections, options, own, watch, lambda recipe: [System(recipe.name, recipe)])
    return measured + pooled(measured)


def ablations_of(recipe: Recipe) -> list[System]:
    """The recipe, each of its lists alone with all else, and the recipe without each of its parts in turn."""
    out = [System(recipe.name, recipe)]
    for use in recipe.sources:
        alone = replace(recipe, sources=(use,), fusion=Weighted({use.name: 1.0}, "max"), stages=(PerFile(),))
        out.append(System(f"only {use.name}", alone))
    for use in recipe.sources:
        others = tuple(other for other in recipe.sources if other is not use)
        out.append(
            System(
                f"without {use.name}",
                replace(recipe, sources=others, fusion=_without(recipe.fusion, use.name)),
            )
        )
    for at, step in enumerate(recipe.stages):
        before, after = recipe.stages[:at], recipe.stages[at + 1 :]
        if isinstance(step, CodeSense):
            for part in ("outline", "definition", "file_name", "company", "beside"):
                less = stage_from_dict({**stage_to_dict(step), part: 0.0})
                out.append(System(f"without {part}", replace(recipe, stages=(*before, less, *after))))
        else:
            out.append(System(f"without {step.name}", replace(recipe, stages=(*before, *after))))
    return out


def _without(fusion: Fusion, name: str) -> Fusion:
    """The fusion of the other lists: a weight of one that is not there is refused."""
    if not isinstance(fusion, Weighted):
        return fusion
    return replace(fusion, weights={one: weight for one, weight in fusion.weights.items() if one != name})


def pooled(measured: Sequence[Measured]) -> list[Measured]:
    """The questions of all projects together, for each model and system."""
    out = []
    for model, system in dict.fromkeys((one.model, one.system) for one in measured):
        same = [one for one in measured if (one.model, one.system) == (model, system)]
        answers = tuple(answer for one in same for answer in one.answers)
        documents = sum(one.documents for one in same)
        out.append(replace(same[0], collection=ALL, documents=documents, answers=answers))
    return out


def code_rows(measured: Sequence[Measured], category: str) -> list[tuple[str, ...]]:
    """A row for each project, the mean over projects, and a row for all questions with one for each category."""
    projects = [one for one in measured if one.collection != ALL]
    together = [one for one in measured if one.collection == ALL]
    return rows_of(projects) + rows_of(together, category)


def _project(file: Path, manifest: Mapping[str, Any], projects: Path) -> Collection:
    name = file.stem
    documents: list[Record] = []
    for path, data in project_files(name, manifest, projects):
        if kind_of(path)[0] == "code":
            try:
                documents += code_records(parse(path, data))
            except Unreadable:
                continue
    if not documents:
        raise InvalidInput(
            f"{name}: there is no code in {root_of(manifest) or 'it'}; is this the right version?"
        )
    paths = {record.path or "" for record in documents}
    queries, judgements, lost = [], {}, []
    for number, entry in enumerate(_json(file), 1):
        targets = [_path(target) for kind in ("relevant", "secondary") for target in entry.get(kind) or ()]
        query = Query(
            f"{name}/{number}", entry["query"], {"category": entry.get("category", ""), "project": name}
        )
        queries.append(query)
        judgements[query.id] = dict.fromkeys(targets, 1)
        lost += [target for target in targets if not any(same_file(path, target) for path in paths)]
    warnings = [f"{name} has no file {lost[0]!r}; {len(lost)} targets are never found"] if lost else []
    return CodeCollection(name, tuple(documents), tuple(queries), judgements, tuple(warnings))


def _files(name: str, version: str, root: str, projects: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a project below its root, by their paths in it: from a folder, or from an archive."""
    wanted = re.compile(
        rf"{re.sub(r'[-_.]+', '[-_.]+', re.escape(name))}(-{re.escape(version)})?(\.tar\.gz|\.tgz|\.crate)?",
        re.I,
    )
    found = [entry for entry in sorted(projects.glob("*")) if wanted.fullmatch(entry.name)]
    for entry in found:
        if entry.is_dir():
            yield from _folder_files(entry, root)
            return
    for entry in found:
        yield from _archive_files(entry, root)
        return
    raise NotFound(
        f"The source of {name} {version} is not in {projects}. Put the project's folder or its source archive there, "
        f"such as by: pip download --no-deps --no-binary :all: {name}=={version} -d {projects}"
    )


def _folder_files(folder: Path, root: str) -> Iterator[tuple[str, bytes]]:
    base = folder.resolve()
    tree = Tree()
    # What a package ships is meant, also where its repository would have ignored it.
    walk(str(base / root), Scope(ignore_files=False), tree)
    for found in tree.files.values():
        try:
            yield (
                Path(found.opened).relative_to(base).as_posix(),
                contents(found.opened, DEFAULT_MAX_BYTES).data,
            )
        except Unreadable:
            continue


def _archive_files(archive: Path, root: str) -> Iterator[tuple[str, bytes]]:
    """Read where it is: nothing is unpacked."""
    with tarfile.open(archive) as opened:
        for member in opened:
            path = member.name.partition("/")[2]
            if (
                member.isfile()
                and member.size <= DEFAULT_MAX_BYTES
                and path.startswith(f"{root}/" if root else "")
            ):
                stream = opened.extractfile(member)
                if stream is not None:
                    yield path, stream.read()


def _path(target: object) -> str:
    path = target.get("path") if isinstance(target, dict) else target
    if not isinstance(path, str):
        raise InvalidInput(f"A target is a path or an object with one, not {target!r}.")
    return path


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.") from error
