"""Evaluation of code search: questions about projects, and the files that answer them.

`annotations/PROJECT.json` is a list of `{"query", "relevant", "secondary", "category"}`. A target is a path or
`{"path", …}`. `MANIFEST.json` gives the `version` of each project and its `benchmark_root`, the folder that is indexed.
The rank of a target is the rank of the first result in its file. Further results of that file occupy ranks.
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
from sennit.evaluation.report import table_rows
from sennit.evaluation.run import (
    EvaluationOptions,
    EvaluationPlan,
    Measurement,
    Progress,
    System,
    evaluate,
    no_progress,
    plan_evaluation,
)
from sennit.ingest.code.parser import parse_code
from sennit.ingest.code.records import code_records
from sennit.ingest.file_reader import UnreadableFile, read_regular_file
from sennit.ingest.languages import file_kind
from sennit.ingest.walk import DEFAULT_MAX_BYTES, Scope, WalkResult, walk
from sennit.ranking.code import CodeRanking, PerFile
from sennit.ranking.fusion import Fusion, Weighted
from sennit.ranking.stages import stage_from_dict, stage_to_dict
from sennit.recipes import Recipe
from sennit.recipes.builtin import CODE_SEARCH
from sennit.records import Record
from sennit.results import Hit
from sennit.settings import Settings

ANNOTATIONS: Final = "annotations"
MANIFEST: Final = "MANIFEST.json"
PROJECTS: Final = "projects"
"""The default folder of the projects' sources, next to the annotations."""

ALL_PROJECTS: Final = "all"
"""The collection name of the metrics over the queries of all projects."""


class CodeCollection(Collection):
    """A project. Its judgements name files."""

    def ranking(self, query: Query, hits: Sequence[Hit]) -> list[str]:
        return match_targets(self.judgements[query.id], [hit.record.path or "" for hit in hits])


def match_targets(targets: Iterable[str], paths: Sequence[str]) -> list[str]:
    """Replace each path by the target it is the first match of, or else by a placeholder."""
    remaining = list(targets)
    out = []
    for rank, path in enumerate(paths, 1):
        target = next((target for target in remaining if same_file(path, target)), None)
        if target is not None:
            remaining.remove(target)
        out.append(f"#{rank}" if target is None else target)
    return out


def same_file(one: str, other: str) -> bool:
    """Whether two paths are equal, or one ends with the other."""
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def read_code_collections(folder: Path, projects: Path | None = None) -> list[Collection]:
    """Read a collection for each project with annotations, from a folder or an archive of its source."""
    annotations = sorted((folder / ANNOTATIONS).glob("*.json"))
    if not annotations:
        raise NotFound(
            f"{folder} has no {ANNOTATIONS}/*.json; docs/reference/recipe-code.md describes the format."
        )
    manifest = read_manifest(folder)
    return [
        _read_project(file, manifest.get(file.stem) or {}, projects or folder / PROJECTS)
        for file in annotations
    ]


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """The manifest of the projects. Empty if there is none."""
    manifest = _json(folder / MANIFEST) if (folder / MANIFEST).is_file() else {}
    if not isinstance(manifest, dict):
        raise InvalidInput(f"{folder / MANIFEST} must be a JSON object with an entry for each project.")
    return manifest


def project_files(name: str, manifest: Mapping[str, Any], projects: Path) -> list[tuple[str, bytes]]:
    """The path and content of each file below the indexed folder of a project."""
    return sorted(_files(name, str(manifest.get("version") or ""), indexed_root(manifest), projects))


def indexed_root(manifest: Mapping[str, Any]) -> str:
    """The folder of a project that is indexed. Empty for the whole project."""
    return str(manifest.get("benchmark_root") or "").strip("/.")


def evaluate_code(
    collections: Sequence[Collection],
    options: EvaluationOptions,
    settings: Settings,
    progress: Progress = no_progress,
    *,
    ablation: bool = False,
    plan: EvaluationPlan | None = None,
) -> list[Measurement]:
    """Measure the recipe on each project and on all together. With `ablation`, measure each ablation on all together."""
    options, settings = _with_code_search(options, settings)
    systems = build_ablations if ablation else _only_the_recipe
    measurements = evaluate(collections, options, settings, progress, systems, plan=plan)
    return [*([] if ablation else measurements), *pool_projects(measurements)]


def plan_code_evaluation(
    options: EvaluationOptions, settings: Settings, *, ablation: bool = False
) -> EvaluationPlan:
    """Return what `evaluate_code` measures; raise for an option that is wrong."""
    options, settings = _with_code_search(options, settings)
    return plan_evaluation(options, settings, build_ablations if ablation else _only_the_recipe)


def _with_code_search(options: EvaluationOptions, settings: Settings) -> tuple[EvaluationOptions, Settings]:
    """The recipe of code search, which is not among the built-in ones, as the default."""
    name = CODE_SEARCH.name
    settings = replace(settings, recipes={name: CODE_SEARCH.to_dict(), **settings.recipes})
    return replace(options, recipes=options.recipes or (name,)), settings


def _only_the_recipe(recipe: Recipe) -> list[System]:
    return [System(recipe.name, recipe)]


