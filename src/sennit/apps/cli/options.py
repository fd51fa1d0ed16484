"""Options that several commands share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import TEXT, Command, Session
from sennit.errors import InvalidInput, NotFound
from sennit.search_parameters import PROJECT, AutoShare, Count, Hours, Parameter, Share, Texts

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.engine.search_request import SearchRequest


MAX_EDITOR_BYTES: Final = 4 * 1024 * 1024
"""A larger file is not source code that somebody edits."""


def host_and_port(default_port: int) -> Callable[[Command], Command]:
    """Add --host and --port to a command that listens."""

    def add(command: Command) -> Command:
        port = click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=default_port,
            show_default=True,
            help="Port to listen on; 0 picks a free one.",
        )
        host = click.option(
            "--host", type=TEXT, default="127.0.0.1", show_default=True, help="Address to listen on."
        )
        return host(port(command))

    return add


FILTER_HELP: Final = "Condition on records, e.g. 'kind = \"note\" and timestamp >= 2026-01-01'."

allowed_hosts: Final = click.option(
    "--allowed-host",
    "hosts",
    type=TEXT,
    multiple=True,
    help="Accept this Host header besides the loopback names; repeatable.",
)


def allowed_origins(help_text: str) -> Callable[[Command], Command]:
    """Add --allowed-origin; the meaning depends on the server, so the command gives the help text."""
    return click.option(
        "--allowed-origin", "origins", type=TEXT, multiple=True, help=f"{help_text}; repeatable."
    )


_METAVARS: Final[dict[type, str]] = {Hours: "HOURS", Share: "SHARE", AutoShare: "SHARE"}


def search_option(
    parameter: Parameter, *names: str, help_text: str = "", default: object = None
) -> Callable[[Command], Command]:
    """Add the option of a parameter of a search. Its help has the bounds, which the request checks."""
    types = {Count: click.INT, Hours: click.FLOAT, Share: click.FLOAT}
    return click.option(
        *names,
        type=types.get(type(parameter), TEXT),
        multiple=isinstance(parameter, Texts),
        metavar=_METAVARS.get(type(parameter)),
        default=() if isinstance(parameter, Texts) else default,
        show_default=default is not None,
        help=f"{help_text or parameter.help}{_bounds(parameter)}",
    )


def _bounds(parameter: Parameter) -> str:
    """The bounds that a person may run into."""
    return (
        f" {parameter.bounds.capitalize()}."
        if isinstance(parameter, Count | Hours | Share | AutoShare)
        else ""
    )


project_option: Final = search_option(
    PROJECT,
    "--project",
    help_text="Only this indexed folder, by name or path; 'all' for every one. Default: the one you are in.",
)


def choose_project(session: Session, db: Database, given: str | None) -> str | None:
    """Return the project of a command: the given one, or that of the current folder; a note says so."""
    if given is not None:
        return given
    found = current_project(db)
    if found is not None:
        output.write_note(session, f"In project {output.one_line(found)}; --project all includes the others.")
    return found


def current_project(db: Database) -> str | None:
    """Return the project of the current folder, if it has one."""
    with contextlib.suppress(OSError):  # the current folder is gone
        return db.files.project_at(Path.cwd())
    return None


def build_request(
    query: str,
    *,
    keywords: tuple[str, ...] = (),
    look_back: float | None = None,
    min_relevance: float | None = None,
    recency: str | None = None,
    **options: Any,
) -> SearchRequest:
    """Make the request of a search from the values of its options."""
    from sennit.engine.search_request import SearchRequest

    return SearchRequest(
        query,
        keywords=keywords or None,
        look_back=False if look_back is None else look_back,
        min_relevance=0.0 if min_relevance is None else min_relevance,
        recency=_parse_share(recency),
        **options,
    )


class TextFile(click.Path):
    """An option that takes a file in UTF-8, or - for standard input; its value is the text."""

    def __init__(self, max_bytes: int | None = None, advice: str = "") -> None:
        super().__init__(allow_dash=True)
        self._max_bytes = max_bytes
        self._advice = advice

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        return read_text(str(value), self._max_bytes, self._advice)


def read_text(file: str, max_bytes: int | None = None, advice: str = "") -> str:
    """Return the text of a file in UTF-8, or of standard input for -; an error names the file."""
    try:
        with click.open_file(file, "rb") as stream:
            content: bytes = stream.read() if max_bytes is None else stream.read(max_bytes + 1)
    except FileNotFoundError:
        raise NotFound(f"There is no file {file}.") from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}.") from error
    if max_bytes is not None and len(content) > max_bytes:
        raise InvalidInput(f"{file} is larger than {max_bytes >> 20} MB; {advice}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text (byte {error.start}).") from error


def read_ranker(file: Path) -> str:
    """Return the text of a file with a ranker."""
    from sennit.ranking.ranker import MAX_RANKER_BYTES

    return read_text(str(file), MAX_RANKER_BYTES, "train the ranker with fewer trees.")


def rewrite_options(command: Command) -> Command:
    """Add the options that rewrite a query: --editor, --language and --no-transform."""
    for option in (
        click.option(
            "--no-transform",
            "transform",
            flag_value=False,
            type=click.BOOL,
            default=None,
            help="Search for QUERY as it is, without rewriting it.",
        ),
        click.option("--language", type=TEXT, help="Language of that code. Default: detected."),
        click.option(
            "--editor",
            metavar="FILE",
            type=TextFile(MAX_EDITOR_BYTES, "--editor takes a source file."),
            help="Code open in your editor; its keywords are added to the query.",
        ),
    ):
        command = option(command)
    return command


def _parse_share(text: str | None) -> Any:
    """Return a number if the text is one; the request checks it, and any other text."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def query_words(command: Command) -> Command:
    """Add the argument QUERY; several words without quotes are one query."""
    return click.argument(
        "query", metavar="QUERY...", type=TEXT, nargs=-1, required=True, callback=_join_words
    )(command)


def _join_words(_ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> str:
    return " ".join(words)


def folder_option(help_text: str) -> Callable[[Command], Command]:
    """Add --folder, with which a command reads files without a database."""
    return click.option(
        "--folder",
        "folders",
        metavar="DIR",
        type=click.Path(path_type=Path),
        multiple=True,
        help=f"{help_text}; repeatable. Default: the folders of the database.",
    )


def open_for_files(session: Session, verb: str) -> Database:
    """Open the database; if there is none, the error says how to `verb` files without one."""
    try:
        return session.open()
    except NotFound as error:
        raise NotFound(f"{error} To {verb} files without a database, give a folder with --folder.") from error
