"""Who a call is made for, and what that caller may see and write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sennit.engine.projects import NO_PROJECT, find_project, visible_folders, within
from sennit.filters import Filter
from sennit.places import Folder, Places
from sennit.privacy import Caller, Policy
from sennit.search_parameters import PROJECT
from sennit.sources.grep import UnindexedAccess


@dataclass(frozen=True, slots=True)
class Access:
    """The policy of a database, the caller of a call that names none, and the projects a call can be limited to."""

    policy: Policy
    default_caller: Caller
    places: Callable[[], Places]
    unindexed: UnindexedAccess

    def resolve(self, caller: Caller | None) -> Caller:
        """Return the caller of a call."""
        return self.default_caller if caller is None else caller

    def audience(self, caller: Caller | None, project: str | None = None) -> Filter:
        """Return the filter of what a caller may see, within a project if one is named."""
        return within(self.policy.audience(self.resolve(caller)), self.project_keys(caller, project))

    def project_keys(self, caller: Caller | None, project: str | None) -> tuple[str, ...]:
        """Return the keys of the folders of a project; none for every project."""
        if project in NO_PROJECT:
            return ()
        assert project is not None
        audience = self.audience(caller)
        folders = find_project(PROJECT.check(project), self.places(), audience, self.unindexed)
        return tuple(folder.key for folder in folders)

    def projects(self, caller: Caller | None) -> tuple[Folder, ...]:
        """Return the projects that a caller may know of, in the order of their names."""
        visible = visible_folders(self.places(), self.audience(caller), self.unindexed)
        return tuple(sorted((one for one in visible if one.whole), key=lambda one: one.key))

    def write_audience(self, caller: Caller | None) -> Filter | None:
        """Return what a caller may write; None without a caller, who is then the owner of the process."""
        return None if caller is None else self.policy.audience(caller)