def build_ablations(recipe: Recipe) -> list[System]:
    """The recipe, each of its sources alone, and the recipe without each of its parts."""
    out = [System(recipe.name, recipe)]
    for config in recipe.sources:
        alone = replace(
            recipe, sources=(config,), fusion=Weighted({config.name: 1.0}, "max"), stages=(PerFile(),)
        )
        out.append(System(f"only {config.name}", alone))
    for config in recipe.sources:
        others = tuple(other for other in recipe.sources if other is not config)
        out.append(
            System(
                f"without {config.name}",
                replace(recipe, sources=others, fusion=_without_weight(recipe.fusion, config.name)),
            )
        )
    for index, stage in enumerate(recipe.stages):
        before, after = recipe.stages[:index], recipe.stages[index + 1 :]
        if isinstance(stage, CodeRanking):
            for part in (
                "outline_weight",
                "definition_boost",
                "name_boost",
                "file_name_boost",
                "context_boost",
                "secondary_penalty",
                "older_version_penalty",
            ):
                reduced = stage_from_dict({**stage_to_dict(stage), part: 0.0})
                out.append(System(f"without {part}", replace(recipe, stages=(*before, reduced, *after))))
        else:
            out.append(System(f"without {stage.name}", replace(recipe, stages=(*before, *after))))
    return out


def _without_weight(fusion: Fusion, name: str) -> Fusion:
    """The fusion without the weight of one source. A weight for a missing source is an error."""
    if not isinstance(fusion, Weighted):
        return fusion
    return replace(
        fusion, weights={source: weight for source, weight in fusion.weights.items() if source != name}
    )


def pool_projects(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The queries of all projects together, for each model and system."""
    out = []
    for model, system in dict.fromkeys((m.model, m.system) for m in measurements):
        same = [m for m in measurements if (m.model, m.system) == (model, system)]
        query_results = tuple(result for m in same for result in m.query_results)
        documents = sum(m.documents for m in same)
        out.append(
            replace(same[0], collection=ALL_PROJECTS, documents=documents, query_results=query_results)
        )
    return out


def code_table_rows(measurements: Sequence[Measurement], category: str) -> list[tuple[str, ...]]:
    """A row for each project, the mean over projects, a row for all queries, and one for each category."""
    projects = [m for m in measurements if m.collection != ALL_PROJECTS]
    pooled = [m for m in measurements if m.collection == ALL_PROJECTS]
    return table_rows(projects) + table_rows(pooled, category)


def _read_project(file: Path, manifest: Mapping[str, Any], projects: Path) -> Collection:
    name = file.stem
    documents: list[Record] = []
    for path, data in project_files(name, manifest, projects):
        if file_kind(path)[0] == "code":
            try:
                documents += code_records(parse_code(path, data))
            except UnreadableFile:
                continue
    if not documents:
        raise InvalidInput(
            f"{name}: there is no code in {indexed_root(manifest) or 'it'}; is this the right version?"
        )
    paths = {record.path or "" for record in documents}
    queries, judgements, missing = [], {}, []
    for number, entry in enumerate(_json(file), 1):
        targets = [_path(target) for kind in ("relevant", "secondary") for target in entry.get(kind) or ()]
        query = Query(
            f"{name}/{number}", entry["query"], {"category": entry.get("category", ""), "project": name}
        )
        queries.append(query)
        judgements[query.id] = dict.fromkeys(targets, 1)
        missing += [target for target in targets if not any(same_file(path, target) for path in paths)]
    warnings = (
        [f"{name} has no file {missing[0]!r}; {len(missing)} targets are never found"] if missing else []
    )
    return CodeCollection(name, tuple(documents), tuple(queries), judgements, tuple(warnings))


def _files(name: str, version: str, root: str, projects: Path) -> Iterator[tuple[str, bytes]]:
    """The path and content of each file below the root of a project, read from a folder or an archive."""
    pattern = re.compile(
        rf"{re.sub(r'[-_.]+', '[-_.]+', re.escape(name))}(-{re.escape(version)})?(\.tar\.gz|\.tgz|\.crate)?",
        re.I,
    )
    matching = [entry for entry in sorted(projects.glob("*")) if pattern.fullmatch(entry.name)]
    for entry in matching:
        if entry.is_dir():
            yield from _folder_files(entry, root)
            return
    for entry in matching:
        yield from _archive_files(entry, root)
        return
    raise NotFound(
        f"The source of {name} {version} is not in {projects}. Put the project's folder or its source archive there, "
        f"for example with: pip download --no-deps --no-binary :all: {name}=={version} -d {projects}"
    )


def _folder_files(folder: Path, root: str) -> Iterator[tuple[str, bytes]]:
    base = folder.resolve()
    result = WalkResult()
    # A source archive may contain files that the repository's ignore rules exclude. They count.
    walk(str(base / root), Scope(ignore_files=False), result)
    for found in result.files.values():
        try:
            yield (
                Path(found.os_path).relative_to(base).as_posix(),
                read_regular_file(found.os_path, DEFAULT_MAX_BYTES).data,
            )
        except UnreadableFile:
            continue


def _archive_files(archive: Path, root: str) -> Iterator[tuple[str, bytes]]:
    """Read the archive without unpacking it to disk."""
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
        raise InvalidInput(f"A target must be a path or an object with a path, not {target!r}.")
    return path


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.") from error
