"""Projects: the indexed folders of a database, one of which a call can be limited to.

A project narrows the audience, as a tenant does. So a search within a project behaves as if nothing of the other
projects were stored, also in the statistics of words, and sources, plans, grep and reading need no code for it. A record
that comes from no indexed folder, such as a memory or a fact, belongs to every project.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from sennit.errors import NotFound, suggest
from sennit.filters import Exists, Filter, In, matches
from sennit.places import ALL_PROJECTS, FOLDER_FIELD, Folder, Places, path_to_text
from sennit.sources.grep import UnindexedAccess

NO_PROJECT: Final = (None, "", ALL_PROJECTS)
"""What means every project."""


def find_project(
    project: str, places: Places, audience: Filter, access: UnindexedAccess
) -> tuple[Folder, ...]:
    """Return the folders of a project: its own and those inside it; raise NotFound if the audience sees none such.

    A project is named by its key, or by a folder: that of the project, one inside it, or one with projects in it.
    """
    visible = visible_folders(places, audience, access)
    roots = [folder.root for folder in visible if folder.key == project]
    if not roots and project and "\0" not in project:
        real = path_to_text(os.path.realpath(project))
        # A misspelt name, too, would be a path inside the project that one is in.
        inside = os.path.exists(project)  # noqa: PTH110 - False also for what no file can be named
        around = [folder.root for folder in visible if folder.whole and folder.relative(real) is not None]
        roots = (around[:1] if inside else []) or [real]
    found = tuple(
        folder for folder in visible if any(folder.root == root or _is_inside(folder, root) for root in roots)
    )
    if not found:
        names = project_names(visible)
        known = f"{suggest(project, names)}Projects: {', '.join(names)}" if names else "No folder is indexed."
        raise NotFound(f"There is no project {project!r:.200}. {known}")
    return found


def visible_folders(places: Places, audience: Filter, access: UnindexedAccess) -> list[Folder]:
    """Return the indexed folders that an audience may know of."""
    return [folder for folder in places.folders if matches(audience, access.folder_record(folder))]


def project_of_folder(path: str, places: Places) -> Folder | None:
    """Return the project that a real path is in, where there is another one to tell it from."""
    projects = [folder for folder in places.folders if folder.whole]
    if len(projects) < 2:
        return None
    return next((folder for folder in projects if folder.relative(path) is not None), None)


def project_filter(keys: Iterable[str]) -> Filter:
    """Return the filter of the records of some folders, by their keys, and of records from no folder."""
    return In(FOLDER_FIELD, tuple(sorted(keys))) | ~Exists(FOLDER_FIELD)


def within(audience: Filter, keys: Sequence[str]) -> Filter:
    """Return the audience within the folders of a project; without any, the audience itself."""
    return audience & project_filter(keys) if keys else audience


def project_names(folders: Iterable[Folder]) -> list[str]:
    """Return the names of the folders that are indexed as a whole, in order."""
    return sorted(folder.key for folder in folders if folder.whole)


def _is_inside(folder: Folder, root: str) -> bool:
    return path_to_text(folder.root).startswith(f"{path_to_text(root).rstrip('/')}/")
