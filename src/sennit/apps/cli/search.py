"""`sennit search`, `sennit why` and `sennit recipes`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import OK, SOURCES_FAILED
from sennit.apps.cli.options import (
    FILTER_HELP,
    TextFile,
    build_request,
    choose_project,
    project_option,
    query_words,
    rewrite_options,
    search_option,
)
from sennit.apps.cli.session import TEXT, Command, Session, common_options, load_settings, pass_session
from sennit.apps.locations import display_citation, record_link
from sennit.errors import InvalidInput
from sennit.search_parameters import (
    COLLECTIONS,
    INCLUDE,
    KEYWORDS,
    LIMIT,
    LOOK_BACK,
    MIN_RELEVANCE,
    NEIGHBOURS,
    RECENCY,
    RECIPE,
)

if TYPE_CHECKING:
    from sennit.apps.cli.result_lines import LineFormat
    from sennit.apps.excerpts import ExcerptLine, ExcerptOptions
    from sennit.engine import Database
    from sennit.filters import Filter
    from sennit.records import Record
    from sennit.results import Hit, SearchResult, Why

SNIPPET_CHARACTERS: Final = 200
"""Characters of text shown for a hit when the output is not a terminal."""

_SEARCH_OPTIONS: Final = (
    search_option(RECIPE, "-r", "--recipe", help_text="How to search; see 'sennit recipes'."),
    search_option(
        COLLECTIONS, "-c", "--collection", "collections", help_text="Search only this collection; repeatable."
    ),
    project_option,
    search_option(LIMIT, "-n", "--limit"),
    click.option(
        "-f",
        "--filter",
        "filters",
        type=TEXT,
        help=FILTER_HELP,
    ),
    search_option(
        KEYWORDS, "-k", "--keyword", "keywords", help_text="Exact text for the grep source; repeatable."
    ),
    search_option(INCLUDE, "--include", help_text="Add an optional collection of the recipe; repeatable."),
    search_option(LOOK_BACK, "--look-back"),
    rewrite_options,
    search_option(MIN_RELEVANCE, "--min-relevance"),
    search_option(RECENCY, "--recency"),
)


def _search_options(command: Command) -> Command:
    """Add the options that `search` and `why` share."""
    for option in reversed(_SEARCH_OPTIONS):
        command = option(command)
    return command


@click.command()
@query_words
@_search_options
@search_option(NEIGHBOURS, "--neighbours", default=0)
@click.option("-e", "--explain", is_flag=True, help="Show rank, score and share of every source.")
@click.option(
    "--context", type=click.IntRange(0, 1000), help="Show this many lines before and after the best line."
)
@click.option("--full", is_flag=True, help="Show the whole text of each result.")
@click.option("--files", is_flag=True, help="Print only the paths of the files, one per line.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["fzf", "rofi", "vscode"]),
    help="Print one line per result, path:line:column: text, for this picker or editor.",
)
@click.option(
    "--paths-from",
    type=TextFile(),
    metavar="FILE",
    help="Search only the files whose paths are in FILE, one per line; - is standard input.",
)
@common_options
@pass_session
def search(
    session: Session,
    /,
    query: str,
    context: int | None,
    full: bool,
    files: bool,
    form: LineFormat | None,
    paths_from: str | None,
    **options: Any,
) -> int:
    """Search the records by keyword and by meaning, and print one ranking.

    \b
    Example:
      sennit search how do I restore a backup --limit 3 --explain

    Several words are one query. What stands before a text (a file with lines, or an id) is what 'sennit get', 'why',
    'read' and 'remove' take.
    """
    if form is not None and (session.json or files):
        raise InvalidInput("Give one of --format, --files and --json.")
    with session.open() as db:
        if paths_from is not None:
            options["filters"] = _restrict(db, options["filters"], paths_from)
        options["project"] = choose_project(session, db, options["project"])
        result = db.search(build_request(query, **options))
    if session.json:
        output.write_json(result.to_dict())
    else:
        output.warn_degraded(result.degraded)
        if files:
            for path in dict.fromkeys(hit.location for hit in result if hit.location is not None):
                output.write_line(output.one_line(path))
        elif form is not None:
            from sennit.apps.cli.result_lines import format_lines

            for line in format_lines(result, form):
                click.echo(line, nl=False)
        else:
            from sennit.apps.excerpts import ExcerptOptions

            show_result(result, ExcerptOptions(context, full))
        if not result:
            output.write_nothing_found(session, result.hints)
    return OK if result.answered else SOURCES_FAILED


def _restrict(db: Database, filters: str | None, paths: str) -> Filter:
    """Return the filter with the condition that a record is of one of these files."""
    from sennit.filters import parse_filter

    wanted = [line.rstrip("\r") for line in paths.split("\n")]
    of_files = db.files.filter_paths(line for line in wanted if line.strip())
    return parse_filter(filters) & of_files


@click.command()
@query_words
@click.argument("reference", metavar="ID", type=TEXT)
@_search_options
@common_options
@pass_session
def why(session: Session, /, query: str, reference: str, **options: Any) -> int:
    """Explain why the record ID is in the result of a search, or which stage dropped it.

    \b
    Example:
      sennit why how do I restore a backup docs/backup.md:3-5

    The last argument is the ID, and the words before it are the query. ID is what the search prints: an id or the beginning of one, or a file with lines.
    """
    with session.open() as db:
        options["project"] = choose_project(session, db, options["project"])
        found = db.why(build_request(query, **options), reference)
    if session.json:
        output.write_json(found.to_dict())
    else:
        output.warn_degraded(found.degraded)
        show_why(found)
    return OK if found.answered else SOURCES_FAILED


@click.command()
@common_options
@pass_session
def recipes(session: Session) -> None:
    """List the recipes: the built-in ones and those in sennit.toml.

    \b
    Example:
      sennit recipes
    """
    from sennit.recipes import find_recipe, load_recipes

    settings = load_settings()
    known = load_recipes(settings)
    default = find_recipe(settings.search.recipe, known).name
    if session.json:
        output.write_json(
            {
                "recipes": [
                    {
                        "name": name,
                        **recipe.to_dict(),
                        "default": name == default,
                        "built_in": name not in settings.recipes,
                    }
                    for name, recipe in known.items()
                ]
            }
        )
        return
    output.write_table(
        ("recipe", "sources", "about"),
        [
            (
                f"{name} *" if name == default else name,
                " + ".join(source.name for source in recipe.sources),
                recipe.about,
            )
            for name, recipe in known.items()
        ],
    )
    output.write_note(session, "* the default")


def show_result(result: SearchResult, options: ExcerptOptions) -> None:
    """Print a result as text."""
    from sennit.context.status import ONLY_NEAREST

    if result and not result.fits:
        output.write_line(f"{ONLY_NEAREST}:")
    if result.pages:
        _show_pages(result, options)
        return
    for number, hit in enumerate(result):
        if number and output.terminal_width() is not None:
            output.write_line()
        show_hit(hit, result.query, options)


def _show_pages(result: SearchResult, options: ExcerptOptions) -> None:
    """Print each page with its summary, its examples and the sections that were found."""
    from sennit.results import Hit

    found = {hit.id: hit for hit in result}
    for number, page in enumerate(result.pages):
        if number:
            output.write_line()
        url = f"  {click.style(output.one_line(page.url), dim=True)}" if page.url else ""
        output.write_line(f"{click.style(output.one_line(page.name), bold=True, underline=True)}{url}")
        for chunk in page.chunks:
            # The summary and the examples come with every page, whether they were found or not.
            hit = found.get(chunk.id) or Hit(chunk, 0.0, 0, location=page.location)
            show_hit(hit, result.query, options, is_found=chunk.id in found)


def show_hit(hit: Hit, query: str, options: ExcerptOptions, *, is_found: bool = True) -> None:
    """Print rank, relevance, title, citation and an excerpt, and the explanation if there is one.

    A text that comes with a page and was not found itself has neither rank nor relevance.
    """
    terminal = output.terminal_width()
    title = output.one_line(hit.title)
    shown = output.one_line(display_citation(hit.record, hit.location))
    citation = output.link(shown, record_link(hit.record, hit.location))
    heading = click.style(title or citation, bold=True)
    about = [citation] if title else []
    about += [output.one_line(hit.collection)] if hit.collection != "default" else []
    details = f"  {click.style(' · '.join(about), dim=True)}" if about else ""
    bar = output.bar(hit.relevance, 1.0) if terminal is not None and terminal >= output.WIDE_CELLS else ""
    lead = f"{hit.rank:>2}  {hit.relevance:.2f}  {bar}" if is_found else " -  "
    first = f"{lead}{heading}"
    if details and terminal is not None and output.visible_width(f"{first}{details}") > terminal:
        # A citation that is broken at the end of a row cannot be copied.
        output.write_line(first)
        output.write_line(f"  {details}")
    else:
        output.write_line(f"{first}{details}")
    for row in _excerpt_rows(hit, query, options, terminal):
        output.write_line(f"    {row}".rstrip())
    if hit.explanation is not None:
        output.write_source_scores(hit.explanation.source_scores, indent=4)
        for adjustment in hit.explanation.adjustments:
            output.write_line(
                f"    {adjustment.stage}: {adjustment.before:.4f} -> {adjustment.after:.4f} {adjustment.reason}"
            )
        if hit.explanation.displaced:
            output.write_line(f"    in place of: {output.one_line(', '.join(hit.explanation.displaced))}")


def _excerpt_rows(hit: Hit, query: str, options: ExcerptOptions, terminal: int | None) -> Iterator[str]:
    """Yield the rows of an excerpt; into a pipe, sentences that follow each other are one row."""
    from sennit.apps.excerpts import find_matches, highlight_spans, make_excerpt

    width = None if terminal is None else max(terminal - 5, 40)
    rows = 3 if width is None or width < output.WIDE_CELLS else 2
    characters = SNIPPET_CHARACTERS if width is None else rows * width - 8
    lines = make_excerpt(hit.record, hit.passage, query, characters, options)
    verbatim: list[ExcerptLine] = []
    for line in lines:
        if line.is_verbatim:
            verbatim.append(line)
            continue
        yield from _numbered_rows(hit.record, verbatim, width)
        verbatim.clear()
        for row in [line.text] if width is None else output.wrap_rows(line.text, width, rows):
            yield highlight_spans(row, find_matches(row, query), output.highlight)
    yield from _numbered_rows(hit.record, verbatim, width)


def _numbered_rows(record: Record, lines: Sequence[ExcerptLine], width: int | None) -> Iterator[str]:
    """Yield lines with their numbers; on a terminal cut to its width, and code in colours."""
    from sennit.apps.excerpts import highlight_spans, is_code

    digits = max((len(str(line.number)) for line in lines if line.number is not None), default=0)
    cut = [line.text if width is None else output.truncate(line.text, width - digits - 2) for line in lines]
    coloured: Sequence[str] | None = None
    if is_code(record) and output.has_colours():
        from sennit.apps.cli.syntax import colour_lines

        spans = [
            [span for span in line.spans if span[1] <= len(text)]
            for line, text in zip(lines, cut, strict=True)
        ]
        coloured = colour_lines(cut, str(record.metadata.get("language") or "text"), spans)
    for index, line in enumerate(lines):
        if coloured is not None:
            text = coloured[index]
        else:
            spans_inside = [span for span in line.spans if span[1] <= len(cut[index])]
            text = highlight_spans(cut[index], spans_inside, output.highlight)
        number = "" if line.number is None else str(line.number)
        yield f"{click.style(f'{number:>{digits}}  ', dim=True) if digits else ''}{text}"


def show_why(found: Why) -> None:
    """Print the outcome for one record as text."""
    name = output.one_line(found.id)
    outcome = "is in the answer" if found.kept else f"is not in the answer; decided by: {found.stage}"
    output.write_line(f"{click.style(name, bold=True)} {outcome}")
    output.write_line(f"    {output.one_line(found.reason)}")
    if found.shortfall:
        output.write_line(f"    {found.shortfall}")
    if found.source_scores:
        output.write_source_scores(found.source_scores, indent=4)
